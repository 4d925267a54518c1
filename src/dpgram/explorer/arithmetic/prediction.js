// A prediction for one person, with intervals: the same steps as analysis/prediction.py.
import { dot } from "./algebra.js";
import { normalBelow } from "./distributions.js";
import { termOf } from "./downloads.js";
import { pivotInterval } from "./inference.js";

// What each term is for a person: { column: number or level }, numbers in original units.
function designRow(moments, design, person) {
  return Float64Array.from(design.terms, (term) => termValue(termOf(moments, design, term).of, person));
}

const clamped = (value, within) => (within ? Math.min(Math.max(value, within[0]), within[1]) : value);

function cellOf(of, person) {
  const given = person[of.column];
  return of.level === undefined ? clamped(Number(given), of.within) : Number(given === of.level);
}

const centred = (of, person) => (of.level === undefined ? cellOf(of, person) - of.centre : cellOf(of, person));

function legendre(degree, z) {
  let [before, value] = [1, z];
  for (let k = 2; k <= degree; k++) [before, value] = [value, ((2 * k - 1) * z * value - (k - 1) * before) / k];
  return value;
}

const VALUES = {
  constant: () => 1,
  number: (of, person) => cellOf(of, person) - of.shift,
  level: (of, person) => cellOf(of, person),
  monomial: (of, person) => of.factors.reduce((all, factor) => all * cellOf(factor, person), 1),
  product: (of, person) => of.factors.reduce((all, factor) => all * centred(factor, person), 1),
  legendre: (of, person) => legendre(of.degree, centred(of, person) / of.half_width),
};

function termValue(of, person) {
  return VALUES[of.kind](of, person);
}

// The columns that a person must be asked for: those the terms are computed from.
function neededColumns(moments, design) {
  const parts = design.terms.flatMap((term) => {
    const { of } = termOf(moments, design, term);
    return of.kind === "constant" ? [] : (of.factors ?? [of]).map((factor) => factor.column);
  });
  const needed = new Set(parts);
  return moments.declared.filter((column) => needed.has(column.name));
}

// Why nothing tells about a person: levels without rows, who are predicted as the reference is. Null for others.
function withoutRows(design, person) {
  const names = design.emptyLevels.filter(({ source, level }) => person[source] === level).map(({ name }) => name);
  return names.length === 0 ? null : `noisy counts show no rows to speak of with ${names.join(", ")}, so the fit `
    + "knows nothing of such a row: it is predicted as if it had the reference level";
}

// { fitted, mean, low, high, newLow, newHigh } or, without intervals, { fitted, refused }.
function predict(moments, { design, fit, inference, quality }, person) {
  const row = designRow(moments, design, person);
  const target = moments.declared.find((column) => column.name === moments.columns[design.target].source);
  const fitted = clamped(dot(row, fit.values) + design.base, target.learnt ? target.bounds : null);
  const nobody = withoutRows(design, person);
  if (nobody !== null) return { fitted, refused: nobody };
  if (inference.refusal !== null) return { fitted, refused: inference.refusal };
  if (quality.residualVariance.refused) return { fitted, refused: quality.residualVariance.refused };
  const found = inference.combined(row);
  const ends = (more) => (found.trusted
    ? pivotInterval(found.estimate, found.constant + more, found.slope, found.curvature, inference.quantile)
    : [-Infinity, Infinity]).map((end) => end + design.base);
  const [low, high] = ends(0);
  const [newLow, newHigh] = ends(plausibleVariance(moments, design, inference));
  return { fitted, mean: found.estimate + design.base, low, high, newLow, newHigh };
}

// E(s² | ŝ²) for ŝ² ~ N(s², τ²): where noise hides the error variance, zero would promise certainty.
function plausibleVariance(moments, design, { solution }) {
  const degrees = moments.rows - design.terms.length;
  const scale = design.targetScale ** 2;
  const raw = (solution.residualSum / degrees) * scale;
  // The number of rows is noisy too, unless it is public.
  const one = moments.constantVector === null ? solution.residual : moments.project(moments.constantVector);
  const share = moments.constantVector === null ? 0 : Math.max(solution.residualSum / degrees, 0);
  const noise = moments.noise.functionalVariance(1, solution.residual, -share, one);
  const error = (Math.sqrt(solution.inflation * noise) / degrees) * scale;
  if (error === 0) return Math.max(raw, 0);
  const ratio = raw / error;
  return raw + (error * Math.exp(-0.5 * ratio * ratio)) / Math.sqrt(2 * Math.PI) / normalBelow(ratio);
}

export { predict, designRow, neededColumns, withoutRows };
