# A fitted regression, and the questions that R users ask of one.

dp_lm <- function(formula, release, reference = character(), kind = c("population", "table")) {
  moments <- needs_size(release)
  kind <- match.arg(kind)
  asked <- read_formula(formula, moments$schema)
  design <- build_design(moments, asked$target, asked$on, asked$intercept, as.list(reference))
  fitted <- fit_auto(moments, design)
  structure(list(
    call = match.call(), formula = formula, kind = kind, moments = moments, design = design,
    fitted_coefficients = stats::setNames(fitted$values, design$names),
    effective_parameters = fitted$effective,
    inference = infer(moments, design, kind),
    cautions = c(fitted$cautions, empty_caution(design))
  ), class = "dp_lm")
}

needs_size <- function(release) {
  if (!inherits(release, "dp_release")) stop("this is not a release: see read_release()", call. = FALSE)
  if (is.na(release$moments$noise$diagonal_sd)) release$moments$noise$expected_norm(2)
  release$moments
}

empty_caution <- function(design) {
  if (length(design$empty)) {
    paste0("noisy counts show no rows to speak of with ", paste(design$empty, collapse = ", "),
      ": left out of the fit, so counted with the reference")
  }
}

coef.dp_lm <- function(object, fitted = FALSE, ...) {
  if (fitted) return(object$fitted_coefficients)
  found <- object$inference
  check_inference(found)
  stats::setNames(ifelse(bounded(found), found$estimate, NA), object$design$names)
}

vcov.dp_lm <- function(object, ...) {
  found <- object$inference
  check_inference(found)
  clear <- bounded(found)
  covariance <- ifelse(outer(clear, clear, `&`), found$covariance, NA)
  dimnames(covariance) <- list(object$design$names, object$design$names)
  covariance
}

confint.dp_lm <- function(object, parm, level = 0.95, ...) {
  found <- object$inference
  check_inference(found)
  ends <- fieller(found$estimate, found$level, found$slope, found$curvature, quantile_of(level, found$degrees))
  ends[!found$trusted, ] <- rep(c(-Inf, Inf), each = sum(!found$trusted))
  tails <- c(0.5 * (1 - level), 0.5 * (1 + level))
  dimnames(ends) <- list(object$design$names, paste(format(100 * tails, trim = TRUE, digits = 3), "%"))
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

nobs.dp_lm <- function(object, ...) {
  if (is.null(object$moments$rows)) stop("the number of rows is unknown", call. = FALSE)
  object$moments$rows
}

predict.dp_lm <- function(object, newdata, interval = c("none", "confidence", "prediction"), level = 0.95, ...) {
  interval <- match.arg(interval)
  x <- new_rows(object, newdata)
  unknown <- without_rows(object, newdata, nrow(x))
  base <- object$design$base
  if (interval == "none") return(moved_into_bounds(object, drop(x %*% object$fitted_coefficients) + base))
  found <- object$inference
  check_inference(found)
  combined <- found$combine(x)
  more <- if (interval == "prediction") plausible_variance(residual_variance(object)) else 0
  mean <- drop(x %*% found$estimate)
  ends <- fieller(mean, combined$level + more, combined$slope, combined$curvature, quantile_of(level, found$degrees))
  ends[!combined$trusted, ] <- rep(c(-Inf, Inf), each = sum(!combined$trusted))
  ends[unknown, ] <- NA
  cbind(fit = mean + base, lwr = ends[, 1] + base, upr = ends[, 2] + base)
}

# Which new rows have a level without rows: the fit takes it for the reference, and no interval tells how wrong that is.
without_rows <- function(object, newdata, rows) {
  found <- logical(rows)
  for (name in object$design$empty_levels) {
    column <- object$moments$schema$encoded[[name]]
    if (is.null(newdata[[column$source]])) next
    given <- source_values(object$moments$schema$declared[[column$source]], newdata[[column$source]])
    own <- rep_len(given == column$level, rows)
    if (any(own)) {
      warning("noisy counts show no rows to speak of with ", name, ", so the fit knows nothing of such a row: it is ",
        "predicted as if it had the reference level", call. = FALSE)
    }
    found <- found | own
  }
  found
}

# Where the bounds of the target were learnt, its values were moved into them; so is what is predicted.
moved_into_bounds <- function(object, values) {
  if (!object$design$target %in% object$moments$learnt) return(values)
  column <- object$moments$schema$encoded[[object$design$target_at]]
  pmin(pmax(values, column$centre - column$half_width), column$centre + column$half_width)
}

# One row of term values for each new row, columns by their declared names.
new_rows <- function(object, newdata) {
  schema <- object$moments$schema
  values <- function(name) {
    encoded <- schema$encoded[[name]]
    if (!is.null(encoded$level)) return(as.numeric(values(encoded$source) == encoded$level))
    column <- schema$declared[[name]]
    if (column$kind %in% c("product", "legendre")) return(derived_values(column, encoded, schema, values))
    if (is.null(newdata[[name]])) stop("the new rows have no column ", sQuote(name), call. = FALSE)
    found <- source_values(column, newdata[[name]])
    if (name %in% object$moments$learnt) found <- pmin(pmax(found, column$low), column$high)
    found
  }
  rows <- max(vapply(newdata, length, 0L))
  found <- vapply(seq_along(object$design$places), function(k) {
    i <- object$design$places[k]
    if (object$design$names[k] == INTERCEPT) return(rep(1, rows))
    monomial <- schema$original[[i]]$monomial
    own <- if (length(monomial)) {
      Reduce(`*`, lapply(monomial, values))
    } else {
      values(schema$encoded[[i]]$name) - object$design$shifts[k]
    }
    rep_len(as.numeric(own), rows)
  }, numeric(rows))
  matrix(found, nrow = rows)
}

# A product or power about the middle of the ranges, where it cannot be told as it is.
derived_values <- function(column, encoded, schema, values) {
  centred <- lapply(encoded$factors, function(name) values(name) - schema$encoded[[name]]$centre)
  if (column$kind == "product") return(centred[[1]] * centred[[2]])
  z <- centred[[1]] / schema$encoded[[encoded$factors]]$half_width
  before <- 1
  found <- z
  for (k in seq_len(column$degree - 1)) {
    after <- ((2 * k + 1) * z * found - k * before) / (k + 1)
    before <- found
    found <- after
  }
  found
}

source_values <- function(column, given) {
  if (column$kind %in% c("categorical", "ordinal")) {
    texts <- if (is.logical(given)) tolower(as.character(given)) else as.character(given)
    unknown <- !texts %in% column$levels
    if (any(unknown) && is.null(column$other)) {
      stop("the new rows' column ", sQuote(column$name), " has a level the schema does not know: ",
        sQuote(texts[unknown][1]), call. = FALSE)
    }
    texts[unknown] <- column$other
    return(if (column$kind == "ordinal") match(texts, column$levels) - 1 else texts)
  }
  if (column$kind == "numeric" && column$dates) return(days(given))
  as.numeric(given)
}

# All combinations of coefficients (rows of a matrix) are zero: by F, or by chi squared for the table.
wald_test <- function(object, matrix) {
  found <- object$inference
  check_inference(found)
  combined <- found$combine(matrix)
  if (!all(combined$trusted)) stop("no joint test: the table tells too little to stand clear of the noise", call. = FALSE)
  covariance <- matrix %*% found$covariance %*% t(matrix)
  scale <- sqrt(pmax(diag(covariance), TINY))
  standard <- symmetric(covariance / tcrossprod(scale))
  values <- abs(eigen(standard, symmetric = TRUE, only.values = TRUE)$values)
  if (min(values) <= max(values) * nrow(standard) * .Machine$double.eps) {
    stop("the hypotheses of a joint test repeat each other", call. = FALSE)
  }
  ratio <- drop(matrix %*% found$estimate) / scale
  statistic <- max(sum(ratio * solve(standard, ratio)), 0)
  count <- nrow(matrix)
  if (is.null(found$degrees)) {
    return(c(Df = count, statistic = statistic, p = pchisq(statistic, count, lower.tail = FALSE)))
  }
  c(Df = count, statistic = statistic / count, p = pf(statistic / count, count, found$degrees, lower.tail = FALSE))
}

anova.dp_lm <- function(object, ...) {
  others <- list(...)
  rows <- diag(length(object$design$names))
  if (length(others) == 0) {
    sources <- setdiff(unique(object$design$sources), INTERCEPT)
    found <- lapply(sources, function(name) wald_test(object, rows[object$design$sources == name, , drop = FALSE]))
    names <- vapply(sources, function(name) called_as(object, name), "")
    return(test_table(object, found, names, "Wald tests: every column given the others"))
  }
  if (length(others) > 1 || !inherits(others[[1]], "dp_lm")) stop("compare two regressions of one release", call. = FALSE)
  models <- list(object, others[[1]])
  larger <- models[[which.max(vapply(models, function(fit) length(fit$design$names), 0L))]]
  smaller <- models[[which.min(vapply(models, function(fit) length(fit$design$names), 0L))]]
  if (!all(smaller$design$names %in% larger$design$names) || smaller$design$target != larger$design$target) {
    stop("the smaller regression is not nested in the larger one", call. = FALSE)
  }
  extra <- !larger$design$names %in% smaller$design$names
  if (!any(extra)) stop("the two regressions have the same coefficients", call. = FALSE)
  found <- wald_test(larger, diag(length(extra))[extra, , drop = FALSE])
  names <- paste(larger$design$names[extra], collapse = ", ")
  test_table(larger, list(found), names, "Wald test: what the larger regression adds")
}

# What the number of rows in the matrix is, in words.
noisy_weight <- function(moments) {
  if (!is_clipped(moments)) return("noisy")
  lost <- if (is.null(moments$clip)) 0 else moments$clip$lost
  missing <- if (lost > TOO_FEW) sprintf(", so that about %.1f%% is missing here", 100 * lost)
  paste0("noisy; in weight: long rows count less", missing)
}

# Part of all weight that a clip may take before it is said of the number of rows.
TOO_FEW <- 0.01

# How answers call a declared column; what is computed from others as its coefficient: age:bmi.
called_as <- function(object, source) {
  schema <- object$moments$schema
  own <- Filter(function(column) column$source == source, schema$encoded)
  if (length(own[[1]]$factors) == 0) return(source)
  if (length(own) > 1) return(paste(schema$declared[[source]]$factors, collapse = ":"))
  object$design$names[object$design$sources == source]
}

test_table <- function(object, found, names, title) {
  degrees <- object$inference$degrees
  label <- if (is.null(degrees)) c("Chisq", "Pr(>Chisq)") else c("F value", "Pr(>F)")
  table <- as.data.frame(do.call(rbind, found), row.names = names)
  names(table) <- c("Df", label)
  heading <- paste0(title, " (target: ", object$design$target, ")\n")
  structure(table, heading = heading, class = c("anova", "data.frame"))
}

print.dp_lm <- function(x, ...) {
  cat("Regression of ", x$design$target, " from a private release\n\n", sep = "")
  if (is.null(x$inference$refusal)) print(coef(x), ...) else {
    print(x$fitted_coefficients, ...)
    cat("\nFitted values only; no intervals: ", x$inference$refusal, "\n", sep = "")
  }
  invisible(x)
}

summary.dp_lm <- function(object, level = 0.95, ...) {
  found <- object$inference
  told <- list(fit = object, level = level)
  if (is.null(found$refusal)) {
    clear <- bounded(found)
    ends <- confint(object, level = level)
    told$coefficients <- cbind(
      "Fitted" = object$fitted_coefficients, "Estimate" = coef(object),
      "Std. Error" = sqrt(ifelse(clear, diag(found$covariance), NA)),
      ends, "t value" = ifelse(clear, ratios(found), NA), "Pr(>|t|)" = p_values(found)
    )
    told$r_squared <- tryCatch(r_squared(object, level), error = function(problem) NULL)
    told$sigma <- tryCatch(sqrt(residual_variance(object)$estimate), error = function(problem) NULL)
  }
  structure(told, class = "summary.dp_lm")
}

print.summary.dp_lm <- function(x, digits = max(3, getOption("digits") - 3), ...) {
  fit <- x$fit
  cat("Regression of ", fit$design$target, " from a private release\n", sep = "")
  if (!is.null(fit$moments$rows)) cat("rows: about ", format(round(fit$moments$rows), big.mark = ","), " (", noisy_weight(fit$moments), ")\n", sep = "")
  for (name in names(fit$design$references)) cat(name, ": compared with ", fit$design$references[[name]], "\n", sep = "")
  cat("\n")
  if (is.null(x$coefficients)) {
    print(fit$fitted_coefficients, digits = digits)
    cat("\nNo standard errors or intervals: ", fit$inference$refusal, "\n", sep = "")
  } else {
    printCoefmat(x$coefficients, digits = digits, cs.ind = 1:5, tst.ind = 6, has.Pvalue = TRUE, signif.stars = FALSE)
    if (!is.null(x$r_squared)) {
      cat(sprintf("\nR-squared: %.3f (%g%% interval %.3f to %.3f)", x$r_squared$estimate, 100 * x$level, x$r_squared$low, x$r_squared$high))
    }
    if (!is.null(x$sigma)) cat(sprintf("\nerror standard deviation: %.4g", x$sigma))
    meant <- if (fit$kind == "table") "of this table (privacy noise only)" else "in the population (sampling and privacy noise)"
    found <- fit$inference
    what <- if (found$declared) "declared linear" else "un-shrunken"
    told <- paste0("Estimates, errors and intervals belong to the ", what, " regression ", meant, "; predict() uses the fitted column.")
    cat("\n", strwrap(told, 80), sep = "\n")
    test <- found$unequal_variance
    if (!is.null(test)) {
      told <- paste0("Errors allow for unequal variances. Test for these: ", test_in_words(test), sprintf("; unequal below p = %g.", REJECTED))
      cat(strwrap(told, 80), sep = "\n")
    } else if (fit$kind == "population") {
      cat("Assumed: the error variance is the same for all rows.\n")
    }
  }
  for (caution in c(fit$cautions, fit$inference$cautions)) cat(strwrap(paste("Note:", caution), 80, exdent = 2), sep = "\n")
  invisible(x)
}
