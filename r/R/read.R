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
  check_start(raw)
  text <- rawToChar(raw)
  Encoding(text) <- "UTF-8"
  content <- tryCatch(
    fromJSON(text, simplifyVector = FALSE),
    error = function(problem) no_release("the text of the file has a mistake. ", ORIGINAL)
  )
  if (!identical(content$format, "dpgram-release")) no_release("a release is ", FORM)
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

ORIGINAL <- "Ask the curator for the original file"
FORM <- "a JSON object with \"format\": \"dpgram-release\""

no_release <- function(...) stop("this is not a release: ", ..., call. = FALSE)

# What happens to files on the way, before anything is read: in Python's words.
check_start <- function(raw) {
  begins <- function(...) identical(raw[seq_along(c(...))], as.raw(c(...)))
  if (begins(0x1f, 0x8b)) no_release("the file is packed (gzip). Unpack it first")
  if (begins(0xef, 0xbb, 0xbf)) no_release("a program has put a byte-order mark in front. Save it as UTF-8 without one")
  written <- which(!raw %in% charToRaw(" \t\r\n"))
  if (!length(written)) no_release("the file is empty. ", ORIGINAL)
  if (raw[written[1]] != charToRaw("{") || any(raw == 0)) no_release("a release is ", FORM)
  if (raw[max(written)] != charToRaw("}")) {
    stop("this release seems to be cut short: it has ", format(length(raw), big.mark = ","), " bytes. ", ORIGINAL,
      call. = FALSE)
  }
}

print.dp_release <- function(x, ...) {
  rows <- x$moments$rows
  cat("A differentially private release of ", length(x$schema$declared), " columns", sep = "")
  if (!is.null(rows)) cat(", about ", format(round(max(rows, 0)), big.mark = ","), " rows (noisy)", sep = "")
  cat("", strwrap(in_words(x), 80), sep = "\n")
  if (identical(x$entropy, "seeded")) cat("Made with seeded noise, for tests: it protects nobody.\n")
  if (!is.null(x$signature)) cat("It is signed; the signature is not checked here.\n")
  invisible(x)
}

# The promise as the numbers tell it, whatever the file's own statement says.
in_words <- function(release) {
  stated <- release$guarantee
  who <- if (is.null(release$unit)) {
    "any one row of the table"
  } else {
    paste("all rows of any one", encodeString(release$unit, quote = "'"))
  }
  change <- if (identical(release$adjacency, "replace-one")) {
    paste("replacing", who, "by anything else")
  } else {
    paste("adding or removing", who)
  }
  numerical <- if (is.null(stated$numerical_delta)) 0 else stated$numerical_delta
  exception <- if (stated$delta + numerical == 0) {
    ", without exception (\u03b4 = 0)."
  } else if (numerical == 0) {
    sprintf(", apart from events of total probability at most \u03b4 = %g.", stated$delta)
  } else {
    unit <- 10^(floor(log10(numerical)) - 1)
    sprintf(", apart from events of total probability at most %g (\u03b4) + %.2g (because the sampler works in floating point).",
      stated$delta, ceiling(numerical / unit) * unit)
  }
  paste0(
    "Whatever anybody computes from this release, ", change, " changes the probability of any outcome by a factor ",
    if (stated$epsilon > 700) {
      sprintf("of at most e^%g (\u03b5 = %g)", stated$epsilon, stated$epsilon)
    } else {
      sprintf("of at most %.4g (e^\u03b5 with \u03b5 = %g)", exp(stated$epsilon), stated$epsilon)
    },
    exception
  )
}

# The file as written is canonical, so the digest is that of its bytes without the digest and the signature.
check_digest <- function(text, digest) {
  if (!is.character(digest) || !grepl("^[0-9a-f]{64}$", digest)) stop("the release has no digest", call. = FALSE)
  rest <- sub(paste0("\"digest\":\"", digest, "\","), "", text, fixed = TRUE)
  rest <- sub("\"signature\":\\{[^{}]*\\},", "", rest)
  rest <- sub("\n+$", "", rest)
  if (!identical(sha256(charToRaw(enc2utf8(rest))), digest)) {
    stop("the content of the release does not match its digest: it was damaged, edited or laid out anew. ",
      ORIGINAL, call. = FALSE)
  }
}

# SHA-256 (FIPS 180-4), by R itself from 4.5 on. Before, words are whole numbers below 2^32 in doubles, and bits
# are mixed in halves of 16, as many at once as there are.
sha256 <- function(bytes) {
  own <- get0("sha256sum", asNamespace("tools"))
  found <- if (!is.null(own)) tryCatch(unname(own(bytes = bytes)), error = function(problem) NULL)
  if (is.null(found)) sha256_slowly(bytes) else found
}

sha256_slowly <- function(bytes) {
  length_bits <- length(bytes) * 8
  padding <- (55 - length(bytes)) %% 64
  tail <- as.raw(floor(length_bits / 256^(7:0)) %% 256)
  bytes <- as.integer(c(bytes, as.raw(128), raw(padding), tail))
  words <- schedule(matrix(colSums(matrix(bytes, nrow = 4) * 256^(3:0)), nrow = 16))
  primes <- first_primes(64)
  words <- words + root_bits(primes, 1 / 3)
  state <- root_bits(primes[1:8], 1 / 2)
  up <- 2^c(6, 11, 25, 2, 13, 22)
  down <- 2^32 / up
  for (block in seq_len(ncol(words))) {
    w <- words[, block]
    v <- state
    for (i in 1:64) {
      twice <- c(v[5], v[5], v[5], v[1], v[1], v[1])
      turned <- twice %/% up + (twice %% up) * down
      # e and f, not e and g; a and b, a and c, b and c: then what belongs together is joined by exclusive or.
      both <- and32(c(v[5], 4294967295 - v[5], v[1], v[1], v[2]), c(v[6], v[7], v[2], v[3], v[3]))
      first <- xor32(c(turned[1], turned[4], both[1], both[3]), c(turned[2], turned[5], both[2], both[4]))
      second <- xor32(first[c(1, 2, 4)], c(turned[3], turned[6], both[5]))
      more <- v[8] + second[1] + first[3] + w[i]
      v <- c((more + second[2] + second[3]) %% 4294967296, v[1:3], (v[4] + more) %% 4294967296, v[5:7])
    }
    state <- (state + v) %% 2^32
  }
  paste(sprintf("%04x%04x", as.integer(state %/% 65536), as.integer(state %% 65536)), collapse = "")
}

# The 64 words of every block, one in each column, from its 16.
schedule <- function(words) {
  words <- rbind(words, matrix(0, 48, ncol(words)))
  for (i in 17:64) {
    a <- words[i - 15, ]
    b <- words[i - 2, ]
    a <- xor32(xor32(turn(a, 7), turn(a, 18)), floor(a / 8))
    b <- xor32(xor32(turn(b, 17), turn(b, 19)), floor(b / 1024))
    words[i, ] <- (words[i - 16, ] + a + words[i - 7, ] + b) %% 2^32
  }
  words
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
