# R squared and the residual variance of the un-shrunken regression.

SIGNAL_TO_NOISE <- 6

residual_variance <- function(fit) {
  found <- fit$inference
  degrees <- if (is.null(fit$moments$rows)) 0 else fit$moments$rows - length(fit$design$names)
  if (degrees < 1) stop(NO_DEGREES, call. = FALSE)
  solution <- found$solution
  scale <- fit$design$target_scale^2
  raw <- solution$residual_sum / degrees
  shape <- tcrossprod(solution$residual)
  if (!is.null(fit$moments$constant)) { # n is noisy too
    shape <- shape - max(raw, 0) * tcrossprod(drop(project(fit$moments, fit$moments$constant)))
  }
  variance <- solution$inflation * functional_variance(fit$moments$noise, shape) / degrees^2
  list(estimate = max(raw, 0) * scale, raw = raw * scale, std_error = sqrt(variance) * scale)
}

# The mean of s^2 given its noisy estimate and that it is not negative: what a new observation adds.
plausible_variance <- function(found) {
  if (found$std_error == 0) return(found$estimate)
  ratio <- found$raw / found$std_error
  hazard <- exp(stats::dnorm(ratio, log = TRUE) - pnorm(ratio, log.p = TRUE))
  found$raw + found$std_error * hazard
}

r_squared <- function(fit, level = 0.95) {
  moments <- fit$moments
  noise <- moments$noise
  solution <- fit$inference$solution
  columns <- if (fit$design$intercept) fit$design$vectors[, 1, drop = FALSE] else fit$design$vectors[, 0, drop = FALSE]
  basis <- orthonormal(project(moments, columns))
  total <- solve_unshrunken(moments$consistent, basis, drop(project(moments, fit$design$target_vector)), noise)
  if (total$residual_sum <= SIGNAL_TO_NOISE * noise$diagonal_sd * sum(total$residual^2)) {
    stop("the variance of the target does not stand clear of the noise, so its explained share is unknown", call. = FALSE)
  }
  ratio <- solution$residual_sum / total$residual_sum
  left <- tcrossprod(solution$residual)
  whole <- tcrossprod(total$residual)
  scale <- total$residual_sum^2
  estimate <- min(max(1 - ratio, 0), 1)
  variance <- solution$inflation * functional_variance(noise, left - ratio * whole) / scale
  mixed <- 0.25 * (functional_variance(noise, left + whole) - functional_variance(noise, left - whole))
  curvature <- functional_variance(noise, whole)
  if (fit$kind == "population") {
    degrees <- moments$rows - length(fit$design$names)
    variance <- variance + 4 * estimate * (1 - estimate)^2 / degrees
  }
  slope <- 2 * (mixed - ratio * curvature) / scale
  ends <- fieller(1 - ratio, variance, slope, curvature / scale, quantile_of(level, NULL))
  list(estimate = estimate, low = min(max(ends[1], 0), 1), high = min(max(ends[2], 0), 1))
}
