# The un-shrunken regression with its covariance: sampling error and privacy noise, or a refusal.

LOST <- 0.15
LOST_PART <- 0.15
OWN_LIMIT <- 1.15
REST_LIMIT <- 1.2
REST_LIMIT_BESIDE_LOST <- 1.1
CAUTION_INFLATION <- 1.1
FOLLOWING <- 0.5
MOST_OF_IT <- 0.25
MOST_NAMED <- 5
SHIFT <- 1
INFLUENCE <- c(
  regression = paste("the regression is one of bounded influence: it equals least squares where errors are symmetric",
    "given the features, differs where they are skewed. Least squares itself takes a release that is not adaptive"),
  covariances = paste("covariances are those of bounded influence: they differ from the usual ones where such rows",
    "decide. The usual ones take a release that is not adaptive")
)
NO_DEGREES <- "the number of rows is unknown or not larger than the number of coefficients"
MOVED_REFUSAL <- paste(
  "bounds of columns in this regression were learnt and values outside them moved to them, which no interval",
  "for the population allows for: ask for the table with its moved values (kind \"table\"), or for a release",
  "with public bounds"
)

# R = (A + zI)^-1 with z = v (1 - 1/p) tr R undoes what noise does to an inverse.
solve_unshrunken <- function(gram, basis, target, noise) {
  size <- ncol(basis)
  if (!size) {
    return(list(
      basis = basis, residual = target, residual_sum = sum(target * (gram %*% target)), inflation = 1,
      shares = numeric()
    ))
  }
  inside <- drop(crossprod(basis, target))
  outside <- target - drop(basis %*% inside)
  toward <- drop(gram %*% outside)
  b <- drop(crossprod(basis, toward))
  found <- eigen(symmetric(crossprod(basis, gram %*% basis)), symmetric = TRUE)
  v <- noise$offdiagonal_sd^2
  inverse <- 1 / shifted(found$values, v * (1 - 1 / size))
  rotated <- drop(crossprod(found$vectors, b))
  slopes <- drop(found$vectors %*% (inverse * rotated))
  resolvent <- found$vectors %*% (inverse * t(found$vectors))
  inflation <- 1 + v * sum(inverse^2)
  residual <- outside - drop(basis %*% slopes)
  squares <- sum(residual^2)
  deflated <- min(squares * (1 - 1 / inflation), squares - sum(outside^2))
  spread <- residual_covariance(noise, residual, basis) - v * deflated * diag(size)
  list(
    basis = basis, theta = inside + slopes, slopes = slopes, resolvent = resolvent, inflation = inflation,
    residual = residual, deflated = deflated,
    residual_sum = sum(outside * toward) - sum(inverse * rotated^2) + sum(outside^2) * v * sum(inverse),
    privacy = symmetric(resolvent %*% spread %*% resolvent), shares = v * inverse^2,
    smallest = found$values[size], weakest = found$vectors[, size]
  )
}

# w + z for the only root z > max(0, -min w) of z = v sum 1/(w + z). The excess is increasing and concave, so
# Newton's method climbs to the root from below.
shifted <- function(values, variance) {
  least <- min(values)
  if (variance == 0) {
    if (abs(least) <= 1e-12 * max(abs(values))) {
      stop("the features are linearly dependent in this table: leave out one of them", call. = FALSE)
    }
    return(values)
  }
  edge <- max(0, -least)
  above <- values + edge
  reach <- sqrt(variance * length(values))
  x <- if (least > 0) 0 else variance / (edge + reach)
  for (step in 1:500) {
    inverse <- 1 / (above + x)
    change <- -(edge + x - variance * sum(inverse)) / (1 + variance * sum(inverse^2))
    x <- min(x + change, reach)
    if (!(change > 1e-15 * x)) break
  }
  above + x
}

# The solution of a design, and the way from its coordinates to the design's terms.
unshrunken <- function(moments, design) {
  held <- project(moments, design$vectors)
  basis <- orthonormal(held)
  if (ncol(basis) < ncol(held)) {
    stop("the features of this regression are linearly dependent by construction: leave out one of them",
      call. = FALSE)
  }
  target <- drop(project(moments, design$target_vector))
  list(
    solution = solve_unshrunken(moments$consistent, basis, target, moments$noise),
    to_terms = solve(crossprod(basis, held))
  )
}

infer <- function(moments, design, kind) {
  known <- unshrunken(moments, design)
  moved <- moved_columns(moments, design)
  degrees <- if (kind == "population" && !is.null(moments$rows)) moments$rows - length(design$names)
  enough <- !is.null(degrees) && degrees >= 1
  if (!enough) degrees <- NULL
  step <- linear_step(moments, design, known)
  if (!is.null(step) && !length(moved) && (kind == "table" || enough)) {
    return(by_step(moments, kind, degrees, known$solution, step))
  }
  solution <- known$solution
  jacobian <- design$to_original %*% known$to_terms
  refusal <- refusal_of(moments, design, known)
  covariance <- solution$privacy
  if (kind == "population") {
    if (is.null(refusal) && length(moved)) refusal <- MOVED_REFUSAL
    if (is.null(refusal) && !enough) refusal <- NO_DEGREES
    if (enough) {
      sampling <- moments$sampling_factor * max(solution$residual_sum, 0) / degrees
      covariance <- covariance + sampling * solution$resolvent
    }
  }
  combine <- function(matrix) {
    combined_by(solution, covariance, moments$noise$offdiagonal_sd, matrix %*% jacobian)
  }
  found <- c(list(
    kind = kind, refusal = refusal, degrees = degrees, solution = solution, declared = FALSE, combine = combine,
    estimate = drop(jacobian %*% solution$theta) + design$offset,
    covariance = jacobian %*% covariance %*% t(jacobian)
  ), combine(diag(nrow(jacobian))))
  hidden <- is.null(step) && !is.null(declared_step(moments, design))
  found$cautions <- c(cautions_of(moments, found, moved, design), if (hidden) STEP_HIDDEN)
  found
}

# Of a declared model whose step stands clear of its noise: the covariance is the same whatever the coefficients.
by_step <- function(moments, kind, degrees, solution, step) {
  covariance <- if (kind == "population") step$covariance else step$privacy
  combine <- function(matrix) {
    level <- pmax(rowSums((matrix %*% covariance) * matrix), 0)
    nothing <- numeric(length(level))
    list(level = level, slope = nothing, curvature = nothing, trusted = nothing == 0)
  }
  c(list(
    kind = kind, refusal = NULL, degrees = degrees, solution = solution, declared = TRUE, combine = combine,
    unequal_variance = if (kind == "population") step$unequal_variance,
    estimate = step$estimate, covariance = covariance, cautions = c(row_cautions(moments, kind, declared = TRUE), step$cautions)
  ), combine(diag(length(step$estimate))))
}

# How the variance of linear combinations moves with the hypothesis: level + slope d + curvature d^2.
combined_by <- function(solution, covariance, off, functionals) {
  v <- off^2
  toward <- functionals %*% covariance
  sizes <- rowSums(toward * functionals)
  none_lost <- all(solution$shares <= LOST)
  confined <- covariance
  if (!none_lost) {
    parts <- eigen(symmetric(solution$resolvent), symmetric = TRUE)
    kept <- parts$vectors[, v * parts$values^2 <= LOST, drop = FALSE]
    confined <- kept %*% (crossprod(kept, covariance %*% kept)) %*% t(kept)
  }
  ahead <- functionals %*% confined
  lengths <- rowSums(ahead * functionals)
  ahead <- ahead / ifelse(lengths > 0, lengths, Inf)
  rotated <- functionals %*% solution$resolvent
  own <- rowSums(rotated * ahead)
  reach <- (if (none_lost) FOLLOWING else 0) * v * rowSums(rotated^2)
  squares <- rowSums(ahead^2)
  share <- pmin(squares * sizes / max(sum(diag(covariance)), TINY), 1)
  list(
    level = sizes + reach * solution$deflated * share,
    slope = drop(2 * (v * (rotated %*% solution$slopes) * own + reach * (ahead %*% solution$slopes))),
    curvature = v * own^2 + reach * squares,
    trusted = 1 + v * rowSums(rotated^2) / pmax(rowSums(functionals^2), TINY) <= OWN_LIMIT
  )
}

# {b : (estimate - b)^2 <= q^2 Var(b)}: Fieller's interval.
fieller <- function(estimate, level, slope, curvature, quantile) {
  squared <- quantile^2
  lead <- 1 - squared * curvature
  bounded <- ifelse(lead > 0, lead, NA)
  middle <- 0.5 * squared * slope / bounded
  half <- sqrt(pmax(middle^2 + squared * level / bounded, 0))
  cbind(ifelse(lead > 0, estimate + middle - half, -Inf), ifelse(lead > 0, estimate + middle + half, Inf))
}

quantile_of <- function(level, degrees) {
  if (!is.numeric(level) || level <= 0 || level >= 1) {
    stop("the level of an interval is a probability between 0 and 1", call. = FALSE)
  }
  tail <- 0.5 * (1 - level)
  if (is.null(degrees)) -qnorm(tail) else -qt(tail, degrees)
}

bounded <- function(found, level = 0.95) found$trusted & quantile_of(level, found$degrees)^2 * found$curvature < 1

ratios <- function(found) {
  variance <- found$level - found$slope * found$estimate + found$curvature * found$estimate^2
  errors <- sqrt(pmax(variance, 0))
  ifelse(errors > 0, found$estimate / errors, sign(found$estimate) * Inf)
}

p_values <- function(found) {
  ratio <- ifelse(bounded(found), abs(ratios(found)), NA)
  2 * if (is.null(found$degrees)) pnorm(-ratio) else pt(-ratio, found$degrees)
}

check_inference <- function(found) {
  if (!is.null(found$refusal)) {
    stop("no standard errors or intervals for this regression: ", found$refusal, call. = FALSE)
  }
}

refusal_of <- function(moments, design, known) {
  solution <- known$solution
  shares <- solution$shares
  kept <- shares[shares <= LOST]
  lost <- length(shares) - length(kept)
  limit <- if (lost) REST_LIMIT_BESIDE_LOST else REST_LIMIT
  if (lost <= LOST_PART * length(shares) && 1 + sum(kept) <= limit) return(NULL)
  sizes <- abs(drop(known$to_terms %*% solution$weakest)) * sqrt(colSums(design$vectors^2))
  order <- order(-sizes)
  order <- order[sizes[order] >= MOST_OF_IT * max(sizes)]
  named <- design$names[order[seq_len(min(MOST_NAMED, length(order)))]]
  more <- if (length(order) > MOST_NAMED) sprintf(" and %d more", length(order) - MOST_NAMED) else ""
  told <- if (length(named) == 1) {
    paste("too little is known of", named)
  } else {
    sprintf("too little tells %s and %s%s apart", paste(named[-length(named)], collapse = ", "), named[length(named)], more)
  }
  sprintf(paste0(
    "the privacy noise is too large for these features: the weakest combination of them has strength %.3g ",
    "(smallest eigenvalue) where the noise alone reaches %.3g, so its coefficients could be almost anything (%s)"
  ), solution$smallest, moments$noise$expected_norm(length(shares)), told)
}

# Columns of the regression, or behind its products, whose bounds were learnt.
moved_columns <- function(moments, design) {
  used <- c(moments$schema$encoded[[design$target_at]]$source, design$sources)
  used <- c(used, unlist(lapply(moments$schema$declared[intersect(used, names(moments$schema$declared))], `[[`, "factors")))
  intersect(moments$learnt, used)
}

cautions_of <- function(moments, found, moved, design) {
  told <- character()
  refused <- !is.null(found$refusal)
  if (!refused && !moments$noise$added) {
    told <- c(told, paste("this mechanism's error depends on the table, so intervals in closed form are",
      "approximate"))
  }
  if (!refused && found$solution$inflation > CAUTION_INFLATION) {
    told <- c(told, "the privacy noise is close to what these features can bear: intervals tend to be too wide")
  }
  told <- c(told, row_cautions(moments, found$kind))
  if (length(moved) && found$kind == "table") {
    told <- c(told, paste("bounds were learnt, and values outside them were moved to them: coefficients are those",
      "of the moved values"))
  }
  if (!refused && found$kind == "population") told <- c(told, variance_caution(moments, design))
  if (!refused && !all(found$trusted)) {
    told <- c(told, paste0("no interval for ", paste(design$names[!found$trusted], collapse = ", "),
      ": the table tells too little about it to stand clear of the noise"))
  }
  told
}

# How rows that were clipped or weighted differ from those that came in; declared models have a clip of their own.
row_cautions <- function(moments, kind, declared = FALSE, of = INFLUENCE["regression"]) {
  told <- character()
  clipped <- !declared && is_clipped(moments)
  if (clipped && !moments$lifted) {
    told <- c(told, sprintf("rows were clipped to the radius %g: long rows count less", moments$radius))
  } else if (clipped && !is_least_squares(moments)) {
    told <- c(told, paste("rows far from the others count less, so that", of))
  }
  if (!is.null(moments$unit)) {
    told <- c(told, paste0(if (identical(moments$unit_rule$counts, "units")) {
      sprintf("m rows of one '%s' count 1/m each", moments$unit)
    } else {
      sprintf("of each '%s' at most %d rows were used", moments$unit, as.integer(moments$unit_rule$rows_at_most))
    }, if (kind == "population") "; intervals allow for any dependence between rows of one" else ""))
  }
  told
}

is_least_squares <- function(moments) {
  if (is.null(moments$clip) || is.null(moments$rows) || moments$rows <= 0) return(FALSE)
  clip <- moments$clip
  beyond <- clip$taken / (1 - clip$taken)
  doubt <- clip$lost_sd * sqrt(sum(beyond^2) / sum(clip$taken^2))
  0.5 * moments$radius^2 * (sum(clip$shares * beyond) + 2 * doubt) * sqrt(moments$rows) <= SHIFT
}
