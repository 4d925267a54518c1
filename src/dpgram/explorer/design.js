// Which regression is meant: terms and target as functions of the encoded row; as in analysis/design.py.
(function (dpgram) {
  "use strict";

  const { fromRows, matrix, orthonormal, triangleInverse, apply, form } = dpgram.algebra;
  const { Refusal } = dpgram.moments;

  const INTERCEPT = "(intercept)";

  // Every column that may be predicted: numbers, truth values, and single levels as 0/1.
  function possibleTargets(moments) {
    return moments.columns
      .map((column, position) => ({ position, name: column.name, source: column.source, kind: column.kind }))
      .filter((column) => column.kind !== "constant");
  }

  // Declared columns that may explain the target: all but itself. `byDefault` leaves out what is made from it.
  function possibleFeatures(moments, target) {
    const own = moments.columns[target].source;
    return moments.declared
      .filter((column) => column.name !== own)
      .map((column) => ({ ...column, byDefault: !column.factors.includes(own) }));
  }

  // `target` is a position; `on` a list of declared names, in the order wanted.
  function buildDesign(moments, target, on) {
    const intercept = moments.hasConstant;
    const chosen = on.map((name) => moments.declared.find((column) => column.name === name));
    // Without an intercept the first group in the schema keeps all its levels: they carry the overall level.
    const groups = moments.declared.filter((column) => column.group && chosen.includes(column));
    const references = new Map(
      (intercept ? groups : groups.slice(1)).map((group) => [group.name, group.positions[0]]),
    );
    const members = chosen.flatMap((column) => column.positions);
    const kept = members.filter((i) => references.get(moments.columns[i].source) !== i);
    const terms = kept.map((position) => ({ name: moments.columns[position].name, position }));
    if (intercept) terms.unshift({ name: INTERCEPT, position: 0 });
    if (terms.length === 0) throw new Refusal("Choose at least one feature.");
    const laidOut = (intercept ? withIntercept : throughOrigin)(moments, target, terms);
    const spanned = orthonormal(fromRows(laidOut.vectors.map(moments.project), moments.width));
    if (!spanned.independent) {
      throw new Refusal("The features of this regression are linearly dependent by construction. Leave out one of them.");
    }
    const toTerms = triangleInverse(spanned.triangle);
    return {
      target, intercept, members, terms, ...laidOut,
      names: terms.map((term) => term.name),
      references: Array.from(references, ([name, at]) => ({ name, level: moments.columns[at].level })),
      basis: spanned.basis,
      block: form(spanned.basis, moments.gram),
      toTerms,
      once: memory(),
      targetFunction: moments.project(laidOut.targetVector),
      // Coefficients in original units of the function a ↦ f·a.
      coefficients: (f) => toOriginal(laidOut, apply(toTerms, apply(spanned.basis, f))),
    };
  }

  // Computes what is asked for under a name once, however often it is asked for.
  function memory() {
    const known = new Map();
    return (name, compute) => {
      if (!known.has(name)) known.set(name, compute());
      return known.get(name);
    };
  }

  function toOriginal(design, beta) {
    const result = apply(design.toOriginal, beta);
    if (result.length) result[0] += design.offset;
    return result;
  }

  function unit(width, at, value) {
    const vector = new Float64Array(width);
    vector[at] = value;
    return vector;
  }

  function withIntercept(moments, target, terms) {
    const { columns, width } = moments;
    const y = columns[target];
    const scaling = matrix(terms.length, terms.length);
    scaling.cells[0] = y.scale;
    terms.forEach((term, k) => {
      if (k === 0) return;
      const column = columns[term.position];
      scaling.cells[k * terms.length + k] = y.scale / column.scale;
      scaling.cells[k] = (-y.scale * column.centre) / column.scale;
    });
    return {
      vectors: terms.map((term) => unit(width, term.position, 1 / columns[term.position].weight)),
      targetVector: unit(width, target, 1 / y.weight),
      toOriginal: scaling,
      offset: y.centre,
      base: 0,
      targetScale: y.scale,
    };
  }

  // No constant column, so no intercept: the fit passes through the public midpoints.
  function throughOrigin(moments, target, terms) {
    const { columns, width } = moments;
    const y = columns[target];
    const scaling = matrix(terms.length, terms.length);
    terms.forEach((term, k) => {
      scaling.cells[k * terms.length + k] = y.scale / columns[term.position].scale;
    });
    return {
      vectors: terms.map((term) => unit(width, term.position, 1 / columns[term.position].weight)),
      targetVector: unit(width, target, 1 / y.weight),
      toOriginal: scaling,
      offset: 0,
      base: y.centre,
      targetScale: y.scale,
    };
  }

  // high − low of a number, of both factors for a product; one unit for levels and Legendre columns.
  function span(moments, term) {
    const column = moments.columns[term.position];
    return column.kind === "level" || column.kind === "legendre" ? 1 : 2 * column.scale;
  }

  dpgram.design = { INTERCEPT, possibleTargets, possibleFeatures, buildDesign, span };
})(globalThis.dpgram ??= {});
