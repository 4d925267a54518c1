# Every number of the conformance vectors, to eight digits; and that the comparison can fail. The vectors are
# put beside this file when the package is built (python -m distribution.r_package).

library(dpgram)

DIGITS <- 1e-8
folder <- Sys.getenv("DPGRAM_VECTORS", "vectors")

value <- function(one) {
  if (is.null(one)) NA_real_ else if (identical(one, "Inf")) Inf else if (identical(one, "-Inf")) -Inf else as.numeric(one)
}
values <- function(list) vapply(list, value, 0)
cells <- function(rows) do.call(rbind, lapply(rows, values))

# Largest difference, in parts of the size; NA and infinities must agree.
apart <- function(found, wanted, sizes = abs(wanted)) {
  found <- as.numeric(found)
  wanted <- as.numeric(wanted)
  if (length(found) != length(wanted) || !identical(is.na(found), is.na(wanted))) return(Inf)
  plain <- is.finite(wanted)
  if (!identical(found[!plain], wanted[!plain])) return(Inf)
  if (!any(plain)) return(0)
  max(abs(found[plain] - wanted[plain]) / pmax(rep_len(sizes, length(wanted))[plain], 1e-300))
}

refused <- function(expression) tryCatch({ expression; NULL }, error = function(problem) conditionMessage(problem))

asked <- function(question, release, on = unlist(question$on)) {
  right <- paste(sprintf("`%s`", on), collapse = " + ")
  formula <- stats::as.formula(sprintf("`%s` ~ %s%s", question$target, if (question$intercept) "" else "0 + ", right))
  reference <- question$reference[names(question$reference) %in% on]
  dp_lm(formula, release, reference = unlist(reference), kind = question$kind)
}

compare_question <- function(question, release) {
  if (!is.null(question$refused)) {
    return(if (is.null(refused(asked(question, release)))) Inf else 0)
  }
  fit <- asked(question, release)
  largest <- max(abs(values(question$fitted)))
  found <- c(
    names = if (identical(fit$design$names, unlist(question$names))) 0 else Inf,
    fitted = apart(coef(fit, fitted = TRUE), values(question$fitted), pmax(abs(values(question$fitted)), 1e-6 * largest)),
    effective = apart(fit$effective_parameters, value(question$effective_parameters)),
    fitted_predictions = apart(predict(fit, question$new_rows), values(question$fitted_predictions))
  )
  if (!is.null(question$refusal)) {
    same <- startsWith(paste(refused(coef(fit))), paste0("no standard errors or intervals for this regression: ", substr(question$refusal, 1, 60)))
    return(c(found, refusal = if (same) 0 else Inf))
  }
  level <- question$level
  ends <- confint(fit, level = level)
  ends[!is.finite(ends)] <- NA
  errors <- values(question$std_errors)
  told <- summary(fit, level = level)
  predicted <- lapply(c("confidence", "prediction"), function(which) predict(fit, question$new_rows, which, level))
  c(found,
    estimate = apart(coef(fit), values(question$estimate)),
    covariance = apart(vcov(fit), cells(question$covariance_of_estimates), outer(errors, errors)),
    errors = apart(sqrt(diag(vcov(fit))), errors),
    low = apart(ends[, 1], values(question$low), pmax(abs(values(question$low)), errors)),
    high = apart(ends[, 2], values(question$high), pmax(abs(values(question$high)), errors)),
    t = apart(told$coefficients[, "t value"], values(question$t_values)),
    p = apart(told$coefficients[, "Pr(>|t|)"], values(question$p_values)),
    r_squared = quantity(told$r_squared$estimate, question$r_squared),
    unequal_variance = apart(unlist(fit$inference$unequal_variance), values(question$unequal_variance)),
    s2 = quantity(told$sigma^2, question$residual_variance),
    mean = apart(predicted[[1]][, "fit"], values(question$predictions$mean)),
    interval = apart(predicted[[1]][, -1], cells(question$predictions$mean_interval)),
    observation = apart(predicted[[2]][, -1], cells(question$predictions$observation_interval)),
    compare_tests(fit, question, release)
  )
}

quantity <- function(found, wanted) {
  if (is.list(wanted)) return(if (length(found)) Inf else 0)
  apart(found, wanted)
}

compare_tests <- function(fit, question, release) {
  tests <- question$tests
  if (!is.null(tests$refused)) return(c(tests = if (is.null(refused(anova(fit)))) Inf else 0))
  table <- anova(fit)
  found <- max(vapply(names(tests$columns), function(name) {
    wanted <- values(tests$columns[[name]])
    max(apart(table[name, 2], wanted[1]), apart(table[name, 3], wanted[2]))
  }, 0))
  if (is.null(tests$smaller)) return(c(tests = found))
  table <- anova(fit, asked(question, release, unlist(question$smaller)))
  wanted <- values(tests$smaller)
  c(tests = found, smaller = max(apart(table[1, 2], wanted[1]), apart(table[1, 3], wanted[2])))
}

compare <- function(kind, change = identity, read_moments = second_moments) {
  wanted <- jsonlite::fromJSON(file.path(folder, paste0(kind, ".expected.json")), simplifyVector = FALSE)
  path <- file.path(folder, paste0(kind, ".dpgram.json"))
  stand_in <- if (wanted$noise$added) NULL else wanted$noise$diagonal_sd
  if (!is.null(stand_in)) stopifnot(grepl("simulation", refused(dp_lm(charges ~ age, read_release(path)))))
  release <- change(read_release(path, stand_in = stand_in))
  moments <- cells(wanted$second_moments)
  size <- max(abs(moments))
  covariance <- if (!is.null(wanted$covariance$refused)) {
    if (is.null(refused(dp_cov(release)))) Inf else 0
  } else {
    spread <- sqrt(diag(cells(wanted$covariance)))
    apart(dp_cov(release), cells(wanted$covariance), outer(spread, spread))
  }
  c(
    rows = apart(release$moments$rows, value(wanted$rows)),
    noise = apart(release$moments$noise$offdiagonal_sd, wanted$noise$offdiagonal_sd),
    second_moments = apart(read_moments(release), moments, size), covariance = covariance,
    unlist(lapply(wanted$questions, function(question) {
      tryCatch(compare_question(question, release), error = function(problem) c(stopped = Inf))
    }))
  )
}

# Readers that leave a step out: the vectors must find each of them.
changed <- function(change) function(release) {
  release$moments <- change(release$moments)
  release
}
changed_steps <- function(change) changed(function(moments) {
  steps <- names(moments$measured) == "step"
  moments$measured[steps] <- lapply(moments$measured[steps], change)
  moments
})
WRONG <- list(
  "noise ignored" = changed(function(moments) {
    moments$noise$diagonal_sd <- moments$noise$offdiagonal_sd <- 0
    moments
  }),
  "sums of levels not used" = changed(function(moments) {
    moments$null <- moments$null[, 0]
    moments$consistent <- moments$gram - moments$noise$mean_diagonal * diag(nrow(moments$gram))
    moments
  }),
  "mean of the noise left in" = changed(function(moments) {
    moments$consistent <- moments$consistent + moments$noise$mean_diagonal * diag(nrow(moments$gram))
    moments
  }),
  "clip ignored" = changed(function(moments) {
    moments$sampling_factor <- 1
    moments
  }),
  "declared models ignored" = changed(function(moments) {
    moments$measured <- moments$measured[names(moments$measured) != "step"]
    moments
  }),
  "noise of declared models ignored" = changed_steps(function(step) {
    step$score_sigma <- step$noise$sigma <- step$spread$noise$sigma <- 0
    step
  }),
  "spread of scores ignored" = changed_steps(function(step) {
    step$spread <- NULL
    step
  })
)
FOUND_IN <- c(
  "noise ignored" = "adaptive", "sums of levels not used" = "plain", "mean of the noise left in" = "wishart",
  "clip ignored" = "adaptive", "declared models ignored" = "models", "noise of declared models ignored" = "models-faint",
  "spread of scores ignored" = "models-persons"
)
raw_moments <- function(release) {
  moments <- release$moments
  t(moments$lift) %*% moments$consistent %*% moments$lift
}

kinds <- sub("\\.expected\\.json$", "", list.files(folder, "\\.expected\\.json$"))
if (!length(kinds)) {
  message("no vectors here: nothing compared")
} else {
  for (kind in kinds) {
    found <- compare(kind)
    cat(sprintf("%-18s %3d numbers or vectors, largest difference %.1e\n", kind, length(found), max(found)))
    if (!all(found <= DIGITS)) print(found[!(found <= DIGITS)])
    stopifnot(all(found <= DIGITS))
  }
  for (name in names(WRONG)) {
    found <- compare(FOUND_IN[[name]], WRONG[[name]])
    found <- max(found[is.finite(found) & names(found) != "noise"])
    cat(sprintf("%-34s found: %.1e\n", name, found))
    stopifnot(found > DIGITS)
  }
  for (kind in c("plain", "adaptive", "pure")) {
    stopifnot(compare(kind, read_moments = raw_moments)[["second_moments"]] > DIGITS)
  }
}
