# Errors of a declared linear model, which allow for unequal variances: the sandwich with the middle that the
# release measured, as far as its noise lets it be seen.

DIRECTION <- 2^36
AGREES <- 1e-5
SURE <- 3
WIDENED <- 1.21
SMALLEST_LEVEL <- 0.02

robust_middle <- function(moments, solution, classical) {
  measured <- products_of(moments, solution)
  if (is.null(measured) || classical <= 0 || !length(solution$theta)) return(NULL)
  parts <- eigen(symmetric(solution$resolvent), symmetric = TRUE)
  if (min(parts$values) <= 0) return(NULL)
  width <- ncol(measured$directions)
  unit <- (measured$bound * moments$radius^2 / LATTICE)^2 * sum(solution$residual^2)
  turn <- crossprod(solution$basis, measured$directions)
  cells <- from_lower(as.numeric(unlist(measured$cells)), width)
  noisy <- turn %*% (cells * unit) %*% t(turn)
  if (!all(is.finite(noisy))) return(NULL)
  sizes <- classical / parts$values
  halves <- sqrt(sizes)
  standard <- crossprod(parts$vectors, noisy %*% parts$vectors) / tcrossprod(halves)
  variance <- 0.5 * (measured$noise$sigma * unit)^2
  inverse <- 1 / sizes
  mean <- sum(diag(standard)) / width
  mean_sd <- sqrt(2 * variance * sum(inverse^2)) / width
  if (mean <= SURE * mean_sd) return(NULL)
  apart <- standard - mean * diag(width)
  energy <- sum(apart^2)
  hidden <- variance * (sum(inverse)^2 + sum(inverse^2)) - width * mean_sd^2
  left <- if (energy > 0) max(0, 1 - hidden / energy) else 0
  shape <- eigen(symmetric(mean * diag(width) + left * apart), symmetric = TRUE)
  levels <- pmax(shape$values, SMALLEST_LEVEL * mean)
  shape <- shape$vectors %*% (levels * t(shape$vectors))
  middle <- parts$vectors %*% (shape * tcrossprod(halves)) %*% t(parts$vectors)
  middle <- middle + WIDENED * 2 * variance * left / (mean * mean(sizes)) * diag(width)
  symmetric(middle)
}

# What was measured for the model with this solution.
products_of <- function(moments, solution) {
  length <- sqrt(sum(solution$residual^2))
  unit <- if (length > 0) solution$residual / length else solution$residual
  for (each in moments$measured$products) {
    directions <- vapply(each$basis, function(one) as.numeric(unlist(one)), numeric(length(unit))) / DIRECTION
    if (ncol(directions) != ncol(solution$basis)) next
    outside <- directions - solution$basis %*% crossprod(solution$basis, directions)
    if (max(abs(outside)) < AGREES && max(abs(as.numeric(unlist(each$residual)) / DIRECTION - unit)) < AGREES) {
      each$directions <- directions
      return(each)
    }
  }
  NULL
}
