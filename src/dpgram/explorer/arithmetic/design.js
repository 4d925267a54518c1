// Which regression is meant: terms and target as functions of the encoded row; as in analysis/design.py.
import { fromRows, matrix, orthonormal, triangleInverse, apply, form } from "./algebra.js";
import { memory, Refusal } from "./moments.js";

const INTERCEPT = "(intercept)";

// Every column that may be predicted: numbers, truth values, and single levels as 0/1.
function possibleTargets(moments) {
  return moments.columns
    .map((column, position) => ({ position, name: column.name, source: column.source, kind: column.kind }))
    .filter((column) => column.kind !== "constant");
}

// What is read from the table, without products and powers of it.
function readColumns(moments) {
  const derived = new Set(moments.declared.filter((column) => column.factors.length).map((column) => column.name));
  return possibleTargets(moments).filter(({ source }) => !derived.has(source));
}

// Declared columns that may explain the target: all but itself. `byDefault` leaves out what is made from it.
function possibleFeatures(moments, target) {
  const own = moments.columns[target].source;
  return moments.declared
    .filter((column) => column.name !== own)
    .map((column) => ({ ...column, byDefault: !column.factors.includes(own) }));
}

// `target` is a position; `on` a list of declared names, in the order wanted; `asked` says reference levels by column.
function buildDesign(moments, target, on, asked = {}) {
  const intercept = moments.hasConstant;
  const chosen = on.map((name) => moments.declared.find((column) => column.name === name));
  // Without an intercept the first group in the schema keeps all its levels: they carry the overall level.
  const groups = moments.declared.filter((column) => column.group && chosen.includes(column));
  const coded = new Set(intercept ? groups : groups.slice(1));
  const multiplied = new Set(chosen.flatMap((column) => column.factors));
  const references = new Map(
    moments.declared
      .filter((column) => coded.has(column) || (column.group && multiplied.has(column.name)))
      .map((group) => [group.name, referenceOf(moments, group, asked)]),
  );
  const every = chosen.flatMap((column) => column.positions);
  // Levels in which noisy counts show no rows to speak of leave the fit, and their products with them.
  const none = new Set(moments.columns.filter((column) => column.empty).map((column) => column.name));
  const isEmpty = (i) => moments.columns[i].empty || moments.columns[i].factors.some((name) => none.has(name));
  const empty = every.filter(isEmpty).map((i) => moments.columns[i].name);
  const behind = new Set(every.flatMap((i) => [moments.columns[i].name, ...moments.columns[i].factors]));
  const emptyLevels = moments.columns.filter((column) => column.empty && behind.has(column.name));
  const members = every.filter((i) => !isEmpty(i));
  const compared = (i) => [...coded].some((group) => group.name === moments.columns[i].source) && references.get(moments.columns[i].source) === i;
  const kept = members.filter((i) => !compared(i) && !followsFromOthers(moments, chosen, references, intercept, i));
  const terms = kept.map((position) => ({ name: moments.columns[position].original_name, position }));
  if (intercept) terms.unshift({ name: INTERCEPT, position: 0 });
  if (terms.length === 0) throw new Refusal("Choose at least one feature.");
  const laidOut = (intercept ? withIntercept : throughOrigin)(moments, target, terms, members);
  const spanned = orthonormal(fromRows(laidOut.vectors.map(moments.project), moments.width));
  if (!spanned.independent) {
    throw new Refusal("The features of this regression are linearly dependent by construction. Leave out one of them.");
  }
  const toTerms = triangleInverse(spanned.triangle);
  return {
    target, on, intercept, members, empty, emptyLevels, terms, ...laidOut,
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

// The level asked for; where there is none of that name, the most frequent one.
function referenceOf(moments, group, asked) {
  const at = (level) => group.positions.find((i) => moments.columns[i].level === level);
  return (Object.hasOwn(asked, group.name) ? at(asked[group.name]) : undefined) ?? at(group.reference);
}

// Products with a reference level, where the other factor is there by itself: `_without` in analysis/design.py.
function followsFromOthers(moments, chosen, references, intercept, i) {
  const { columns, declared } = moments;
  const product = declared.find((column) => column.name === columns[i].source);
  const grouped = product.factors.map((name) => declared.find((column) => column.name === name)).filter((column) => column.group);
  if (grouped.length === 0) return false;
  const least = grouped.map((group) => columns[i].factors.includes(columns[references.get(group.name)].name));
  const reduced = grouped.map((group) => {
    const other = product.factors.find((name) => name !== group.name);
    return chosen.some((column) => column.name === other);
  });
  if (least.some((isLeast, k) => isLeast && reduced[k])) return true;
  return grouped.length === 2 && intercept && !reduced.some(Boolean) && least.every(Boolean);
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

// A function of the encoded row, { place: factor }, as a vector of order one and the factor taken out.
function carried(columns, parts) {
  const size = Math.max(...parts.map(([place, value]) => Math.abs(value) * columns[place].weight));
  return { vector: vectorOf(columns.length, parts, size), size };
}

function vectorOf(width, parts, size) {
  const vector = new Float64Array(width);
  for (const [place, value] of parts) vector[place] = value / size;
  return vector;
}

// Terms F in original units are V·M with V in z: see `_with_intercept` in analysis/design.py.
function withIntercept(moments, target, terms, members) {
  const { columns, width } = moments;
  const y = columns[target];
  const rowOf = new Map(terms.map((term, k) => [term.position, k]));
  const degree = (k) => columns[terms[k].position].monomial.length;
  const byDegree = terms.map((_, k) => k).sort((a, b) => degree(a) - degree(b) || a - b);
  const plain = new Set();
  const vectors = new Array(terms.length);
  const inverse = matrix(terms.length, terms.length);
  const at = (i, k) => i * terms.length + k;
  for (const k of byDegree) {
    const own = terms[k].position;
    const { parts } = columns[own];
    const usable = parts.every(([place]) => place === own || plain.has(place));
    if (usable) plain.add(own);
    const { vector, size } = usable
      ? { vector: unit(width, own, 1 / columns[own].weight), size: partAt(parts, own) * columns[own].weight }
      : carried(columns, parts);
    vectors[k] = vector;
    inverse.cells[at(k, k)] = 1 / size;
    for (const [place, value] of usable ? parts : []) {
      if (place === own) continue;
      const factor = (value * columns[place].weight) / size;
      for (let i = 0; i < terms.length; i++) inverse.cells[at(i, k)] -= inverse.cells[at(i, rowOf.get(place))] * factor;
    }
  }
  for (let i = 0; i < inverse.cells.length; i++) inverse.cells[i] *= y.scale;
  const varying = y.parts.filter(([place]) => place !== 0);
  return {
    vectors,
    axes: members.map((member) =>
      rowOf.has(member) && !plain.has(member)
        ? vectors[rowOf.get(member)].map((x) => x * columns[member].weight)
        : unit(width, member, 1),
    ),
    targetVector: vectorOf(width, varying, y.scale),
    toOriginal: inverse,
    offset: partAt(y.parts, 0) * columns[0].weight,
    base: 0,
    targetScale: y.scale,
  };
}

function partAt(parts, place) {
  return parts.find(([other]) => other === place)?.[1] ?? 0;
}

// No constant column, so no intercept: the fit passes through the public midpoints.
function throughOrigin(moments, target, terms, members) {
  const { columns, width } = moments;
  const y = columns[target];
  const scaling = matrix(terms.length, terms.length);
  const vectors = terms.map((term, k) => {
    const { vector, size } = carried(columns, columns[term.position].parts);
    scaling.cells[k * terms.length + k] = y.scale / size;
    return vector;
  });
  const whole = members.length === terms.length;
  return {
    vectors,
    axes: vectors.map((vector, k) => (whole ? vector.map((x) => x * columns[members[k]].weight) : vector)),
    targetVector: vectorOf(width, y.parts, y.scale),
    toOriginal: scaling,
    offset: 0,
    base: y.centre,
    targetScale: y.scale,
  };
}

// How answers call a declared column; what is computed from others as its coefficient: age:bmi.
function calledAs(moments, source) {
  const column = moments.declared.find(({ name }) => name === source);
  if (!column?.factors.length) return source;
  if (column.positions.length > 1) return column.factors.join(":");
  const own = moments.columns[column.positions[0]];
  return own.monomial.length ? own.original_name : source;
}

// What answers call each declared column → places of its terms.
function placesByColumn(moments, design) {
  const found = new Map();
  design.terms.forEach(({ position }, k) => {
    if (design.intercept && position === 0) return;
    const name = calledAs(moments, moments.columns[position].source);
    found.set(name, [...(found.get(name) ?? []), k]);
  });
  return found;
}

// high − low of a number, of all factors for a product or a power; one unit for levels.
function span(moments, term) {
  const column = moments.columns[term.position];
  const names = column.monomial.length ? column.monomial : [column.name];
  const kindOf = (name) => moments.columns.find((other) => other.name === name).kind;
  return names.every((name) => kindOf(name) === "level") ? 1 : 2 * column.scale;
}

export { INTERCEPT, possibleTargets, readColumns, possibleFeatures, calledAs, buildDesign, placesByColumn, span };
