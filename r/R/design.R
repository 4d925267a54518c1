# Which regression is meant: a formula over declared columns, as functions of the encoded row.

INTERCEPT <- "(intercept)"

# The target, the features and whether there is an intercept, by the names of the release.
read_formula <- function(formula, schema) {
  if (!inherits(formula, "formula") || length(formula) != 3) {
    stop("a regression is a formula with a column to its left: y ~ a + b", call. = FALSE)
  }
  target <- column_of_term(formula[[2]], schema)
  own <- schema$encoded[[places_of(target, schema)[1]]]$source
  others <- Filter(function(column) column$name != own && !own %in% column$factors, schema$declared)
  dot <- as.data.frame(lapply(others, function(column) 0), check.names = FALSE)
  names(dot) <- vapply(others, `[[`, "", "name")
  found <- terms(formula, data = if (length(dot)) dot else NULL)
  variables <- as.list(attr(found, "variables"))[-1]
  factors <- attr(found, "factors")
  on <- character()
  for (j in seq_along(attr(found, "term.labels"))) {
    parts <- variables[factors[, j] > 0]
    on <- c(on, column_of_term(parts, schema))
  }
  list(target = target, on = unique(on), intercept = attr(found, "intercept") == 1)
}

# The declared column of a term: itself, a product, a power.
column_of_term <- function(parts, schema) {
  if (!is.list(parts)) parts <- list(parts)
  names <- unlist(lapply(parts, factors_of, schema = schema))
  if (length(names) == 1) return(names)
  grouped <- names[names %in% names(Filter(function(column) column$group, schema$declared))]
  if (length(grouped)) {
    for (column in schema$declared) {
      if (column$kind == "product" && identical(sort(column$factors), sort(names))) return(column$name)
    }
  }
  for (i in seq_along(schema$original)) {
    monomial <- schema$original[[i]]$monomial
    if (length(monomial) && identical(sort(monomial), sort(names))) return(schema$encoded[[i]]$name)
  }
  stop("this release has no product ", monomial_name(names), ": it was not declared. The curator would ",
    "declare it: product(", paste(dQuote(names, FALSE), collapse = ", "), ")", call. = FALSE)
}

# Names, repeated as often as they are multiplied: a, I(a^2), I(a * b).
factors_of <- function(part, schema) {
  if (is.name(part) || is.character(part)) {
    name <- as.character(part)
    places_of(name, schema)
    return(name)
  }
  if (is.call(part)) {
    head <- as.character(part[[1]])[1]
    if (head %in% c("I", "(")) return(factors_of(part[[2]], schema))
    if (head == "*" || head == ":") return(c(factors_of(part[[2]], schema), factors_of(part[[3]], schema)))
    if (head == "^" && is.numeric(part[[3]]) && part[[3]] %in% 1:12) return(rep(factors_of(part[[2]], schema), part[[3]]))
  }
  stop("this release has no column ", sQuote(paste(deparse(part), collapse = "")), ": values are transformed ",
    "before they are published. The curator would add it to the table and declare it", call. = FALSE)
}

# Positions of a column by its declared name, that of an encoded column, or of the product it stands for.
places_of <- function(name, schema) {
  stands <- vapply(schema$original, function(own) length(own$monomial) > 0 && own$name == name, TRUE)
  if (any(stands)) return(which(stands)[1])
  for (column in schema$declared) {
    if (column$kind == "product" && paste(column$factors, collapse = ":") == name) return(column$positions)
  }
  if (name %in% names(schema$declared)) return(schema$declared[[name]]$positions)
  if (name %in% names(schema$encoded)) return(position_of(name, schema))
  known <- names(schema$declared)
  stop("no column ", sQuote(name), " in the schema. Known: ", paste(known[seq_len(min(20, length(known)))], collapse = ", "),
    call. = FALSE)
}

build_design <- function(moments, target, on, intercept = TRUE, reference = character()) {
  schema <- moments$schema
  target_at <- places_of(target, schema)
  if (length(target_at) > 1) {
    stop(sQuote(target), " is categorical and cannot be a target as a whole. Take one level as a 0/1 target, for ",
      "example ", sQuote(schema$encoded[[max(target_at)]]$name), call. = FALSE)
  }
  if (schema$encoded[[target_at]]$kind == "constant") stop("the constant column cannot be a target", call. = FALSE)
  features <- features_of(schema, target_at, on)
  if (intercept && !schema$constant) {
    stop("this release has no constant column, so no intercept can be fitted: ask for y ~ 0 + a + b. The fit ",
      "then passes through the public midpoints", call. = FALSE)
  }
  coding <- references_of(moments, features, intercept, reference)
  gone <- setdiff(moments$empty, on)
  is_empty <- vapply(features, function(i) {
    column <- schema$encoded[[i]]
    column$name %in% gone || any(column$factors %in% gone)
  }, TRUE)
  behind <- unlist(lapply(schema$encoded[features], function(column) c(column$name, column$factors)))
  kept <- features[!is_empty]
  left_out <- vapply(kept, function(i) {
    column <- schema$encoded[[i]]
    (column$source %in% coding$coded && identical(coding$references[[column$source]], column$level)) ||
      follows_from_others(schema, i, features, coding$references, intercept)
  }, TRUE)
  places <- c(if (intercept) 1, kept[!left_out])
  if (!length(places)) stop("no features are left to regress on", call. = FALSE)
  design <- list(
    target = schema$encoded[[target_at]]$name, target_at = target_at, places = places, intercept = intercept,
    members = kept, references = coding$references,
    empty = vapply(schema$encoded[features[is_empty]], `[[`, "", "name"),
    empty_levels = intersect(gone, behind)
  )
  design$names <- vapply(places, function(i) schema$original[[i]]$name, "")
  design$sources <- vapply(places, function(i) schema$encoded[[i]]$source, "")
  if (intercept) design$names[1] <- design$sources[1] <- INTERCEPT
  layout <- if (intercept) with_intercept else through_origin
  layout(design, schema)
}

features_of <- function(schema, target_at, on) {
  own <- schema$encoded[[target_at]]$source
  found <- integer()
  for (name in on) {
    for (i in places_of(name, schema)) {
      column <- schema$encoded[[i]]
      if (i %in% found) stop("the feature ", sQuote(name), " is named twice", call. = FALSE)
      if (column$source == own) {
        stop(sQuote(name), " cannot be a feature: it belongs to the target", call. = FALSE)
      }
      if (column$kind == "constant") stop("the constant column is not a feature", call. = FALSE)
      found <- c(found, i)
    }
  }
  found
}

# The reference level of each group, as asked or the most frequent one; groups that go without theirs.
references_of <- function(moments, features, intercept, asked) {
  schema <- moments$schema
  sources <- unique(vapply(schema$encoded[features], `[[`, "", "source"))
  products <- Filter(function(column) column$kind == "product", schema$declared[intersect(sources, names(schema$declared))])
  multiplied <- unlist(lapply(products, function(column) {
    if (any(vapply(column$factors, function(name) schema$declared[[name]]$group, TRUE))) column$factors
  }))
  groups <- Filter(function(column) column$group, schema$declared)
  whole <- names(Filter(function(column) all(column$positions %in% features), groups))
  groups <- groups[names(groups) %in% c(whole, multiplied)]
  for (name in names(asked)) {
    if (!name %in% names(groups)) {
      stop(sQuote(name), " has no reference level: it is no categorical feature of this regression", call. = FALSE)
    }
    if (!asked[[name]] %in% groups[[name]]$levels) {
      stop(sQuote(name), " has no level ", sQuote(asked[[name]]), call. = FALSE)
    }
  }
  # Without an intercept the first group keeps all its levels: they carry the overall level themselves.
  coded <- names(groups)[names(groups) %in% whole]
  if (!intercept) coded <- coded[-1]
  compared <- names(groups)[names(groups) %in% c(coded, multiplied)]
  references <- lapply(compared, function(name) {
    if (name %in% names(asked)) asked[[name]] else most_frequent(moments, name)
  })
  names(references) <- compared
  list(references = references, coded = coded)
}

most_frequent <- function(moments, name) {
  column <- moments$schema$declared[[name]]
  levels <- diag(length(moments$schema$encoded))[, column$positions, drop = FALSE] / column$weight
  held <- project(moments, levels)
  counts <- if (is.null(moments$constant)) {
    diag(crossprod(held, moments$consistent %*% held))
  } else {
    drop(crossprod(project(moments, moments$constant), moments$consistent %*% held))
  }
  column$levels[which.max(counts)]
}

# A product with a reference level follows from the others where the other factor is there by itself. As in R:
# region * age has a slope of age and by how much other regions differ, region:age alone a slope for each.
follows_from_others <- function(schema, i, features, references, intercept) {
  column <- schema$encoded[[i]]
  product <- schema$declared[[column$source]]
  if (is.null(product) || product$kind != "product" || !all(product$positions %in% features)) return(FALSE)
  grouped <- vapply(product$factors, function(name) schema$declared[[name]]$group, TRUE)
  if (!any(grouped)) return(FALSE)
  by_itself <- function(name) all(schema$declared[[name]]$positions %in% features)
  least <- reduced <- logical()
  for (k in which(grouped)) {
    name <- product$factors[k]
    least <- c(least, paste0(name, "=", references[[name]]) %in% column$factors)
    reduced <- c(reduced, by_itself(product$factors[3 - k]))
  }
  any(least & reduced) || (sum(grouped) == 2 && intercept && !any(reduced) && all(least))
}

# Terms F in original units are V M with V in z: coefficients are M^-1 of those of V. A term is laid out as the
# z of its own column where all else that it is a sum of belongs to terms so laid out.
with_intercept <- function(design, schema) {
  places <- design$places
  weights <- schema$weights
  width <- length(weights)
  degree <- vapply(places, function(i) length(schema$original[[i]]$monomial), 0L)
  plain <- integer()
  vectors <- matrix(0, width, length(places))
  inverse <- matrix(0, length(places), length(places))
  for (k in order(degree)) {
    own <- places[k]
    original <- schema$original[[own]]
    others <- original$positions != own
    if (all(original$positions[others] %in% plain)) {
      plain <- c(plain, own)
      vectors[own, k] <- 1 / weights[[own]]
      size <- sum(original$parts[!others]) * weights[[own]]
      inverse[k, k] <- 1 / size
      for (j in which(others)) {
        row <- match(original$positions[j], places)
        value <- original$parts[j] * weights[[original$positions[j]]]
        inverse[, k] <- inverse[, k] - inverse[, row] * (value / size)
      }
    } else {
      size <- max(abs(original$parts) * weights[original$positions])
      vectors[original$positions, k] <- original$parts / size
      inverse[k, k] <- 1 / size
    }
  }
  target <- schema$original[[design$target_at]]
  varying <- target$positions != 1
  target_vector <- numeric(width)
  target_vector[target$positions[varying]] <- target$parts[varying] / target$scale
  offset <- numeric(length(places))
  offset[1] <- sum(target$parts[!varying]) * weights[[1]]
  c(design, list(
    vectors = vectors, target_vector = target_vector, to_original = target$scale * inverse, offset = offset,
    base = 0, target_scale = target$scale, shifts = numeric(length(places))
  ))
}

# No intercept: y = sum of b_j x_j in original units; centres come in through the constant column, if any.
through_origin <- function(design, schema) {
  weights <- schema$weights
  vectors <- matrix(0, length(weights), length(design$places))
  sizes <- shifts <- numeric(length(design$places))
  for (k in seq_along(design$places)) {
    original <- schema$original[[design$places[k]]]
    sizes[k] <- max(abs(original$parts) * weights[original$positions])
    vectors[original$positions, k] <- original$parts / sizes[k]
    shifts[k] <- original$shift
  }
  target <- schema$original[[design$target_at]]
  target_vector <- numeric(length(weights))
  target_vector[target$positions] <- target$parts / target$scale
  c(design, list(
    vectors = vectors, target_vector = target_vector,
    to_original = diag(target$scale / sizes, length(sizes)), offset = numeric(length(sizes)),
    base = target$shift, target_scale = target$scale, shifts = shifts
  ))
}
