# The law of the noise as numbers in encoded units: standard deviations on and off the diagonal, the mean on
# the diagonal, and the expected norm on any number of columns.

SHORTFALL <- rbind(c(0.2198, 0.1450, -0.0628), c(0.3911, 0.7027, -0.1434), c(-0.1474, -0.5788, 0.0843))

# The expected norm over its limit for many columns; fitted by dpgram's benchmarks/noise_norms.py.
finite_width_factor <- function(width, inverse_ratio) {
  root <- width^(-1 / 3)
  1 - root^2 * sum(SHORTFALL * outer(root^(0:2), inverse_ratio^(0:2)))
}

gaussian_norm <- function(sigma, width) {
  if (width == 1) sigma * sqrt(2 / pi) else sigma * sqrt(2 * width) * finite_width_factor(width, 0)
}

SAMPLED <- c("wishart-sketch", "inverse-wishart", "noisy-inverse", "eigenvector-sampling", "deflation")

noise_of <- function(law, unit, stand_in) {
  found <- switch(law$type,
    "symmetric-gaussian" = list(
      diagonal = law$sigma, off = law$sigma / sqrt(2), mean = 0,
      norm = function(k) gaussian_norm(law$sigma, k)
    ),
    "matrix-laplace" = list(
      diagonal = sqrt(law$width + 1) / law$theta, off = sqrt((law$width + 1) / 2) / law$theta, mean = 0,
      norm = function(k) matrix_laplace_norm(law, k)
    ),
    "entrywise-laplace" = list(
      diagonal = sqrt(2) * law$diagonal_scale, off = sqrt(2) * law$scale, mean = 0,
      norm = function(k) {
        if (k == 1) law$diagonal_scale else 2 * sqrt(2) * law$scale * sqrt(k) * finite_width_factor(k, 0)
      }
    ),
    "additive-wishart" = list(
      diagonal = law$scale * sqrt(2 * law$degrees), off = law$scale * sqrt(law$degrees),
      mean = law$degrees * law$scale,
      norm = function(k) {
        if (k == 1) law$scale * sqrt(2 * law$degrees) * sqrt(2 / pi)
        else law$scale * (k + 2 * sqrt(law$degrees * k)) * finite_width_factor(k, 0)
      }
    ),
    sampled_noise(law, unit, stand_in)
  )
  list(
    diagonal_sd = found$diagonal * unit, offdiagonal_sd = found$off * unit, mean_diagonal = found$mean * unit,
    expected_norm = function(k) if (k == 0 || isTRUE(found$diagonal == 0)) 0 else found$norm(k) * unit,
    added = !law$type %in% SAMPLED, type = law$type
  )
}

matrix_laplace_norm <- function(law, width) {
  if (width == 1) {
    shape <- 0.5 * (law$width + 1)
    return(2 * exp(lgamma(shape + 0.5) - lgamma(shape)) / (sqrt(pi) * law$theta))
  }
  ratio <- (law$width + 1) / width
  squared <- (sqrt(ratio^2 + 4 * ratio) - ratio - 1) / (2 * ratio - 1)
  edge <- 2 * ratio * sqrt(squared) / (1 - squared) + 1 / sqrt(squared)
  edge * 0.5 * width / law$theta * finite_width_factor(width, 1 / ratio)
}

# How far a sampled release is off depends on the matrix itself: the Python library finds the size of a
# Gaussian law that stands in for it by simulation, and here it has to be given.
sampled_noise <- function(law, unit, stand_in) {
  if (!law$type %in% SAMPLED) stop("the noise law ", sQuote(law$type), " is not known here", call. = FALSE)
  mean <- switch(law$type, "wishart-sketch" = law$ridge, "inverse-wishart" = law$prior, 0)
  if (is.null(stand_in)) {
    missing <- function() {
      stop("the error of this release depends on the table and is sized by simulation, which R cannot repeat: ",
        "give the number that Python finds, read_release(path, stand_in = ...); it is ",
        "Moments.of(release).noise.diagonal_sd of dpgram.analysis", call. = FALSE)
    }
    return(list(diagonal = NA_real_, off = NA_real_, mean = mean, norm = function(k) missing()))
  }
  sigma <- stand_in / unit
  list(diagonal = sigma, off = sigma / sqrt(2), mean = mean, norm = function(k) gaussian_norm(sigma, k))
}

# Cov(B'N r) for functions B (columns) and r, s = sd N_ii, o = sd N_ij.
residual_covariance <- function(noise, residual, basis) {
  off <- noise$offdiagonal_sd^2
  along <- crossprod(basis, residual)
  covariance <- off * (sum(residual^2) * crossprod(basis) + tcrossprod(along))
  excess <- noise$diagonal_sd^2 - 2 * off
  if (abs(excess) > 1e-9 * off) covariance <- covariance + excess * crossprod(basis, residual^2 * basis)
  covariance
}

# Var <S, N> = s^2 sum S_ii^2 + 2 o^2 sum_{i != j} S_ij^2.
functional_variance <- function(noise, shape) {
  diagonal <- sum(diag(shape)^2)
  noise$diagonal_sd^2 * diagonal + 2 * noise$offdiagonal_sd^2 * (sum(shape^2) - diagonal)
}
