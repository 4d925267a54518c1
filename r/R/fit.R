# The shrunken fit that predicts best: what remains of each direction of the normal equations, by the law of
# the noise. Chosen on development data and frozen on 2026-11-16; see dpgram's docs/explanation/accuracy.md.

EXPLAINED <- 2^(-16:0)
LOG_PRIOR <- log(EXPLAINED^3 + 1 / 3000)
WIDENING <- 4
FLOOR <- 0.5
NEGLIGIBLE <- 1e-10
LARGEST_MISFIT <- 1e100
COUNT_TO_NOISE <- 4
TINY <- .Machine$double.xmin

orthonormal <- function(vectors) {
  if (!ncol(vectors)) return(vectors)
  found <- qr(vectors, LAPACK = TRUE)
  sizes <- abs(diag(qr.R(found)))
  if (length(sizes) == ncol(vectors) && min(sizes) > 1e-8 * max(sizes)) return(qr.Q(found))
  parts <- svd(vectors, nv = 0)
  parts$u[, parts$d > 1e-8 * parts$d[1], drop = FALSE]
}

# An orthonormal basis of all that is orthogonal to `direction`: a reflection less its first column.
complement_of <- function(direction) {
  mirror <- direction / sqrt(sum(direction^2))
  mirror[1] <- mirror[1] + if (mirror[1] >= 0) 1 else -1
  (diag(length(mirror)) - 2 / sum(mirror^2) * tcrossprod(mirror))[, -1, drop = FALSE]
}

fit_auto <- function(moments, design) {
  gram <- moments$consistent
  basis <- orthonormal(project(moments, design$vectors))
  target <- drop(project(moments, design$target_vector))
  free <- numeric(length(target))
  centred <- FALSE
  if (design$intercept) {
    constant <- drop(project(moments, design$vectors[, 1]))
    toward <- drop(gram %*% constant)
    count <- sum(constant * toward)
    centred <- count > COUNT_TO_NOISE * moments$noise$diagonal_sd * sum(constant^2)
    if (centred) {
      mean <- sum(target * toward) / count
      basis <- basis %*% complement_of(drop(crossprod(basis, toward)))
      free <- mean * constant
      target <- target - free
    }
  }
  if (moments$lifted) { # what the coordinates already tell of the target is not fitted again
    known <- drop(basis %*% crossprod(basis, target))
    target <- target - known
    free <- free + known
  }
  toward <- drop(gram %*% target)
  found <- noise_aware(
    symmetric(crossprod(basis, gram %*% basis)), drop(crossprod(basis, toward)), sum(target * toward),
    moments$noise, sqrt(sum(target^2))
  )
  fitted <- drop(basis %*% found$theta) + free
  beta <- least_squares(project(moments, design$vectors), within_tables(moments, fitted))
  cautions <- if (design$intercept && !centred) {
    paste("the noisy number of rows does not stand clear of its noise, so the intercept was shrunk with the",
      "rest: treat every number here as a guess")
  }
  list(
    values = drop(design$to_original %*% beta) + design$offset,
    effective = sum(found$kept) + centred, cautions = cautions
  )
}

# The solution of least norm.
least_squares <- function(matrix, right) {
  parts <- svd(matrix)
  keep <- parts$d > .Machine$double.eps * max(dim(matrix)) * parts$d[1]
  drop(parts$v[, keep, drop = FALSE] %*% (crossprod(parts$u[, keep, drop = FALSE], right) / parts$d[keep]))
}

noise_aware <- function(A, b, yy, noise, target_norm) {
  width <- length(b)
  if (!width) return(list(theta = numeric(), kept = numeric()))
  found <- eigen(A, symmetric = TRUE)
  u <- drop(crossprod(found$vectors, b))
  alpha <- denoised_values(found$values, noise)
  c <- smooth_positive(yy, 0.25 * (noise$diagonal_sd * target_norm^2)^2)
  size <- target_norm^2
  off <- noise$offdiagonal_sd^2
  least <- NEGLIGIBLE * max(alpha)
  held <- pmax(alpha, least + TINY)
  evidence <- vapply(seq_along(EXPLAINED), function(m) {
    share <- EXPLAINED[m] * c / width
    q <- share / held
    spread <- share * held + off * (size + sum(q) + q) + TINY
    LOG_PRIOR[m] - 0.5 * sum(pmin(u^2 / spread, LARGEST_MISFIT) + log(spread))
  }, 0)
  weights <- exp(evidence - max(evidence))
  p <- WIDENING * EXPLAINED * c / max(sum(alpha), TINY)
  v <- off * (size + (width + 1) * p) + p * least^2 + TINY
  gain <- vapply(alpha, function(a) sum(weights * p * a / (p * a^2 + v)) / sum(weights), 0)
  list(theta = drop(found$vectors %*% (gain * u)), kept = gain * alpha)
}

# What remains of eigenvalues that noise drove apart.
denoised_values <- function(values, noise) {
  if (noise$diagonal_sd == 0) return(pmax(values, 0))
  together <- without_repulsion(values, 2 * noise$offdiagonal_sd^2, noise$diagonal_sd)
  smooth_positive(together, FLOOR * noise$expected_norm(length(values))^2 / 4)
}

without_repulsion <- function(values, strength, reach) {
  gaps <- outer(values, values, `-`)
  values - strength * rowSums(gaps / (gaps^2 + reach^2))
}

smooth_positive <- function(x, a) {
  size <- 0.5 * (abs(x) + sqrt(x^2 + 4 * a))
  ifelse(x >= 0, size, a / pmax(size, TINY))
}
