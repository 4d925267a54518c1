// What the page knows: G̃ = G + N where it was measured, the size of N, and the linear facts every table obeys.
// The same steps as analysis/moments.py; constants and the law of the noise come with the page's data.
import { matrix, fromRows, row, dot, addScaled, apply, orthonormal, symmetric } from "./algebra.js";

// A question that the noise, or the schema, does not let anybody answer.
class Refusal extends Error {}

const TOO_NOISY =
  "The noise is larger than the whole table: the noisy number of rows is not positive. Ask for a release of " +
  "more rows, of fewer columns, or with a larger epsilon.";

// Of the release itself, or with another matrix that was measured in the same way.
function momentsOf(facts, gram = publishedGram(facts, JSON.parse(facts.release))) {
  const lift = liftOf(facts);
  const nullSpace = knownNullSpace(facts, lift);
  const moments = {
    facts,
    columns: facts.columns,
    declared: facts.declared,
    constants: facts.constants,
    noise: noiseOf(facts.noise),
    width: facts.columns.length,
    hasConstant: facts.constant,
    nullSpace,
    lifted: facts.lift !== null,
    samplingFactor: facts.sampling_factor,
    // A function of the encoded row, as a function where the matrix was measured.
    project: (vector) => projected(lift(vector), nullSpace),
  };
  moments.gram = consistentGram(gram, nullSpace, facts.noise.mean_diagonal);
  moments.constantVector = constantVector(facts);
  moments.rows = rowsOf(moments);
  return moments;
}

// cells · 2^exponent · unit, the lower triangle by rows.
function publishedGram(facts, release) {
  const width = facts.columns.length;
  const factor = 2 ** release.matrix.exponent;
  const result = matrix(width, width);
  for (let i = 0, at = 0; i < width; i++) {
    for (let j = 0; j <= i; j++, at++) {
      // Where an inverse was published, the Gram matrix it stands for comes ready.
      const value =
        facts.gram === null ? Number(release.matrix.cells[at]) * factor * facts.cell_unit : facts.gram[at];
      result.cells[i * width + j] = value;
      result.cells[j * width + i] = value;
    }
  }
  return result;
}

// Computes what is asked for under a name once, however often it is asked for.
function memory() {
  const known = new Map();
  return (name, compute) => {
    if (!known.has(name)) known.set(name, compute());
    return known.get(name);
  };
}

// Lᵀ: an adaptive release measures u = T v, and f·v is (Lᵀf)·u with L = T⁻¹.
function liftOf(facts) {
  if (facts.lift === null) return (vector) => vector;
  const width = facts.columns.length;
  const lift = { rows: width, columns: width, cells: Float64Array.from(facts.lift) };
  return (vector) => apply(lift, vector);
}

function noiseOf(law) {
  const diagonal = law.diagonal_sd ** 2;
  const off = law.offdiagonal_sd ** 2;
  return {
    diagonalSd: law.diagonal_sd,
    offdiagonalSd: law.offdiagonal_sd,
    added: law.added,
    expectedNorm: (width) => law.expected_norms[width],
    // Var⟨S, N⟩ for S = a·xxᵀ + b·yyᵀ.
    functionalVariance(a, x, b, y) {
      let onDiagonal = 0;
      for (let i = 0; i < x.length; i++) onDiagonal += (a * x[i] * x[i] + b * y[i] * y[i]) ** 2;
      const xx = dot(x, x);
      const xy = dot(x, y);
      const yy = dot(y, y);
      const all = a * a * xx * xx + 2 * a * b * xy * xy + b * b * yy * yy;
      return diagonal * onDiagonal + 2 * off * (all - onDiagonal);
    },
  };
}

// Orthonormal u with G·u = 0 in every table: levels, and products with them, add up.
function knownNullSpace(facts, lift) {
  const width = facts.columns.length;
  const sums = (facts.complete_groups ? facts.known_sums : []).map((parts) => {
    const vector = new Float64Array(width);
    for (const [place, value] of parts) vector[place] = value;
    return vector;
  });
  return orthonormal(fromRows(sums.map(lift), width)).basis;
}

function projected(vector, nullSpace) {
  const result = Float64Array.from(vector);
  for (let i = 0; i < nullSpace.rows; i++) addScaled(result, -dot(row(nullSpace, i), vector), row(nullSpace, i));
  return result;
}

// P (G̃ − E N) P.
function consistentGram(gram, nullSpace, mean) {
  const width = gram.rows;
  const result = { rows: width, columns: width, cells: Float64Array.from(gram.cells) };
  for (let i = 0; i < width; i++) result.cells[i * width + i] -= mean;
  if (nullSpace.rows === 0) return result;
  for (let pass = 0; pass < 2; pass++) {
    for (let i = 0; i < width; i++) result.cells.set(projected(row(result, i), nullSpace), i * width);
    transposeInPlace(result);
  }
  return symmetric(result);
}

function transposeInPlace(a) {
  const n = a.rows;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) {
      const kept = a.cells[i * n + j];
      a.cells[i * n + j] = a.cells[j * n + i];
      a.cells[j * n + i] = kept;
    }
  }
}

// v with v·a = 1 for every row a, or null when no column says so.
function constantVector(facts) {
  const vector = new Float64Array(facts.columns.length);
  if (facts.constant) {
    vector[0] = 1 / facts.columns[0].weight;
    return vector;
  }
  const group = facts.declared.find((column) => column.group);
  if (!facts.complete_groups || group === undefined) return null;
  for (const i of group.positions) vector[i] = 1 / facts.columns[i].weight;
  return vector;
}

function rowsOf(moments) {
  const constant = moments.constantVector;
  if (constant === null) return moments.facts.public_rows;
  const held = moments.project(constant);
  return dot(held, apply(moments.gram, held));
}

export { momentsOf, memory, Refusal, TOO_NOISY };
