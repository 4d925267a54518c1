// The fit: `auto` (noise-aware shrinkage), `ridge` with a chosen penalty, and `ols`.
// The same estimators as analysis/regress.py, analysis/problem.py and analysis/noise_aware.py.
import {
  fromRows, dot, norm, addScaled, times, timesTransposed, apply, combine, transpose, form, eigen, spectral, orthonormal,
  reflection, tail, leastSquares,
} from "./algebra.js";
import { Refusal, TOO_NOISY } from "./moments.js";

const TINY = 2 ** -1022;
const SHRUNK_INTERCEPT =
  "the noisy number of rows does not stand clear of its noise, so the intercept was shrunk with the rest: " +
  "treat every number here as a guess";

// { values in original units, penalty, effective, cautions, function } of one design.
function regress(moments, design, method, alpha = null) {
  const { function: found, penalty = 0, effective = null, cautions = [] } = METHODS[method](moments, design, alpha);
  return {
    method, alpha, penalty, effective, function: found, values: design.coefficients(found),
    cautions: [...cautions, ...wideCautions(moments, design), ...emptyCautions(design)],
  };
}

function auto(moments, design) {
  const problem = design.once("isotropic", () => isotropic(moments, design));
  const fit = design.once("auto", () => noiseAware(moments, problem));
  return {
    function: problem.solution(fit.theta),
    effective: fit.effective + (problem.centred ? 1 : 0),
    cautions: centringCautions(problem, design),
  };
}

function ols(moments, design) {
  const problem = design.once("isotropic", () => isotropic(moments, design));
  const theta = leastSquares(problem.spectrum(), problem.xy);
  return { function: problem.solution(theta), cautions: centringCautions(problem, design) };
}

function ridge(moments, design, alpha) {
  const problem = design.once("by column", () => byColumn(moments, design));
  const penalty = alpha === null ? moments.noise.expectedNorm(problem.xx.rows) : alpha;
  if (alpha === null && moments.lifted) {
    // A penalty from the noise follows its shape.
    const shape = timesTransposed(problem.basis, problem.basis);
    const penalised = { ...problem.xx, cells: problem.xx.cells.map((x, i) => x + penalty * shape.cells[i]) };
    return { function: problem.solution(leastSquares(eigen(penalised), problem.xy)), penalty };
  }
  return { function: problem.solution(leastSquares(problem.spectrum(), problem.xy, penalty)), penalty };
}

// The penalty that the noise alone would suggest: E‖N‖ on the columns of the design.
function defaultPenalty(moments, design) {
  return moments.noise.expectedNorm(design.members.length);
}

const METHODS = { auto, ols, ridge };

function emptyCautions({ empty }) {
  if (empty.length === 0) return [];
  const names = empty.slice(0, 5).join(", ") + (empty.length > 5 ? ` and ${empty.length - 5} more` : "");
  return [`noisy counts show no rows to speak of with ${names}: left out of the fit, so counted with the reference`];
}

function wideCautions(moments, design) {
  const positions = [design.target, ...design.terms.map((term) => term.position)];
  const used = new Set(positions.map((position) => moments.columns[position].source));
  const wide = moments.declared.filter((column) => column.wide && used.has(column.name));
  if (wide.length === 0) return [];
  return [
    `the learnt bounds of ${wide.map((column) => column.name).join(", ")} are far wider than the values, which ` +
      "the noise then hides: their coefficients shrink to almost nothing. Public bounds would help",
  ];
}

function centringCautions(problem, design) {
  return design.intercept && !problem.centred ? [SHRUNK_INTERCEPT] : [];
}

// Normal equations in orthonormal coordinates, where the noise is the same in every direction; the
// intercept is eliminated when the count stands clear of its noise.
function isotropic(moments, design) {
  const { gram, noise, constants } = moments;
  const { basis, block, targetFunction: target } = design;
  const whole = () => {
    const known = moments.lifted ? combine(basis, apply(basis, target)) : new Float64Array(target.length);
    const left = addScaled(Float64Array.from(target), -1, known);
    return problemOf(block, apply(basis, apply(gram, left)), left, gram, {
      centred: false, solution: (theta) => addScaled(combine(basis, theta), 1, known),
    });
  };
  if (!design.intercept) return whole();
  const constant = moments.project(design.vectors[0]);
  const toward = apply(gram, constant);
  const count = dot(constant, toward);
  if (count <= constants.count_to_noise * noise.diagonalSd * dot(constant, constant)) return whole();
  const mean = dot(target, toward) / count;
  const centred = addScaled(Float64Array.from(target), -mean, constant);
  // The functions with noisy mean zero are those orthogonal to B G u.
  const turn = reflection(apply(basis, toward));
  const free = new Float64Array(target.length);
  addScaled(free, mean, constant);
  if (moments.lifted) {
    // What the coordinates already tell of the target is not fitted again: see analysis/normal_equations.py.
    const known = turn.vector(apply(basis, centred));
    known[0] = 0;
    const told = combine(basis, turn.vector(known));
    addScaled(centred, -1, told);
    addScaled(free, 1, told);
  }
  const xy = turn.vector(apply(basis, apply(gram, centred))).subarray(1);
  return problemOf(tail(turn.form(block)), xy, centred, gram, {
    centred: true,
    solution: (theta) => addScaled(combine(basis, turn.vector([0, ...theta])), 1, free),
  });
}

// One coordinate for each encoded feature column, centred: the axes that a penalty refers to.
function byColumn(moments, design) {
  const gram = withoutNegative(moments, design);
  const target = design.targetFunction;
  const axes = design.axes.map((axis) => moments.project(axis));
  if (!design.intercept) {
    return alongAxes(gram, axes, target, { centred: false, mean: 0, constant: new Float64Array(moments.width) });
  }
  const constant = moments.project(design.vectors[0]);
  const toward = apply(gram, constant);
  const count = dot(constant, toward);
  if (Math.min(count, moments.rows || count) <= 0) throw new Refusal(TOO_NOISY);
  for (const axis of axes) addScaled(axis, -dot(axis, toward) / count, constant);
  const mean = dot(target, toward) / count;
  const centred = addScaled(Float64Array.from(target), -mean, constant);
  return alongAxes(gram, axes, centred, { centred: true, mean, constant });
}

function alongAxes(gram, axes, target, { centred, mean, constant }) {
  const basis = fromRows(axes, gram.rows);
  return problemOf(form(basis, gram), apply(basis, apply(gram, target)), target, gram, {
    centred,
    basis,
    solution: (theta) => addScaled(combine(basis, theta), mean, constant),
  });
}

// `solution` turns θ into a function of the row; the eigenvalues of A are computed when first needed.
function problemOf(xx, xy, target, gram, { centred, basis = null, solution }) {
  let spectrum = null;
  return {
    xx, xy, centred, basis, solution,
    yy: dot(target, apply(gram, target)),
    targetNorm: norm(target),
    spectrum: () => (spectrum ??= eigen(xx)),
  };
}

// The nearest positive semidefinite matrix on the span of the terms and the target.
function withoutNegative(moments, design) {
  const functions = [...design.vectors.map(moments.project), design.targetFunction];
  const span = orthonormal(fromRows(functions, moments.width)).basis;
  let block = form(span, moments.gram);
  const found = eigen(block);
  if (found.values[0] < 0) block = spectral(found, (value) => Math.max(value, 0));
  return times(transpose(span), times(block, span));
}

// θ_i = Σ_m π_m · p_m α_i u_i / (p_m α_i² + v_m) in the eigenbasis of A: see analysis/noise_aware.py.
function noiseAware(moments, problem) {
  const { noise, constants } = moments;
  const width = problem.xy.length;
  if (width === 0) return { theta: new Float64Array(0), effective: 0 };
  const found = problem.spectrum();
  const u = apply(found.vectors, problem.xy);
  const alpha = denoised(found.values, noise, constants);
  const sigma = noise.diagonalSd * problem.targetNorm ** 2;
  const c = smoothPositive(problem.yy, 0.25 * sigma * sigma);
  const size = problem.targetNorm ** 2;
  const off = noise.offdiagonalSd ** 2;
  const least = constants.negligible * Math.max(...alpha);
  const total = alpha.reduce((sum, x) => sum + x, 0);

  const evidence = constants.explained.map((m, k) => {
    const share = (m * c) / width;
    const q = alpha.map((a) => share / Math.max(a, least + TINY));
    const sum = q.reduce((all, x) => all + x, 0);
    let misfit = 0;
    for (let i = 0; i < width; i++) {
      const spread = share * Math.max(alpha[i], least + TINY) + off * (size + sum + q[i]) + TINY;
      misfit += Math.min((u[i] * u[i]) / spread, constants.largest_misfit) + Math.log(spread);
    }
    return constants.log_prior[k] - 0.5 * misfit;
  });
  const best = Math.max(...evidence);
  const weights = evidence.map((x) => Math.exp(x - best));
  const all = weights.reduce((sum, x) => sum + x, 0);

  const gain = new Float64Array(width);
  constants.explained.forEach((m, k) => {
    const p = (constants.widening * m * c) / Math.max(total, TINY);
    const v = off * (size + (width + 1) * p) + p * least * least + TINY;
    for (let i = 0; i < width; i++) gain[i] += (weights[k] / all) * ((p * alpha[i]) / (p * alpha[i] ** 2 + v));
  });
  return {
    theta: combine(found.vectors, gain.map((g, i) => g * u[i])),
    effective: dot(gain, alpha),
  };
}

// What remains of each eigenvalue without the noise, which pushes eigenvalues apart.
function denoised(values, noise, constants) {
  const sigma = noise.diagonalSd;
  const off = noise.offdiagonalSd;
  if (sigma === 0) return values.map((value) => Math.max(value, 0));
  const floor = (constants.floor * noise.expectedNorm(values.length) ** 2) / 4;
  return values.map((value) => {
    let pushed = 0;
    for (const other of values) pushed += (value - other) / ((value - other) ** 2 + sigma * sigma);
    return smoothPositive(value - 2 * off * off * pushed, floor);
  });
}

// ½(x + √(x² + 4a)); for negative x the equal form in which nothing cancels.
function smoothPositive(x, a) {
  const size = 0.5 * (Math.abs(x) + Math.sqrt(x * x + 4 * a));
  return x >= 0 ? size : a / Math.max(size, TINY);
}

export { regress, defaultPenalty };
