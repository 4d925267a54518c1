# A release file: read, and checked as far as a reader needs. The format is described in
# docs/reference/release-format.md of dpgram, the arithmetic in docs/reference/arithmetic.md.

LATTICE <- 2^15
ROW_NORM_SQUARED <- 2^30
LARGEST_FILE <- 2^26

read_release <- function(path, stand_in = NULL) {
  size <- file.size(path)
  if (is.na(size)) stop("there is no file ", sQuote(path), call. = FALSE)
  if (size > LARGEST_FILE) stop("this file is too large to be a release", call. = FALSE)
  raw <- readBin(path, "raw", size)
  text <- rawToChar(raw)
  Encoding(text) <- "UTF-8"
  content <- tryCatch(
    fromJSON(text, simplifyVector = FALSE),
    error = function(problem) stop("this is not a release: it is not clean JSON", call. = FALSE)
  )
  if (!identical(content$format, "dpgram-release")) stop("this is not a release", call. = FALSE)
  if (!isTRUE(content$version == 1)) {
    stop("this release has a version of the format that is not known here", call. = FALSE)
  }
  check_digest(text, content$digest)
  content$schema <- read_schema(content$schema)
  width <- length(content$schema$encoded)
  if (length(content$matrix$cells) != width * (width + 1) / 2) {
    stop("the matrix has the wrong size for its ", width, " columns", call. = FALSE)
  }
  content$stand_in <- stand_in
  content$moments <- moments_of(content)
  structure(content, class = "dp_release")
}

print.dp_release <- function(x, ...) {
  rows <- x$moments$rows
  cat("A differentially private release of ", length(x$schema$declared), " columns", sep = "")
  if (!is.null(rows)) cat(", about ", format(round(max(rows, 0)), big.mark = ","), " rows (noisy)", sep = "")
  cat("", strwrap(x$guarantee$statement, 80), sep = "\n")
  if (identical(x$entropy, "seeded")) cat("Made with seeded noise, for tests: it protects nobody.\n")
  if (!is.null(x$signature)) cat("It is signed; the signature is not checked here.\n")
  invisible(x)
}

# The file as written is canonical, so the digest is that of its bytes without the digest and the signature.
check_digest <- function(text, digest) {
  if (!is.character(digest) || !grepl("^[0-9a-f]{64}$", digest)) stop("the release has no digest", call. = FALSE)
  rest <- sub(paste0("\"digest\":\"", digest, "\","), "", text, fixed = TRUE)
  rest <- sub("\"signature\":\\{[^{}]*\\},", "", rest)
  rest <- sub("\n+$", "", rest)
  if (!identical(sha256(charToRaw(enc2utf8(rest))), digest)) {
    stop("the content of the release does not match its digest: it was damaged, edited or laid out anew. ",
      "Ask the curator for the original file", call. = FALSE)
  }
}

# SHA-256 (FIPS 180-4). Words are kept as whole numbers below 2^32 in doubles, bits are mixed in two halves.
sha256 <- function(bytes) {
  length_bits <- length(bytes) * 8
  padding <- (55 - length(bytes)) %% 64
  tail <- as.raw(floor(length_bits / 256^(7:0)) %% 256)
  bytes <- as.integer(c(bytes, as.raw(128), raw(padding), tail))
  words <- matrix(colSums(matrix(bytes, nrow = 4) * 256^(3:0)), nrow = 16)
  primes <- first_primes(64)
  constants <- root_bits(primes, 1 / 3)
  state <- root_bits(primes[1:8], 1 / 2)
  for (block in seq_len(ncol(words))) {
    w <- c(words[, block], numeric(48))
    for (i in 17:64) {
      a <- xor32(xor32(turn(w[i - 15], 7), turn(w[i - 15], 18)), floor(w[i - 15] / 8))
      b <- xor32(xor32(turn(w[i - 2], 17), turn(w[i - 2], 19)), floor(w[i - 2] / 1024))
      w[i] <- (w[i - 16] + a + w[i - 7] + b) %% 2^32
    }
    v <- state
    for (i in 1:64) {
      high <- xor32(xor32(turn(v[5], 6), turn(v[5], 11)), turn(v[5], 25))
      choice <- xor32(and32(v[5], v[6]), and32(2^32 - 1 - v[5], v[7]))
      first <- (v[8] + high + choice + constants[i] + w[i]) %% 2^32
      low <- xor32(xor32(turn(v[1], 2), turn(v[1], 13)), turn(v[1], 22))
      most <- xor32(xor32(and32(v[1], v[2]), and32(v[1], v[3])), and32(v[2], v[3]))
      v <- c((first + low + most) %% 2^32, v[1:3], (v[4] + first) %% 2^32, v[5:7])
    }
    state <- (state + v) %% 2^32
  }
  paste(sprintf("%04x%04x", as.integer(state %/% 65536), as.integer(state %% 65536)), collapse = "")
}

halves <- function(f) function(a, b) {
  f(as.integer(a %/% 65536), as.integer(b %/% 65536)) * 65536 + f(as.integer(a %% 65536), as.integer(b %% 65536))
}
xor32 <- halves(bitwXor)
and32 <- halves(bitwAnd)
turn <- function(word, by) floor(word / 2^by) + (word %% 2^by) * 2^(32 - by)

first_primes <- function(count) {
  found <- c()
  at <- 2
  while (length(found) < count) {
    if (all(at %% found[found <= sqrt(at)] != 0)) found <- c(found, at)
    at <- at + 1
  }
  found
}

# The first 32 bits of the fractional parts of roots: exact, as doubles hold 52 bits.
root_bits <- function(primes, power) floor((primes^power %% 1) * 2^32)
