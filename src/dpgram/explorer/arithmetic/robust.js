// Errors of a declared linear model that allow for unequal variances: the same steps as analysis/robust.py.
import { matrix, fromRows, row, dot, times, timesTransposed, transpose, form, symmetric, eigen, spectral } from "./algebra.js";
import { chiSquareTail } from "./distributions.js";

// { middle: M̂ in the coordinates of the solution, test } or null: not declared, or hidden by the noise.
// `classical` is s² with all that multiplies A for the classical M.
function robust(moments, solution, classical) {
  const { constants, rows } = moments;
  const measured = productsOf(moments, solution);
  const width = solution.basis.rows;
  if (measured === null || rows === null || !(classical > 0) || width === 0) return null;
  const { values, vectors } = solution.inverse;
  if (!(Math.min(...values) > 0)) return null;
  const unit = (measured.bound * moments.radius ** 2 / constants.row_norm) ** 2 * dot(solution.residual, solution.residual);
  const noisy = form(measured.turn, symmetricOf(measured.cells, width));
  for (let i = 0; i < noisy.cells.length; i++) noisy.cells[i] *= unit;
  if (!noisy.cells.every(Number.isFinite) || !Number.isFinite(measured.sigma * unit)) return null;
  const sizes = values.map((value) => classical / value);  // eigenvalues of C
  const halves = sizes.map(Math.sqrt);
  const standard = scaled(form(vectors, noisy), (i, j) => 1 / (halves[i] * halves[j]));
  const variance = 0.5 * (measured.sigma * unit) ** 2;
  const inverse = sizes.map((size) => 1 / size);
  const mean = trace(standard) / width;
  const meanSd = Math.sqrt(2 * variance * dot(inverse, inverse)) / width;
  if (mean <= constants.robust_sure * meanSd) return null;
  const apart = { ...standard, cells: Float64Array.from(standard.cells) };
  for (let i = 0; i < width; i++) apart.cells[i * width + i] -= mean;
  const energy = dot(apart.cells, apart.cells);
  const all = inverse.reduce((sum, x) => sum + x, 0);
  const hidden = variance * (all * all + dot(inverse, inverse)) - width * meanSd ** 2;
  const left = energy > 0 ? Math.max(0, 1 - hidden / energy) : 0;
  const seen = eigen({ ...apart, cells: apart.cells.map((x, k) => left * x + (k % (width + 1) ? 0 : mean)) });
  const levels = seen.values.map((value) => Math.max(value, constants.robust_smallest * mean));
  const shape = scaled(spectral({ values: levels, vectors: seen.vectors }, (x) => x), (i, j) => halves[i] * halves[j]);
  const middle = form(transpose(vectors), shape);
  const typical = (mean * sizes.reduce((sum, x) => sum + x, 0)) / width;
  for (let i = 0; i < width; i++) middle.cells[i * width + i] += (constants.robust_widened * 2 * variance * left) / typical;
  const [diagonal, off] = constants.robust_chance;
  const chance = (mean ** 2 * (diagonal * width + off * width * (width - 1))) / Math.max(rows, 1);
  const degrees = (width * (width + 1)) / 2 - 1;
  const statistic = degrees ? (degrees * energy) / (hidden + chance) : 0;
  return {
    middle: symmetric(middle),
    test: { statistic, degrees, pvalue: degrees ? chiSquareTail(statistic, degrees) : 1, ratio: Math.sqrt(Math.max(...levels)) },
  };
}

// What was measured for the model with this solution, and its basis in coordinates of the solution's.
function productsOf(moments, { basis, residual }) {
  const length = Math.sqrt(dot(residual, residual));
  const unit = residual.map((x) => (length > 0 ? x / length : x));
  const agrees = moments.constants.robust_agrees;
  for (const each of moments.products) {
    if (each.basis.length !== basis.rows || each.residual.length !== basis.columns) continue;
    if (each.residual.some((x, i) => !(Math.abs(Number(x) * each.scale - unit[i]) < agrees))) continue;
    const own = fromRows(each.basis.map((line) => line.map((x) => Number(x) * each.scale)), basis.columns);
    const turn = timesTransposed(basis, own);
    const inside = times(transpose(turn), basis);
    if (own.cells.some((x, i) => !(Math.abs(x - inside.cells[i]) < agrees))) continue;
    return { bound: each.bound, sigma: each.noise.sigma, cells: each.cells.map(Number), turn };
  }
  return null;
}

// From the lower triangle by rows.
function symmetricOf(cells, width) {
  const result = matrix(width, width);
  for (let i = 0, at = 0; i < width; i++) {
    for (let j = 0; j <= i; j++, at++) result.cells[i * width + j] = result.cells[j * width + i] = cells[at];
  }
  return result;
}

function scaled(a, factor) {
  return { ...a, cells: a.cells.map((x, k) => x * factor(Math.floor(k / a.columns), k % a.columns)) };
}

function trace(a) {
  let sum = 0;
  for (let i = 0; i < a.rows; i++) sum += row(a, i)[i];
  return sum;
}

export { robust };
