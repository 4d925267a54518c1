# What an analyst knows: the noisy matrix where it was measured, the size of its noise, and the linear facts
# that every table obeys.

SMALLEST <- 1e-35
LARGEST <- 1e35
CLEAREST <- 1e15
NEARLY_EMPTY <- 2
WITHIN <- 48
BEYOND <- 16

moments_of <- function(release) {
  schema <- release$schema
  width <- length(schema$encoded)
  unit <- (release$radius / LATTICE)^2
  lattice <- from_lower(as.numeric(unlist(release$matrix$cells)), width) * 2^release$matrix$exponent
  if (release$noise$type == "noisy-inverse") lattice <- gram_of_inverse(lattice, release$noise)
  noise <- noise_of(release$noise, unit, release$stand_in)
  gram <- lattice * unit
  sizes <- c(unit, max(abs(gram)), noise$diagonal_sd, noise$offdiagonal_sd, noise$mean_diagonal)
  sizes <- sizes[!is.na(sizes) & sizes != 0]
  if (any(sizes < SMALLEST | sizes > LARGEST) || isTRUE(max(abs(gram)) > CLEAREST * noise$diagonal_sd)) {
    stop("the numbers of this release are too large or too small to compute with", call. = FALSE)
  }
  moments <- list(
    schema = schema, noise = noise, radius = release$radius, gram = gram,
    lift = lift_of(release$coordinates, width), lifted = !is.null(release$coordinates),
    complete = release$policy$missing == "drop", public_rows = release$public_rows,
    unit = release$unit, unit_rule = release$unit_rule, survey_weight = release$survey_weight$column,
    measured = measured_of(release)
  )
  sums <- if (moments$complete) moments$lift %*% known_sums(schema) else matrix(0, width, 0)
  moments$null <- if (ncol(sums)) qr.Q(qr(sums, LAPACK = TRUE)) else sums
  moments$consistent <- projected(gram - noise$mean_diagonal * diag(width), moments$null)
  constant <- constant_function(moments)
  moments$constant <- constant
  moments$rows <- if (is.null(constant)) release$public_rows else {
    held <- project(moments, constant)
    drop(crossprod(held, moments$consistent %*% held))
  }
  moments$clip <- clip_counts(moments$measured$clip)
  moments$sampling_factor <- sampling_factor(moments)
  moments$empty <- empty_levels(moments)
  moments$learnt <- vapply(moments$measured$octaves$columns, `[[`, "", "column")
  moments
}

from_lower <- function(cells, width) {
  found <- matrix(0, width, width)
  found[upper.tri(found, diag = TRUE)] <- cells # the lower triangle by rows is the upper one by columns
  found[lower.tri(found)] <- t(found)[lower.tri(found)]
  found
}

gram_of_inverse <- function(noisy, law) {
  found <- eigen(symmetric(noisy), symmetric = TRUE)
  held <- pmin(pmax(found$values, min(law$sigma, 1 / law$ridge)), 1 / law$ridge)
  symmetric(found$vectors %*% ((1 / held - law$ridge) * t(found$vectors)))
}

# The transposed inverse of T, u = T v: a function f of v is lift f as a function of u.
lift_of <- function(coordinates, width) {
  if (is.null(coordinates)) return(diag(width))
  transform <- from_lower(as.numeric(unlist(coordinates$cells)), width) * 2^-coordinates$shift
  transform[upper.tri(transform)] <- 0
  t(forwardsolve(transform, diag(width)))
}

measured_of <- function(release) {
  found <- as.list(release$measurements)
  if (!is.null(release$learnt)) {
    stop("this file is of the first edition and learnt from the table: load it in Python and save it again",
      call. = FALSE)
  }
  kinds <- vapply(found, `[[`, "", "kind")
  names(found) <- kinds
  found
}

projected <- function(gram, null) {
  if (!ncol(null)) return(gram)
  gram <- gram - null %*% crossprod(null, gram)
  gram <- gram - (gram %*% null) %*% t(null)
  symmetric(gram)
}

symmetric <- function(a) (a + t(a)) / 2

project <- function(moments, functions) within_tables(moments, moments$lift %*% functions)

within_tables <- function(moments, functions) functions - moments$null %*% crossprod(moments$null, functions)

# f with f . v = 1 for every encoded row; NULL when no column says so.
constant_function <- function(moments) {
  schema <- moments$schema
  found <- numeric(length(schema$encoded))
  if (schema$constant) {
    found[1] <- 1 / schema$weights[[1]]
    return(found)
  }
  groups <- Filter(function(column) column$group, schema$declared)
  if (!moments$complete || !length(groups)) return(NULL)
  positions <- groups[[1]]$positions
  found[positions] <- 1 / schema$weights[positions]
  found
}

counts_of <- function(cells) as.numeric(unlist(cells)) / ROW_NORM_SQUARED

count_deviation <- function(measured) {
  measured$scale / ROW_NORM_SQUARED * if (measured$law == "discrete-gaussian") 1 else sqrt(2)
}

# Levels in which noisy counts show no rows to speak of; of each column the fullest is kept.
empty_levels <- function(moments) {
  measured <- moments$measured$histograms
  found <- character()
  for (histogram in measured$columns) {
    column <- moments$schema$declared[[histogram$column]]
    if (is.null(column) || !column$group) next
    counts <- counts_of(histogram$counts)
    few <- counts < NEARLY_EMPTY * count_deviation(measured)
    few[which.max(counts)] <- FALSE
    found <- c(found, paste0(column$name, "=", column$levels)[few])
  }
  found
}

# Shares of all rows by their length before the clip; noise that counts cannot have is taken out.
clip_counts <- function(measured) {
  if (is.null(measured)) return(NULL)
  counts <- counts_of(measured$cells)
  total <- max(sum(counts), 1)
  ordered <- sort(counts, decreasing = TRUE)
  excess <- (cumsum(ordered) - total) / seq_along(counts)
  last <- max(which(ordered > excess), 1)
  shares <- pmax(counts - excess[last], 0) / total
  taken <- c(numeric(WITHIN), (seq_len(BEYOND) - 0.5) / BEYOND)
  list(
    shares = shares, taken = taken, lost = sum(shares * taken),
    lost_sd = count_deviation(measured) * sqrt(sum(taken^2)) / total
  )
}

# What s^2 A must be multiplied with for the sampling error of rows that were clipped.
sampling_factor <- function(moments) {
  clip <- moments$clip
  if (!moments$lifted || is.null(clip)) return(1)
  constant <- moments$schema$constant
  width <- length(moments$schema$encoded) - ncol(moments$null)
  weights <- 1 - clip$taken
  lengths <- c((seq_len(WITHIN) - 0.5) / WITHIN, rep(1, BEYOND)) * moments$radius^2
  inside <- if (constant) pmax(lengths - weights, 0) else lengths
  directions <- max(width - constant, 1)
  alike <- directions / (directions + 2) * sum(clip$shares * inside^2) /
    max(sum(clip$shares * inside)^2, .Machine$double.xmin) * sum(clip$shares * weights)
  independent <- sum(clip$shares * weights * lengths) / max(sum(clip$shares * lengths), 1e-300)
  min(alike, independent, 1)
}
