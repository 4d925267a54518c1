# A declared linear model: one Newton step from the fit of the matrix back to weighted least squares, with errors
# that allow for unequal variances and for dependent rows of a unit.

DIRECTION_UNIT <- 2^-36
SCORE_UNIT <- 2^15 * (1 - 2^-10)
AGREES <- 1e-5
SURE <- 3
WIDENED <- 1.21
LEAST_LEVEL <- 0.02
REJECTED <- 1e-3
LEAST_PVALUE <- 1e-4
DIAGONAL_CHANCE <- 8
OFF_CHANCE <- 3
STEP_HIDDEN <- paste(
  "noise hides what was measured for this declared model, so that the fit is that of the matrix, with errors that",
  "take variances for equal"
)

linear_steps <- function(moments) {
  Filter(function(each) each$kind == "step" && each$family == "linear", moments$measured)
}

# What was measured for a linear model of this target on these columns, or NULL.
declared_step <- function(moments, design) {
  columns <- setdiff(design$sources, INTERCEPT)
  for (each in linear_steps(moments)) {
    if (design$intercept && each$target == design$target && setequal(unlist(each$on), columns)) return(each)
  }
  NULL
}

# Estimate and covariances in original units; NULL where nothing was declared, or noise hides it. Numbers of a
# forged file may be beyond all that can be solved: then there is no step either.
linear_step <- function(moments, design, known) {
  measured <- declared_step(moments, design)
  if (is.null(measured) || !is.null(refusal_of(moments, design, known))) return(NULL)
  tryCatch(stepped(moments, design, known, measured), error = function(problem) NULL)
}

stepped <- function(moments, design, known, measured) {
  space <- feature_space(moments, design, measured)
  step <- newton_step(measured, space)
  if (is.null(step) || measured$size - sqrt(sum(step$start^2)) > AGREES * measured$size) return(NULL)
  rows <- max(moments$rows, 1)
  size <- length(step$start)
  turn <- solve(known$to_terms, space$to_terms)
  seen <- crossprod(turn, solve(known$solution$resolvent, turn))
  held <- drawn_towards(step$hessian, step$hessian_variance, seen)
  if (is.null(held)) return(NULL)
  residual <- max(known$solution$residual_sum, 0) * design$target_scale^2 / rows
  classical <- (if (residual > 0) residual else measured$limit^2) * held$middle
  found <- if (!is.null(step$spread)) {
    repaired(step$spread, step$spread_variance, classical, rows, 1 - weight_left(measured$radius, size))
  }
  sampling <- rows / max(rows - size, 1) * (if (is.null(found)) classical else found$widened)
  inverse <- solve(held$middle)
  moved <- drop(inverse %*% step$score)
  scores <- squared_score(step$score, step$score_variance)
  steps <- inverse %*% scores %*% inverse
  privacy <- step$score_variance * diag(size) + held$scale_variance * scores +
    held$left * step$hessian_variance * (sum(diag(steps)) * diag(size) + steps)
  original <- design$to_original %*% space$to_terms / design$target_scale
  in_units <- function(middle) symmetric(original %*% inverse %*% middle %*% inverse %*% t(original))
  list(
    estimate = drop(original %*% (step$start + moved)), privacy = in_units(privacy),
    covariance = in_units(privacy + sampling), unequal_variance = found$test,
    cautions = limit_caution(moments, design, measured, taken(step, space, moments))
  )
}

# How what the limit of residuals takes may move coefficients; NULL where public bounds leave no longer ones.
limit_caution <- function(moments, design, measured, part) {
  target <- moments$schema$encoded[[design$target_at]]
  if (measured$limit >= if (target$kind == "numeric") 2 * target$half_width else 1) return(NULL)
  sprintf(paste(
    "residuals beyond +/-%1$.3g count as +/-%1$.3g: coefficients are those of least squares only where errors are",
    "symmetric given the features, and no interval here includes the difference. By noisy sums such residuals,",
    "and rows shortened by their features, are %2$s of all rows; a release with a larger limit of this model has fewer"
  ), measured$limit, part)
}

# Which part of all rows the Hessian matrix lacks: the ends of a 95% interval, in words.
taken <- function(step, space, moments) {
  held <- drop(project(moments, moments$constant))
  whole <- drop(crossprod(held, moments$consistent %*% held))
  if (!(whole > 0)) return("an unknown part")
  kept <- drop(crossprod(space$constant, step$hessian %*% space$constant))
  own <- 2 * step$hessian_variance * sum(space$constant^2)^2
  noise <- 2 * moments$noise$offdiagonal_sd^2 * sum(held^2)^2
  reach <- 1.96 * sqrt(own + noise * (kept / whole)^2) / whole
  ends <- pmin(pmax(1 - kept / whole + c(-1, 1) * reach, 0), 1)
  sprintf("%.1f%% to %.1f%%", 100 * ends[1], 100 * ends[2])
}

# The terms as functions of x = T v, v the encoded columns of the features alone: an orthonormal basis of them,
# and the way from its coefficients to those of the design's terms.
feature_space <- function(moments, design, measured) {
  schema <- moments$schema
  on <- unlist(measured$on)
  needed <- c(on, unlist(lapply(schema$declared[on], `[[`, "factors")))
  columns <- schema$declared[names(schema$declared) %in% needed]
  places <- c(1, unlist(lapply(columns, `[[`, "positions")))
  back <- lift_of(measured$coordinates, length(places))
  groups <- if (moments$complete) Filter(function(column) column$group, columns)
  sums <- vapply(groups, function(column) {
    v <- numeric(length(schema$encoded))
    v[column$positions] <- 1 / schema$weights[column$positions]
    v[1] <- -1 / schema$weights[[1]]
    v[places]
  }, numeric(length(places)))
  null <- if (length(groups)) qr.Q(qr(back %*% sums, LAPACK = TRUE)) else matrix(0, length(places), 0)
  terms <- back %*% design$vectors[places, , drop = FALSE]
  terms <- terms - null %*% crossprod(null, terms)
  basis <- orthonormal(terms)
  if (ncol(basis) < ncol(terms)) stop("the features are linearly dependent by construction", call. = FALSE)
  one <- numeric(length(places))
  one[1] <- 1 / schema$weights[[1]]
  one <- back %*% one
  one <- one - null %*% crossprod(null, one)
  list(basis = basis, to_terms = solve(crossprod(basis, terms)), constant = drop(crossprod(basis, one)))
}

# Score, Hessian matrix and spread of the scores in that basis, and the variances of their noise (off the diagonal).
newton_step <- function(measured, space) {
  basis <- space$basis
  width <- nrow(basis)
  unit <- measured$radius / LATTICE
  scored <- unit * measured$limit / SCORE_UNIT
  inside <- function(cells) crossprod(basis, from_lower(as.numeric(unlist(cells)), width) %*% basis)
  found <- list(
    start = drop(crossprod(basis, as.numeric(unlist(measured$slopes)))) * DIRECTION_UNIT * measured$size,
    score = drop(crossprod(basis, as.numeric(unlist(measured$score)))) * scored,
    hessian = inside(measured$cells) * unit^2,
    score_variance = (measured$score_sigma * scored)^2,
    hessian_variance = (measured$noise$sigma * unit^2)^2 / 2
  )
  own <- measured$spread
  if (!is.null(own)) {
    held <- (LATTICE * own$bound * scored)^2
    found$spread <- inside(own$cells) * held
    found$spread_variance <- (own$noise$sigma * held)^2 / 2
  }
  if (all(is.finite(unlist(found)))) found
}

# What a noisy score tells of the square of the one without noise.
squared_score <- function(score, variance) {
  square <- sum(score^2)
  left <- if (square > 0) max(0, 1 - length(score) * variance / square) else 0
  left^2 * tcrossprod(score) + left * variance * diag(length(score))
}

# W = C^-1/2 M C^-1/2 = m I + D of a noisy matrix M, in the eigenvectors of C; NULL where noise hides it.
standard_of <- function(noisy, variance, classical) {
  parts <- eigen(symmetric(classical), symmetric = TRUE)
  sizes <- parts$values
  width <- length(sizes)
  if (min(sizes) <= 0) return(NULL)
  halves <- tcrossprod(sqrt(sizes))
  standard <- symmetric(crossprod(parts$vectors, noisy %*% parts$vectors)) / halves
  mean <- sum(diag(standard)) / width
  mean_variance <- 2 * variance * sum(sizes^-2) / width^2
  if (mean <= SURE * sqrt(mean_variance)) return(NULL)
  apart <- standard - mean * diag(width)
  energy <- sum(apart^2)
  hidden <- variance * (sum(1 / sizes)^2 + sum(sizes^-2)) - width * mean_variance
  list(
    sizes = sizes, vectors = parts$vectors, halves = halves, width = width, mean = mean,
    mean_variance = mean_variance, apart = apart, energy = energy, hidden = hidden,
    left = if (energy > 0) max(0, 1 - hidden / energy) else 0
  )
}

# C^1/2 (m I + l D) C^1/2, and its largest eigenvalue in units of C.
drawn <- function(seen, left) {
  shape <- eigen(seen$mean * diag(seen$width) + left * seen$apart, symmetric = TRUE)
  levels <- pmax(shape$values, LEAST_LEVEL * seen$mean)
  inner <- seen$halves * (shape$vectors %*% (levels * t(shape$vectors)))
  list(middle = symmetric(seen$vectors %*% inner %*% t(seen$vectors)), largest = max(levels))
}

# A noisy spread of scores M brought as near to a multiple of C as its noise demands. The test asks whether D is
# more than noise and chance; where it clearly is, l = 1.
repaired <- function(noisy, variance, classical, rows, clipped) {
  seen <- standard_of(noisy, variance, classical)
  if (is.null(seen)) return(NULL)
  width <- seen$width
  mean <- seen$mean
  chance <- mean^2 * (DIAGONAL_CHANCE * width + OFF_CHANCE * width * (width - 1)) / rows + width * (clipped * mean)^2
  degrees <- width * (width + 1) / 2 - 1
  statistic <- if (degrees) degrees * seen$energy / (seen$hidden + chance) else 0
  pvalue <- if (degrees) pchisq(statistic, degrees, lower.tail = FALSE) else 1
  left <- if (pvalue < REJECTED) 1 else seen$left
  found <- drawn(seen, left)
  list(
    middle = found$middle,
    widened = found$middle + WIDENED * 2 * variance * left / (mean * sum(seen$sizes) / width) * diag(width),
    test = list(statistic = statistic, degrees = degrees, pvalue = pvalue, ratio = sqrt(found$largest))
  )
}

# A noisy Hessian matrix, always drawn by l; what is left of its noise, and the relative variance of it as a whole.
drawn_towards <- function(noisy, variance, classical) {
  seen <- standard_of(noisy, variance, classical)
  if (is.null(seen)) return(NULL)
  list(
    middle = drawn(seen, seen$left)$middle, left = seen$left,
    scale_variance = (1 - seen$left) * seen$mean_variance / seen$mean^2
  )
}

# How far a clip at this radius evens scores out, where features are normal: over |x|^2 = 1 + chi^2 in 200 parts.
weight_left <- function(radius, width) {
  degrees <- max(width - 1, 1)
  ends <- seq(0, degrees + 12 * sqrt(2 * degrees), length.out = 201)
  chances <- diff(pchisq(ends, degrees))
  squares <- (ends[-1] + ends[-201]) / 2
  weights <- pmin(radius^2 / (1 + squares), 1)
  sum(weights^2 * squares * chances) / sum(weights * squares * chances)
}

# Where a declared model of the same target shows unequal variances, errors without it may be wrong.
variance_caution <- function(moments, design) {
  for (each in Filter(function(each) each$target == design$target, linear_steps(moments))) {
    test <- tryCatch({
      own <- build_design(moments, each$target, unlist(each$on))
      linear_step(moments, own, unshrunken(moments, own))$unequal_variance
    }, error = function(problem) NULL)
    if (!is.null(test) && test$pvalue < REJECTED) {
      return(sprintf(paste(
        "the declared model of %s shows errors of unequal variance (%s): those of other models, which take them",
        "for equal, may be too small by a factor of %.2g or more"
      ), each$target, test_in_words(test), test$ratio))
    }
  }
  NULL
}

test_in_words <- function(test) {
  chance <- if (test$pvalue < LEAST_PVALUE) sprintf("p < %g", LEAST_PVALUE) else sprintf("p = %.2g", test$pvalue)
  sprintf("chi squared of %d degrees = %.4g, %s", as.integer(test$degrees), test$statistic, chance)
}
