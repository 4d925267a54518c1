# Formulas as R users write them, what is refused, and files that were damaged.

library(dpgram)

folder <- Sys.getenv("DPGRAM_VECTORS", "vectors")
there <- file.exists(file.path(folder, "crossed.dpgram.json"))
read <- function(kind, ...) read_release(file.path(folder, paste0(kind, ".dpgram.json")), ...)
refused <- function(expression) tryCatch({ expression; "" }, error = function(problem) conditionMessage(problem))
same <- function(left, right) stopifnot(identical(names(coef(left)), names(coef(right))), isTRUE(all.equal(coef(left), coef(right))))

stopifnot(dpgram:::sha256(charToRaw("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
stopifnot(dpgram:::sha256_slowly(charToRaw("abc")) == dpgram:::sha256(charToRaw("abc")))
stopifnot(dpgram:::sha256_slowly(raw(0)) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

if (!there) {
  message("no vectors here: nothing asked")
} else {
  plain <- read("plain")
  same(dp_lm(charges ~ age * bmi + I(age^2), plain), dp_lm(charges ~ age + bmi + `age^2` + `age:bmi`, plain))
  same(dp_lm(charges ~ bmi:age, plain), dp_lm(charges ~ I(age * bmi), plain))
  whole <- dp_lm(charges ~ age + bmi + smoker + region + exercise + grade + active + visit + age:bmi + I(age^2) +
    I(age^3), plain)
  stopifnot(isTRUE(all.equal(coef(dp_lm(charges ~ ., plain))[names(coef(whole))], coef(whole))))
  stopifnot(!"(intercept)" %in% names(coef(dp_lm(charges ~ 0 + age, plain))))
  stopifnot(names(coef(dp_lm(charges ~ smoker, plain, reference = c(smoker = "yes"))))[2] == "smoker=no")
  crossed <- read("crossed")
  same(dp_lm(charges ~ smoker * age, crossed), dp_lm(charges ~ smoker + age + `smoker*age`, crossed))
  stopifnot(
    grepl("not declared", refused(dp_lm(charges ~ age * exercise, plain))),
    grepl("no column", refused(dp_lm(charges ~ height, plain))),
    grepl("transformed", refused(dp_lm(log(charges) ~ age, plain))),
    grepl("as a whole", refused(dp_lm(region ~ age, plain))),
    grepl("belongs to the target", refused(dp_lm(`smoker=yes` ~ smoker, plain))),
    grepl("no level", refused(dp_lm(charges ~ smoker, plain, reference = c(smoker = "maybe")))),
    grepl("no categorical feature", refused(dp_lm(charges ~ age, plain, reference = c(smoker = "yes")))),
    grepl("no intercept", refused(dp_lm(charges ~ age, read("through-origin")))),
    grepl("does not know", refused(predict(dp_lm(charges ~ smoker, plain), data.frame(smoker = "maybe")))),
    grepl("no column", refused(predict(dp_lm(charges ~ age, plain), data.frame(bmi = 30)))),
    grepl("probability", refused(confint(dp_lm(charges ~ age, plain), level = 95))),
    grepl("nested", refused(anova(dp_lm(charges ~ age, plain), dp_lm(charges ~ bmi + smoker, plain)))),
    grepl("simulation", refused(second_moments(read("sampled"))))
  )
  # What is printed of a promise follows from its numbers: Python's words, whatever the file says.
  for (file in list.files(folder, "[.]dpgram[.]json$", full.names = TRUE)) {
    content <- jsonlite::fromJSON(file, simplifyVector = FALSE)
    stopifnot(dpgram:::in_words(content) == content$guarantee$statement)
    content$guarantee$epsilon <- 1000
    stopifnot(grepl("by a factor of at most e^1000 (\u03b5 = 1000)", dpgram:::in_words(content), fixed = TRUE))
  }
  forged <- plain
  forged$guarantee$statement <- "Perfectly safe"
  stopifnot(identical(capture.output(print(forged)), capture.output(print(plain))))

  # Less than 1% of all weight was clipped, and yet it is not least squares.
  adaptive <- dp_lm(charges ~ age + bmi, read("adaptive"))
  less <- "rows far from the others count less"
  stopifnot(any(grepl(less, adaptive$inference$cautions)), !any(grepl(less, whole$inference$cautions)))

  noted <- function(release) {
    found <- character()
    withCallingHandlers(dp_cov(release), message = function(note) {
      found <<- c(found, conditionMessage(note))
      invokeRestart("muffleMessage")
    })
    gsub("\\s+", " ", paste(found, collapse = " "))
  }
  stopifnot(grepl("covariances are those of bounded influence", noted(read("adaptive"))), noted(plain) == "",
    grepl("clipped to the radius", noted(read("clipped"))), grepl("count 1/m each|at most", noted(read("persons"))))

  # A level without rows is predicted as the reference is, without an interval, and it is said.
  empty <- dp_lm(charges ~ age + region, read("empty-level"))
  people <- data.frame(age = c(40, 40), region = c("abroad", "west"))
  said <- character()
  told <- withCallingHandlers(
    list(predict(empty, people), predict(empty, people, "confidence"), predict(empty, people, "prediction")),
    warning = function(found) { said <<- c(said, conditionMessage(found)); invokeRestart("muffleWarning") }
  )
  stopifnot(length(said) == 3, all(grepl("with region=abroad, so the fit knows nothing", said)), !anyNA(told[[1]]))
  for (ends in told[-1]) stopifnot(is.na(ends[1, c("lwr", "upr")]), !anyNA(ends[2, ]), !is.na(ends[1, "fit"]))

  drowned <- dp_lm(charges ~ age + bmi + smoker, read("drowned"))
  for (ask in list(coef, vcov, confint, anova)) stopifnot(grepl("noise", refused(ask(drowned))))
  stopifnot(any(grepl("too large", capture.output(print(summary(drowned))))))

  models <- read("models")
  declared <- dp_lm(charges ~ smoker + age + bmi, models)
  told <- paste(capture.output(print(summary(declared))), collapse = " ")
  stopifnot(grepl("declared linear regression", told), grepl("allow for unequal variances.*; unequal below p = 0.001", told), !grepl("Assumed", told))
  limited <- "beyond \\+/-8.24e\\+03 count as .* are 0.3% to 4.0% of all rows"
  stopifnot(length(declared$inference$cautions) == 1, grepl(limited, declared$inference$cautions))
  other <- dp_lm(charges ~ age, models)
  stopifnot(any(grepl("Assumed", capture.output(print(summary(other))))), !length(other$inference$unequal_variance))
  hidden <- dp_lm(exercise ~ age + smoker, read("models-faint"))
  stopifnot(any(grepl("noise hides what was measured", hidden$inference$cautions)))
  stopifnot(any(grepl("in weight: long rows count less, so that about 1.4% is missing", capture.output(print(summary(hidden))))))
  # Scores that vary far more in one direction than in others; and numbers that nothing can be computed from.
  altered <- function(change) {
    release <- models
    place <- which(names(release$moments$measured) == "step")
    release$moments$measured[[place]] <- change(release$moments$measured[[place]])
    release
  }
  unequal <- altered(function(step) { step$spread$cells[[3]] <- "900000000000"; step })
  stopifnot(any(grepl("of unequal variance", dp_lm(charges ~ age, unequal)$inference$cautions)))
  stopifnot(!any(grepl("of unequal variance", c(other$inference$cautions, dp_lm(bmi ~ age, unequal)$inference$cautions))))
  for (size in c(1e400, 1e300)) {
    forged <- dp_lm(charges ~ smoker + age + bmi, altered(function(step) { step$radius <- size; step }))
    stopifnot(any(grepl("noise hides what was measured", forged$inference$cautions)))
  }

  text <- readLines(file.path(folder, "plain.dpgram.json"), warn = FALSE)
  damaged <- tempfile(fileext = ".json")
  broken <- function(pattern, by) {
    writeLines(sub(pattern, by, text), damaged)
    refused(read_release(damaged))
  }
  stopifnot(grepl("digest", broken("\"radius\":", "\"radius\":1")), grepl("a JSON object", broken("\\{", "")),
    grepl("has a mistake", broken(":", "=")), grepl("cut short: it has [0-9,]+ bytes", broken("}$", "")),
    grepl("version", broken("\"version\":1", "\"version\":2")), grepl("not a release", broken("dpgram-release", "other")))
  given <- function(...) {
    writeBin(as.raw(c(...)), damaged)
    refused(read_release(damaged))
  }
  stopifnot(grepl("is empty", given()), grepl("is empty", given(0x20, 0x0a)), grepl("packed", given(0x1f, 0x8b, 8)),
    grepl("byte-order mark", given(0xef, 0xbb, 0xbf, 0x7b)), grepl("a JSON object", given(0x61, 0x2c, 0x62)),
    grepl("a JSON object", given(0x7b, 0, 0x7d)))
  stopifnot(grepl("no file", refused(read_release("nowhere.json"))))
}
