# The public row contract: declared columns, their encoded columns in the order of the matrix, and each of
# these as a function of the encoded row in original units.

CONSTANT <- "(constant)"
LARGEST_RATIO <- 1e6

read_schema <- function(form) {
  constant <- !identical(form$constant, FALSE)
  declared <- lapply(form$columns, declared_column)
  names(declared) <- vapply(declared, `[[`, "", "name")
  encoded <- if (constant) list(encoded_column(CONSTANT, CONSTANT, "constant")) else list()
  for (i in seq_along(declared)) {
    own <- encoded_of(declared[[i]], declared)
    declared[[i]]$positions <- length(encoded) + seq_along(own)
    encoded <- c(encoded, own)
  }
  names(encoded) <- vapply(encoded, `[[`, "", "name")
  schema <- list(
    constant = constant, declared = declared, encoded = encoded,
    weights = vapply(encoded, `[[`, 0, "weight")
  )
  schema$original <- lapply(seq_along(encoded), original_column, schema = schema)
  schema
}

declared_column <- function(form) {
  if (!form$kind %in% c("numeric", "categorical", "ordinal", "boolean", "product", "legendre")) {
    stop("columns of the kind ", sQuote(form$kind), " are not known here", call. = FALSE)
  }
  form$weight <- if (is.null(form$weight)) 1 else form$weight
  form$levels <- unlist(form$levels)
  form$factors <- switch(form$kind,
    product = c(form$left, form$right), legendre = form$column, character()
  )
  form$name <- switch(form$kind,
    product = paste0(form$left, "*", form$right),
    legendre = paste0(form$column, "^P", form$degree), form$name
  )
  form$group <- form$kind == "categorical"
  if (form$group && !is.null(form$other) && !form$other %in% form$levels) form$levels <- c(form$levels, form$other)
  form$dates <- is.character(form$low)
  if (form$kind == "numeric") {
    form$low <- bound(form$low)
    form$high <- bound(form$high)
  } else if (form$kind == "ordinal") {
    form$low <- 0
    form$high <- length(form$levels) - 1
  }
  form
}

# A number, or a date as days since 1970-01-01.
bound <- function(value) if (is.character(value)) days(value) else as.numeric(value)

days <- function(value) {
  if (inherits(value, "Date")) return(as.numeric(value))
  if (inherits(value, "POSIXt")) return(as.numeric(value) / 86400)
  if (is.numeric(value)) return(value)
  texts <- sub("T", " ", as.character(value), fixed = TRUE)
  as.numeric(as.POSIXct(texts, tz = "UTC")) / 86400
}

encoded_column <- function(name, source, kind, centre = 0, half_width = 1, weight = 1, level = NULL, factors = character()) {
  list(
    name = name, source = source, kind = kind, centre = centre, half_width = half_width, weight = weight,
    level = level, factors = factors
  )
}

encoded_of <- function(column, declared) {
  name <- column$name
  one <- function(kind, ...) list(encoded_column(name, name, kind, weight = column$weight, ...))
  switch(column$kind,
    numeric = one("numeric", column$low / 2 + column$high / 2, column$high / 2 - column$low / 2),
    ordinal = one("numeric", 0.5 * column$high, 0.5 * column$high),
    boolean = one("boolean", 0.5, 0.5),
    categorical = lapply(column$levels, function(level) {
      encoded_column(paste0(name, "=", level), name, "level", weight = column$weight, level = level)
    }),
    legendre = one("legendre", factors = column$column),
    product = {
      names_of <- function(factor) {
        own <- declared[[factor]]
        if (own$group) paste0(factor, "=", own$levels) else factor
      }
      unlist(lapply(names_of(column$left), function(left) {
        lapply(names_of(column$right), function(right) {
          encoded_column(paste0(left, "*", right), name, "product", weight = column$weight, factors = c(left, right))
        })
      }), recursive = FALSE)
    }
  )
}

# parts: position in the encoded row -> factor. Their sum, and the shift, is the value in original units.
original_column <- function(i, schema) {
  column <- schema$encoded[[i]]
  if (length(column$factors)) return(derived_column(i, column, schema))
  parts <- column$half_width / column$weight
  positions <- i
  if (schema$constant && column$centre != 0) {
    parts <- c(parts, column$centre / schema$weights[[1]])
    positions <- c(positions, 1)
  }
  list(
    name = column$name, positions = positions, parts = parts, scale = column$half_width,
    shift = if (schema$constant) 0 else column$centre, monomial = character()
  )
}

derived_column <- function(i, column, schema) {
  ranges <- lapply(column$factors, function(name) {
    own <- schema$encoded[[name]]
    c(own$centre, own$half_width)
  })
  degree <- if (column$kind == "legendre") schema$declared[[column$source]]$degree else NULL
  monomial <- if (is.null(degree)) column$factors else rep(column$factors, degree)
  expansion <- if (is.null(degree)) {
    product_expansion(i, column, ranges, schema)
  } else {
    power_expansion(column, degree, ranges[[1]], schema)
  }
  expansion <- expansion[expansion$value != 0, ]
  spread <- vapply(if (is.null(degree)) ranges else rep(ranges, degree), function(range) 1 + abs(range[1]) / range[2], 0)
  if (prod(spread) <= LARGEST_RATIO && !anyNA(expansion$position)) {
    half_widths <- vapply(if (is.null(degree)) ranges else rep(ranges, degree), `[`, 0, 2)
    return(list(
      name = monomial_name(monomial), positions = expansion$position,
      parts = expansion$value / schema$weights[expansion$position], scale = prod(half_widths),
      shift = 0, monomial = monomial
    ))
  }
  unit <- if (is.null(degree)) prod(vapply(ranges, `[`, 0, 2)) else 1
  list(name = column$name, positions = i, parts = unit / column$weight, scale = unit, shift = 0, monomial = character())
}

position_of <- function(name, schema) match(name, names(schema$encoded))

# (c + hz)(c' + h'z').
product_expansion <- function(i, column, ranges, schema) {
  left <- ranges[[1]]
  right <- ranges[[2]]
  found <- data.frame(
    position = c(i, position_of(CONSTANT, schema), position_of(column$factors, schema)),
    value = c(left[2] * right[2], left[1] * right[1], left[2] * right[1], left[1] * right[2])
  )
  if (column$factors[1] == column$factors[2]) {
    found <- rbind(found[1:2, ], data.frame(position = found$position[3], value = sum(found$value[3:4])))
  }
  found
}

# (c + hz)^degree in Legendre polynomials of z.
power_expansion <- function(column, degree, range, schema) {
  power <- choose(degree, 0:degree) * range[1]^(degree - 0:degree) * range[2]^(0:degree)
  legendre <- to_legendre(power)
  higher <- vapply(seq_len(degree - 1) + 1, function(k) {
    position_of(paste0(column$factors, "^P", k), schema)
  }, 0L)
  data.frame(position = c(position_of(c(CONSTANT, column$factors), schema), higher), value = legendre)
}

# A polynomial in powers of z as one in Legendre polynomials: Horner's rule, with
# z P_k = ((k + 1) P_{k+1} + k P_{k-1}) / (2k + 1).
to_legendre <- function(power) {
  found <- numeric(length(power))
  for (coefficient in rev(power)) {
    k <- seq_along(found) - 1
    up <- found * (k + 1) / (2 * k + 1)
    down <- found * k / (2 * k + 1)
    found <- c(0, up[-length(up)]) + c(down[-1], 0)
    found[1] <- found[1] + coefficient
  }
  found
}

monomial_name <- function(factors) {
  powers <- table(factor(factors, unique(factors)))
  paste(ifelse(powers == 1, names(powers), paste0(names(powers), "^", powers)), collapse = ":")
}

# Functions of the encoded row that are zero in every row that lacks nothing, one in each column.
known_sums <- function(schema) {
  width <- length(schema$encoded)
  groups <- Filter(function(column) column$group, schema$declared)
  of_group <- function(column) {
    v <- numeric(width)
    v[column$positions] <- 1 / schema$weights[column$positions]
    v
  }
  found <- lapply(groups, of_group)
  if (schema$constant) {
    found <- lapply(found, function(v) replace(v, 1, -1))
  } else if (length(found)) {
    found <- lapply(found[-1], function(v) v - found[[1]])
  }
  for (column in Filter(function(column) column$kind == "product", schema$declared)) {
    grouped <- vapply(column$factors, function(name) schema$declared[[name]]$group, TRUE)
    for (side in 1:2) {
      if (!grouped[3 - side]) next
      own <- vapply(column$positions, function(i) schema$encoded[[i]]$factors[side], "")
      sums <- lapply(unique(own), function(name) {
        v <- numeric(width)
        at <- position_of(name, schema)
        v[at] <- -1 / schema$weights[at]
        places <- column$positions[own == name]
        v[places] <- 1 / schema$weights[places]
        v
      })
      # With two groups all sums of both together are the constant: the last one follows from the rest.
      if (side == 2 && all(grouped)) sums <- sums[-length(sums)]
      found <- c(found, sums)
    }
  }
  matrix(as.numeric(unlist(found)), nrow = width, ncol = length(found))
}
