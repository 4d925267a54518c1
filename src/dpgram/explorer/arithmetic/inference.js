// Un-shrunken coefficients with intervals that hold the sampling error and the privacy noise, or a refusal.
// The same formulas as analysis/unshrunken.py, inference.py, trust.py, _fieller.py and quality.py.
import {
  matrix, fromRows, row, dot, addScaled, times, timesTransposed, apply, combine, form, symmetric, eigen, spectral,
  orthonormal, inverse,
} from "./algebra.js";
import { Refusal } from "./moments.js";
import { declaredModel, declaredTests } from "./declared.js";
import { upperTail, upperQuantile, fTail } from "./distributions.js";

const NO_DEGREES = "the number of rows is unknown or not larger than the number of coefficients";

// The corrected solution for `target` on the span of the orthonormal rows of `basis`.
function solve(moments, basis, target, block = null) {
  const { gram, noise } = moments;
  const size = basis.rows;
  const toTarget = size ? apply(basis, target) : new Float64Array(0);
  const outside = addScaled(Float64Array.from(target), -1, combine(basis, toTarget));
  const toward = apply(gram, outside);
  if (size === 0) return { basis, residual: outside, residualSum: dot(outside, toward), inflation: 1 };
  const b = apply(basis, toward);
  const found = eigen(block ?? form(basis, gram));
  const variance = noise.offdiagonalSd ** 2;
  const inverse = shifted(found.values, variance * (1 - 1 / size)).map((x) => 1 / x);
  const rotated = apply(found.vectors, b);
  const slopes = combine(found.vectors, rotated.map((x, i) => inverse[i] * x));
  const inflation = 1 + variance * dot(inverse, inverse);
  const residual = addScaled(Float64Array.from(outside), -1, combine(basis, slopes));
  const explained = rotated.reduce((sum, x, i) => sum + inverse[i] * x * x, 0);
  const squares = dot(residual, residual);
  const length = dot(outside, outside);
  const deflated = Math.min(squares * (1 - 1 / inflation), squares - length);
  const trace = inverse.reduce((sum, x) => sum + x, 0);
  const ordered = { values: inverse, vectors: found.vectors };
  return {
    theta: slopes.map((x, i) => x + toTarget[i]),
    basis, slopes, residual, inflation, deflated,
    inverse: ordered,
    resolvent: spectral(ordered, (x) => x),
    covariance: (errorVariance) => covarianceOf(moments, basis, ordered, residual, deflated, errorVariance),
    residualSum: dot(outside, toward) - explained + length * variance * trace,
    shares: inverse.map((x) => variance * x * x),
    vectors: found.vectors,
    smallest: found.values[0],
  };
}

// R·S·R + s²·R with S the covariance of BᵀN r less what the noise of the inverse itself puts into |r|²:
// S = o²((|r|² − deflated)·I + aaᵀ) with a = Br, and for cells of unequal noise a diagonal correction.
function covarianceOf(moments, basis, inverse, residual, deflated, errorVariance) {
  const { noise } = moments;
  const off = noise.offdiagonalSd ** 2;
  const even = off * (dot(residual, residual) - deflated);
  const covariance = spectral(inverse, (x) => even * x * x + errorVariance * x);
  const along = apply(inverse.vectors, apply(basis, residual)).map((x, i) => x * inverse.values[i]);
  const turned = combine(inverse.vectors, along);
  turned.forEach((x, i) => addScaled(row(covariance, i), off * x, turned));
  const excess = noise.diagonalSd ** 2 - 2 * off;
  if (Math.abs(excess) > 1e-9 * off) {
    const toBasis = times(spectral(inverse, (x) => x), basis);
    const weighted = matrix(basis.rows, basis.columns);
    for (let i = 0; i < basis.rows; i++) {
      row(weighted, i).set(row(toBasis, i).map((x, k) => excess * x * residual[k] ** 2));
    }
    addScaled(covariance.cells, 1, timesTransposed(weighted, toBasis).cells);
  }
  return covariance;
}

// w_i + z for the only root z > max(0, −w_min) of z = v·Σ 1/(w_i + z). The excess is increasing and concave
// in the distance x from the edge, so Newton's method climbs to the root from below.
function shifted(values, variance) {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, Math.abs(value));
  if (variance === 0) {
    if (Math.abs(values[0]) <= 1e-12 * largest) {
      throw new Refusal("The features are linearly dependent in this table. Leave out one of them.");
    }
    return values;
  }
  const edge = Math.max(0, -values[0]);
  const above = values.map((value) => value + edge);
  const reach = Math.sqrt(variance * values.length);
  let x = values[0] > 0 ? 0 : variance / (edge + reach);
  for (let step = 0; step < 500; step++) {
    let sum = 0;
    let slope = 0;
    for (const value of above) {
      const inverse = 1 / (value + x);
      sum += inverse;
      slope += inverse * inverse;
    }
    const change = -(edge + x - variance * sum) / (1 + variance * slope);
    x = Math.min(x + change, reach);
    if (!(change > 1e-15 * x)) break;
  }
  return above.map((value) => value + x);
}

// Everything a reader of the coefficients needs, for kind "population" or "table".
function infer(moments, design, kind, level) {
  const solution = design.once("un-shrunken", () =>
    solve(moments, design.basis, design.targetFunction, design.block),
  );
  const population = kind === "population";
  const functionals = times(design.toOriginal, design.toTerms);
  const rotated = times(functionals, solution.resolvent);
  const moved = movedColumns(moments, design);
  let refusal = refusalOf(moments, design, solution) ?? (population && moved ? moments.constants.moved_refusal : null);
  let degrees = population && moments.rows !== null ? moments.rows - design.terms.length : null;
  if (population && !(degrees >= 1)) {
    refusal = refusal ?? NO_DEGREES;
    degrees = null;
  }
  const declared = refusal === null ? declaredModel(moments, design, kind) : null;
  if (declared?.linear) return byDeclared({ design, declared, kind, level, degrees, solution, refusal });
  const covariance = declared === null
    ? solution.covariance(degrees === null ? 0 : (moments.samplingFactor * Math.max(solution.residualSum, 0)) / degrees)
    : form(inverse(functionals), declared.covariance);
  const quantile = upperQuantile(0.5 * (1 - level), degrees);
  const usual = upperQuantile(0.025, degrees);
  const toward = times(functionals, covariance);
  const kept = withoutLost(moments, solution, covariance);
  const trace = covariance.cells.reduce((sum, x, i) => (i % (covariance.rows + 1) ? sum : sum + x), 0);
  // All that is known of one functional of the solution, with its estimate.
  const moving = (functional, ahead, estimate) => {
    const leaning = apply(solution.resolvent, functional);
    const variance = dot(apply(covariance, functional), functional);
    return {
      estimate, variance, trusted: isTrusted(moments, functional, leaning),
      ...atHypothesis(moments, solution, variance, ahead, leaning, trace),
    };
  };
  const raw = design.names.map((_, j) => dot(row(functionals, j), solution.theta) + (j === 0 ? design.offset : 0));
  const coefficients = design.names.map((name, j) => {
    const functional = row(functionals, j);
    const variance = dot(row(toward, j), functional);
    const moved = atHypothesis(moments, solution, variance, aheadOf(kept, functional), row(rotated, j), trace);
    const trusted = isTrusted(moments, functional, row(rotated, j));
    return judged({ name, estimate: raw[j], variance, ...moved, quantile, usual, degrees, trusted, refusal });
  });
  const unequal = population && refusal === null ? varianceCautions(moments, design) : [];
  return {
    kind, level, refusal, degrees, coefficients, solution, raw, unequalVariance: declared?.told.unequal_variance ?? null,
    // The combination Σ w_j β_j: an estimate, its variance and how that moves with the hypothesis.
    combined: (weights) => {
      const functional = combine(functionals, weights);
      return moving(functional, aheadOf(kept, functional), dot(weights, Float64Array.from(raw)));
    },
    judge: (name, found) => judged({ name, ...found, quantile, usual, degrees, refusal }),
    covarianceOf: (places) => {
      const chosen = fromRows(places.map((j) => row(functionals, j)), functionals.columns);
      return timesTransposed(times(chosen, covariance), chosen);
    },
    quantile,
    meaning: moments.facts[moved ? "moved_meanings" : "meanings"][kind],
    assumptions: declared?.told.assumptions ?? moments.facts.assumptions[kind],
    inflation: solution.inflation,
    cautions: declared?.told.cautions ?? [
      ...cautionsOf(moments, solution, kind, moved, refusal), ...unequal, ...doubtfulCautions(refusal, coefficients),
    ],
  };
}

// Of a declared model whose covariance is the same whatever its coefficients are: both come with the page.
function byDeclared({ design, declared, kind, level, degrees, solution, refusal }) {
  const { estimate: raw, covariance, told } = declared;
  const quantile = upperQuantile(0.5 * (1 - level), degrees);
  const usual = upperQuantile(0.025, degrees);
  const linear = (weights) => {
    const variance = Math.max(dot(apply(covariance, weights), weights), 0);
    return { estimate: dot(weights, raw), variance, trusted: true, constant: variance, slope: 0, curvature: 0 };
  };
  const judge = (name, found) => judged({ name, ...found, quantile, usual, degrees, refusal });
  return {
    kind, level, refusal, degrees, solution, raw, unequalVariance: told.unequal_variance,
    coefficients: design.names.map((name, j) => judge(name, linear(unitVector(raw.length, j)))),
    combined: linear,
    judge,
    covarianceOf: (places) => fromRows(places.map((i) => places.map((j) => covariance.cells[i * raw.length + j])), places.length),
    quantile,
    meaning: told.meaning,
    assumptions: told.assumptions,
    inflation: solution.inflation,
    cautions: told.cautions,
  };
}

function unitVector(size, at) {
  const vector = new Float64Array(size);
  vector[at] = 1;
  return vector;
}

// Where a declared model of the same target shows unequal variances, errors without it may be wrong.
function varianceCautions(moments, design) {
  const target = moments.columns[design.target].name;
  const test = declaredTests(moments, target).find(({ pvalue }) => pvalue < moments.constants.unequal_variance);
  if (test === undefined) return [];
  return [
    `the declared model of ${target} shows errors of unequal variance (${varianceTestInWords(test)}): those of other ` +
      `models, which take them for equal, may be too small by a factor of ${general(test.ratio, 2)} or more`,
  ];
}

// Smaller chances are not told: the law of the statistic is an approximation there.
const LEAST_PVALUE = 1e-4;

function varianceTestInWords(test) {
  const chance = test.pvalue < LEAST_PVALUE ? `p < ${LEAST_PVALUE}` : `p = ${general(test.pvalue, 2)}`;
  return `χ²(${test.degrees}) = ${general(test.statistic, 4)}, ${chance}`;
}

// A joint test that the coefficients at `places` are all zero, as in `wald_test` of analysis/inference.py:
// { statistic, numerator, denominator, p } or { refused }.
function jointTest(inference, names, places) {
  if (inference.refusal !== null) return { refused: inference.refusal };
  const doubtful = places.filter((j) => !inference.coefficients[j].trusted).map((j) => names[j]);
  if (doubtful.length) return { refused: untrustedCaution(doubtful) };
  const covariance = inference.covarianceOf(places);
  const size = places.length;
  const scale = places.map((_, i) => Math.sqrt(Math.max(covariance.cells[i * size + i], 2 ** -1022)));
  const standard = symmetric({ ...covariance, cells: covariance.cells.map((x, k) => x / (scale[Math.floor(k / size)] * scale[k % size])) });
  const found = eigen(standard);
  const [least, most] = [Math.min(...found.values.map(Math.abs)), Math.max(...found.values.map(Math.abs))];
  if (!(least > most * size * 2 ** -52)) return { refused: "these coefficients repeat each other" };
  const along = apply(found.vectors, Float64Array.from(places, (j, i) => inference.raw[j] / scale[i]));
  const statistic = Math.max(along.reduce((sum, x, i) => sum + (x * x) / found.values[i], 0), 0);
  const byF = inference.degrees !== null;
  return {
    statistic: byF ? statistic / size : statistic, numerator: size, denominator: inference.degrees,
    p: fTail(statistic / size, size, inference.degrees),
  };
}

// The covariance confined to the directions that are not lost: along the others a hypothesis could run anywhere.
function withoutLost(moments, solution, covariance) {
  const { lost } = moments.constants;
  if (solution.shares.every((share) => share <= lost)) return covariance;
  const keep = spectral({ values: solution.shares, vectors: solution.vectors }, (share) => (share <= lost ? 1 : 0));
  return times(keep, times(covariance, keep));
}

function aheadOf(covariance, functional) {
  const toward = apply(covariance, functional);
  const size = dot(toward, functional);
  return toward.map((x) => (size > 0 ? x / size : 0));
}

// How the variance of one coefficient moves with the hypothesis: c₀ + c₁δ + c₂δ² (`_at_hypothesis` in Python).
function atHypothesis(moments, solution, variance, ahead, rotated, trace) {
  const off = moments.noise.offdiagonalSd ** 2;
  const own = dot(rotated, ahead);
  const noneLost = solution.shares.every((share) => share <= moments.constants.lost);
  const reach = (noneLost ? moments.constants.following : 0) * off * dot(rotated, rotated);
  const squares = dot(ahead, ahead);
  const share = Math.min((squares * variance) / Math.max(trace, 2 ** -1022), 1);
  return {
    constant: variance + reach * solution.deflated * share,
    slope: 2 * (off * dot(rotated, solution.slopes) * own + reach * dot(ahead, solution.slopes)),
    curvature: off * own * own + reach * squares,
  };
}

// Fieller's interval and the p-value of zero, or nothing where the noise forbids them. Without an interval
// there is no error and no p-value; without one at 95% neither of the two.
function judged({ name, estimate, variance, constant, slope, curvature, quantile, usual, degrees, trusted, refusal }) {
  const clear = refusal === null && trusted;
  const nothing = { name, trusted: clear, estimate: null, error: null, low: null, high: null, p: null };
  if (!clear || !(quantile ** 2 * curvature < 1)) return nothing;
  const [low, high] = pivotInterval(estimate, constant, slope, curvature, quantile);
  if (!(usual ** 2 * curvature < 1)) return { ...nothing, estimate, low, high };
  const atZero = constant - slope * estimate + curvature * estimate * estimate;
  const ratio = atZero > 0 ? Math.abs(estimate) / Math.sqrt(atZero) : Infinity;
  return {
    name, trusted: true, estimate, error: Math.sqrt(variance), low, high,
    p: ratio === Infinity ? 0 : 2 * upperTail(ratio, degrees),
  };
}

// {β : (β̂ − β)² ≤ q²·Var(β)} with Var(β̂ + δ) = C + c₁δ + c₂δ².
function pivotInterval(estimate, variance, slope, curvature, quantile) {
  const squared = quantile * quantile;
  const lead = 1 - squared * curvature;
  if (!(lead > 0)) return [-Infinity, Infinity];
  const middle = (0.5 * squared * slope) / lead;
  const reach = Math.sqrt(middle * middle + (squared * variance) / lead);
  return [estimate + middle - reach, estimate + middle + reach];
}

// `design` null: without the names of the terms that the noise cannot tell apart.
function refusalOf(moments, design, solution) {
  const { constants, noise } = moments;
  const kept = solution.shares.filter((share) => share <= constants.lost);
  const lost = solution.shares.length - kept.length;
  const limit = lost ? constants.rest_limit_beside_lost : constants.rest_limit;
  const sum = kept.reduce((all, share) => all + share, 0);
  if (lost <= constants.lost_part * solution.shares.length && 1 + sum <= limit) return null;
  const reach = noise.expectedNorm(solution.shares.length);
  return (
    "the privacy noise is too large for these features: the weakest combination of them has strength " +
    `${general(solution.smallest, 3)} (smallest eigenvalue) where the noise alone reaches ${general(reach, 3)}, ` +
    `so its coefficients could be almost anything${design === null ? "" : between(moments, design, solution)}`
  );
}

// The terms that make up most of the weakest direction.
function between(moments, design, solution) {
  const { constants } = moments;
  const toward = apply(design.toTerms, row(solution.vectors, 0));
  const sizes = design.vectors.map((vector, k) => Math.abs(toward[k]) * Math.sqrt(dot(vector, vector)));
  const largest = Math.max(...sizes);
  const order = sizes
    .map((_, k) => k)
    .sort((a, b) => sizes[b] - sizes[a])
    .filter((k) => sizes[k] >= constants.most_of_it * largest);
  const named = order.slice(0, constants.most_named).map((k) => design.names[k]);
  const left = order.length - constants.most_named;
  if (named.length === 1) return ` (too little is known of ${named[0]})`;
  const more = left > 0 ? ` and ${left} more` : "";
  return ` (too little tells ${named.slice(0, -1).join(", ")} and ${named.at(-1)}${more} apart)`;
}

function isTrusted(moments, functional, rotated) {
  const size = Math.max(dot(functional, functional), 2 ** -1022);
  const reach = dot(rotated, rotated);
  return 1 + (moments.noise.offdiagonalSd ** 2 * reach) / size <= moments.constants.own_limit;
}

// Whether bounds of a column of the regression, or of one behind its products, were learnt.
function movedColumns(moments, design) {
  const positions = [design.target, ...design.terms.map((term) => term.position)];
  const used = new Set(positions.map((position) => moments.columns[position].source));
  for (const column of moments.declared) if (used.has(column.name)) column.factors.forEach((name) => used.add(name));
  return moments.declared.some((column) => column.learnt && used.has(column.name));
}

function cautionsOf(moments, solution, kind, moved, refusal) {
  const { constants, facts } = moments;
  const refused = refusal !== null;
  const found = refused || moments.noise.added ? [] : [constants.sampled_caution];
  if (!refused && solution.inflation > constants.caution_inflation) found.push(constants.close_caution);
  found.push(...facts[refused ? "refused_cautions" : "cautions"][kind]);
  if (moved && kind === "table") found.push(constants.moved_caution);
  return found;
}

function doubtfulCautions(refusal, coefficients) {
  const doubtful = coefficients.filter((c) => !c.trusted).map((c) => c.name);
  return refusal === null && doubtful.length ? [untrustedCaution(doubtful)] : [];
}

function untrustedCaution(names) {
  const more = names.length > 5 ? ` and ${names.length - 5} more` : "";
  return `no interval for ${names.slice(0, 5).join(", ")}${more}: the table tells too little about it to stand clear of the noise`;
}

// R² as { estimate, error, low, high } and the residual variance as { estimate }, or { refused: why }.
function quality(moments, design, inference) {
  const { solution, refusal } = inference;
  const degrees = moments.rows === null ? null : moments.rows - design.terms.length;
  const normal = upperQuantile(0.5 * (1 - inference.level), null);
  // Moved values forbid an interval for the population, not an estimate.
  const hidden = refusal !== null && refusal !== moments.constants.moved_refusal;
  return {
    rSquared: refusal === null ? rSquared(moments, design, inference, degrees, normal) : { refused: refusal },
    residualVariance: hidden ? { refused: refusal } : residualVariance(design, solution, degrees),
  };
}

function residualVariance(design, solution, degrees) {
  if (!(degrees >= 1)) return { refused: NO_DEGREES };
  return { estimate: Math.max(solution.residualSum / degrees, 0) * design.targetScale ** 2 };
}

function rSquared(moments, design, { solution, kind }, degrees, normal) {
  const { noise, constants } = moments;
  const first = design.intercept ? [moments.project(design.vectors[0])] : [];
  const total = solve(moments, orthonormal(fromRows(first, moments.width)).basis, design.targetFunction);
  const reach = noise.diagonalSd * dot(total.residual, total.residual);
  if (total.residualSum <= constants.signal_to_noise * reach) {
    return { refused: "the variance of the target does not stand clear of the noise, so its explained share is unknown" };
  }
  const ratio = solution.residualSum / total.residualSum;
  const left = solution.residual;
  const whole = total.residual;
  const scale = total.residualSum ** 2;
  const estimate = Math.min(Math.max(1 - ratio, 0), 1);
  let variance = (solution.inflation * noise.functionalVariance(1, left, -ratio, whole)) / scale;
  const mixed =
    0.25 * (noise.functionalVariance(1, left, 1, whole) - noise.functionalVariance(1, left, -1, whole));
  const curvature = noise.functionalVariance(0, left, 1, whole);
  if (kind === "population") {
    if (!(degrees >= 1)) return { refused: NO_DEGREES };
    variance += (4 * estimate * (1 - estimate) ** 2) / degrees;
  }
  const slope = (2 * (mixed - ratio * curvature)) / scale;
  const ends = pivotInterval(1 - ratio, variance, slope, curvature / scale, normal);
  const [low, high] = ends.map((end) => Math.min(Math.max(end, 0), 1));
  return { estimate, error: Math.sqrt(variance), low, high };
}

// A number as Python's %g prints it.
function general(value, digits) {
  if (!Number.isFinite(value)) return value > 0 ? "inf" : value < 0 ? "-inf" : "nan";
  if (value === 0) return "0";
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const power = Number(exponent);
  const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < digits) return trimmed(value.toFixed(digits - 1 - power));
  return `${trimmed(mantissa)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

export {
  infer, quality, jointTest, pivotInterval, solve, refusalOf, isTrusted, cautionsOf, untrustedCaution, movedColumns,
  varianceTestInWords, NO_DEGREES, general,
};
