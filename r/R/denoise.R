# Second moments without their noise, as far as its law allows: positive semidefinite, of least expected
# squared error, so drawn towards zero where the noise is large.

INDISTINCT <- 0.5

second_moments <- function(release, units = c("encoded", "original")) {
  moments <- needs_noise(release)
  span <- possible_span(moments)
  block <- denoised(crossprod(span, moments$consistent %*% span), moments)
  found <- symmetric(t(moments$lift) %*% (span %*% block %*% t(span)) %*% moments$lift)
  if (match.arg(units) == "original") {
    change <- change_of_units(moments$schema)
    found <- symmetric(change %*% found %*% t(change))
  }
  names <- names(moments$schema$encoded)
  dimnames(found) <- list(names, names)
  found
}

dp_cov <- function(release) {
  moments <- needs_noise(release)
  if (!moments$schema$constant) stop("this release has no constant column, so it has no means", call. = FALSE)
  change <- change_of_units(moments$schema)[-1, -1, drop = FALSE]
  constant <- drop(project(moments, moments$constant))
  toward <- drop(moments$consistent %*% constant)
  rows <- sum(constant * toward)
  if (rows <= 0) too_noisy()
  span <- possible_span(moments)
  basis <- span %*% complement_of(drop(crossprod(span, toward)))
  block <- denoised(crossprod(basis, moments$consistent %*% basis), moments)
  axes <- project(moments, diag(length(constant))[, -1, drop = FALSE])
  axes <- axes - constant %*% (crossprod(toward, axes) / rows)
  inside <- crossprod(basis, axes)
  found <- symmetric(crossprod(inside, block %*% inside)) / rows
  found <- symmetric(change %*% found %*% t(change))
  names <- names(moments$schema$encoded)[-1]
  dimnames(found) <- list(names, names)
  for (caution in row_cautions(moments, "table", of = INFLUENCE["covariances"])) {
    message(paste(strwrap(paste("Note:", caution), 80, exdent = 2), collapse = "\n"))
  }
  found
}

too_noisy <- function() {
  stop("the noise is larger than the whole table: the noisy number of rows is not positive", call. = FALSE)
}

# The size of the noise must be known for whatever is estimated.
needs_noise <- function(release) {
  if (!inherits(release, "dp_release")) stop("this is not a release: see read_release()", call. = FALSE)
  moments <- release$moments
  if (is.na(moments$noise$diagonal_sd)) moments$noise$expected_norm(2)
  if (moments$noise$type == "eigenvector-sampling") {
    stop("denoised moments of sampled eigenvectors are in the Python library only", call. = FALSE)
  }
  moments
}

possible_span <- function(moments) {
  if (!ncol(moments$null)) return(diag(nrow(moments$null)))
  qr.Q(qr(moments$null), complete = TRUE)[, -seq_len(ncol(moments$null)), drop = FALSE]
}

denoised <- function(gram, moments) {
  noise <- moments$noise
  found <- eigen(symmetric(gram), symmetric = TRUE)
  values <- rev(found$values)
  vectors <- found$vectors[, rev(seq_along(values)), drop = FALSE]
  width <- length(values)
  deviation <- sqrt(2) * noise$offdiagonal_sd
  if (width && deviation > 0) {
    edge <- noise$expected_norm(width) / gaussian_norm(deviation, width)
    values <- without_repulsion(values, (edge * deviation)^2, INDISTINCT * deviation)
    values <- shrunken(values, deviation^2)
  }
  values <- within_trace(values, largest_trace(moments))
  symmetric(vectors %*% (values * t(vectors)))
}

# The nearest rising sequence, each average of k with the factor of James and Stein for noise v / k.
shrunken <- function(values, variance) {
  pooled <- stats::isoreg(values)$yf
  runs <- rle(pooled)
  sizes <- rep(runs$lengths, runs$lengths)
  positive <- pmax(pooled, 0)
  positive * (1 - variance / pmax(sizes * positive^2, variance))
}

within_trace <- function(values, limit) {
  if (limit <= 0) return(numeric(length(values)))
  held <- pmax(values, 0)
  if (sum(held) <= limit) return(held)
  falling <- sort(held, decreasing = TRUE)
  cuts <- (cumsum(falling) - limit) / seq_along(falling)
  pmax(held - cuts[max(which(falling >= cuts))], 0)
}

largest_trace <- function(moments) {
  if (!is.null(moments$public_rows)) return(moments$public_rows * moments$radius^2)
  if (is_clipped(moments) || is.null(moments$rows)) return(Inf)
  moments$rows * moments$radius^2
}

is_clipped <- function(moments) {
  if (moments$lifted) return(is.null(moments$clip) || moments$clip$lost > 0)
  longest <- moments$schema$constant + sum(vapply(moments$schema$declared, `[[`, 0, "weight")^2)
  moments$radius^2 < longest * (1 - 1e-9)
}

# x = change v, the columns in original units.
change_of_units <- function(schema) {
  if (any(vapply(schema$original, `[[`, 0, "shift") != 0)) {
    stop("without a constant column the matrix cannot be moved to original units", call. = FALSE)
  }
  change <- matrix(0, length(schema$encoded), length(schema$encoded))
  for (i in seq_along(schema$original)) change[i, schema$original[[i]]$positions] <- schema$original[[i]]$parts
  change
}
