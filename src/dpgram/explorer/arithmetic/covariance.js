// Correlations and principal components, as in analysis/association.py and analysis/pca.py.
import { fromRows, row, dot, addScaled, times, timesTransposed, apply, form, eigen, reflection } from "./algebra.js";
import { Refusal, TOO_NOISY } from "./moments.js";
import { upperQuantile } from "./distributions.js";

// The correlations of all columns but the constant with their intervals, as in analysis/association.py and
// analysis/sampling.py: { estimate, low, high }, NaN where the noise hides a column.
function correlation(moments, kind, level) {
  const parts = correlationParts(moments);
  const { units, skewness, allowance, rows, clear, rho, quadratic } = parts;
  const size = clear.length;
  const degrees = kind === "population" ? rows - 1 : null;
  if (degrees !== null && !(rows > 3)) throw new Refusal("The number of rows is too small.");
  const reach = upperQuantile(0.5 * (1 - level), null) ** 2;
  const blank = () => Array.from({ length: size }, () => new Array(size).fill(NaN));
  const found = { estimate: blank(), low: blank(), high: blank() };
  for (let i = 0; i < size; i++) {
    if (!clear[i]) continue;
    for (const name in found) found[name][i][i] = 1;
    for (let j = 0; j < i; j++) {
      if (!clear[j]) continue;
      const value = rho(i, j);
      const [c0, c1, c2] = quadratic(row(units, i), row(units, j));
      const within = (r) => {
        const noise = Math.max(c0 + c1 * r + c2 * r * r, 0);
        const chance = degrees === null ? 0 : samplingVariance(r, skewness[i], skewness[j], moments.samplingFactor) / degrees;
        return (value - r) ** 2 <= reach * (noise + chance);
      };
      const factor = allowance[i] * allowance[j];
      const ends = { estimate: value, low: end(value, -1, within, factor), high: end(value, 1, within, factor) };
      for (const name in found) found[name][i][j] = found[name][j][i] = ends[name];
    }
  }
  return found;
}

// How correlations, or components, of the columns at `positions` differ from those of the rows that came in.
function associationCautions({ facts, declared, columns }, answers, positions, kind) {
  const sources = new Set(positions.map((position) => columns[position].source));
  const moved = declared.some((column) => column.learnt && sources.has(column.name));
  const told = answers === "correlations" ? facts.correlation_cautions[kind] : facts.component_cautions;
  return [...told, ...(moved ? facts.moved_cautions[answers] : [])];
}

// Columns less their means as functions of the row, divided by the root of their sums of squares.
function correlationParts(moments) {
  if (!moments.hasConstant) throw new Refusal("This release has no constant column, so it has no means.");
  const { gram, noise, columns, rows, constants } = moments;
  if (rows <= 0) throw new Refusal(TOO_NOISY);
  const constant = moments.project(moments.constantVector);
  const length = Math.sqrt(dot(constant, constant));
  const unit = constant.map((x) => x / length);
  const toward = apply(gram, unit);
  const strength = dot(unit, toward);
  const off = noise.offdiagonalSd ** 2;
  const residuals = [];
  const outsides = [];
  const scores = [];
  const means = [];
  for (let i = 1; i < moments.width; i++) {
    const axis = new Float64Array(moments.width);
    axis[i] = 1 / columns[i].weight;
    const outside = moments.project(axis);
    means.push((dot(outside, toward) * length) / rows);
    addScaled(outside, -dot(unit, outside), unit);
    const score = dot(outside, toward);
    outsides.push(outside);
    scores.push(score);
    residuals.push(addScaled(Float64Array.from(outside), -score / strength, unit));
  }
  const lists = fromRows(outsides, moments.width);
  const sums = form(lists, gram);
  const inner = timesTransposed(lists, lists);
  const size = outsides.length;
  const cell = (i, j) => {
    const at = i * size + j;
    return sums.cells[at] - (scores[i] * scores[j]) / strength + (off / strength) * inner.cells[at];
  };
  const squares = residuals.map((_, i) => cell(i, i));
  const noises = residuals.map((r) => noise.diagonalSd * dot(r, r));
  const clear = squares.map((square, i) => square > constants.signal_to_noise * noises[i]);
  const inflation = 1 + off / strength ** 2;
  return {
    rows,
    clear,
    rho: (i, j) => Math.min(Math.max(cell(i, j) / Math.sqrt(squares[i] * squares[j]), -1), 1),
    units: fromRows(residuals.map((r, i) => r.map((x) => x / Math.sqrt(squares[i]))), moments.width),
    skewness: means.map((mean, i) => twoValuedSkewness(columns[i + 1].kind, mean, rows)),
    allowance: squares.map((square, i) => allowanceOf(square, noises[i], constants)),
    quadratic: (a, b) => noiseQuadratic(a, b, noise).map((part) => part * inflation),
  };
}

// (c₀, c₁, c₂) with Var⟨sym(abᵀ) − (ρ/2)(aaᵀ + bbᵀ), N⟩ = c₀ + c₁ρ + c₂ρ².
function noiseQuadratic(a, b, noise) {
  const off = noise.offdiagonalSd ** 2;
  const [aa, ab, bb] = [dot(a, a), dot(a, b), dot(b, b)];
  const found = [off * (aa * bb + ab * ab), -2 * off * ab * (aa + bb), 0.5 * off * (aa * aa + bb * bb + 2 * ab * ab)];
  const excess = noise.diagonalSd ** 2 - 2 * off;
  if (Math.abs(excess) > 1e-9 * off) {
    for (let k = 0; k < a.length; k++) {
      const product = a[k] * b[k];
      const half = 0.5 * (a[k] * a[k] + b[k] * b[k]);
      found[0] += excess * product * product;
      found[1] -= 2 * excess * product * half;
      found[2] += excess * half * half;
    }
  }
  return found;
}

// (1 − 2p)/√(p(1 − p)) of a column with two values, NaN for numbers.
function twoValuedSkewness(kind, mean, rows) {
  if (kind !== "level" && kind !== "boolean") return NaN;
  const least = 1 / Math.max(rows, 2);
  const share = Math.min(Math.max(kind === "level" ? mean : 0.5 * (1 + mean), least), 1 - least);
  return (1 - 2 * share) / Math.sqrt(share * (1 - share));
}

function samplingVariance(rho, left, right, clipped) {
  const square = rho * rho;
  if (Number.isNaN(left) || Number.isNaN(right)) {
    const one = Number.isNaN(left) ? right : left;
    if (Number.isNaN(one)) return clipped * (1 - square) ** 2;
    return Math.max((1 - square) ** 2 * (1 + (square * (one * one - 2)) / 4), 0);
  }
  const both = left * right;
  const even = 1 - square - 0.75 * (left * left + right * right) * square;
  return Math.max(even + both * rho + 0.5 * both * rho * square, 0);
}

// For a sum of squares that only just passed: of these more are too large than too small.
function allowanceOf(square, noise, constants) {
  const above = (noise > 0 ? square / noise : Infinity) - constants.signal_to_noise;
  if (!(above > 0)) return NaN;
  const luck = constants.passed_by_luck * Math.min(Math.max(1 - above / constants.passed_clearly, 0), 1);
  return 1 / Math.sqrt(1 - luck / (above + constants.signal_to_noise));
}

// The last value from the estimate towards `edge` that is `within`, by halving.
function end(estimate, edge, within, factor) {
  let [inside, outside] = [estimate, edge];
  if (within(edge)) inside = edge;
  else {
    for (let step = 0; step < 50; step++) {
      const middle = 0.5 * (inside + outside);
      if (within(middle)) inside = middle;
      else outside = middle;
    }
  }
  return Math.min(Math.max(inside * edge > 0 ? inside * factor : inside, -1), 1);
}

// Components of the columns at `positions`, largest variance first, with how far noise may have turned each.
function components(moments, positions, standardise) {
  const { noise, gram } = moments;
  const { functions, rows } = centredColumns(moments, positions);
  const scales = standardise ? deviations(moments, positions, functions, rows) : positions.map(() => 1);
  const scaled = fromRows(
    positions.map((_, i) => row(functions, i).map((x) => x / scales[i])), moments.width,
  );
  const free = positions.some((i) => hasLevels(moments, i))
    ? independentDirections(scaled)
    : freeDirections(moments, positions, scales);
  if (free.rows === 0) throw new Refusal("No columns are left.");
  const turnedAxes = times(free, scaled);
  const covariance = form(turnedAxes, gram);
  for (let i = 0; i < covariance.cells.length; i++) covariance.cells[i] /= rows;
  const found = eigen(covariance);
  const count = found.values.length;
  const values = Float64Array.from(found.values).reverse();
  const order = Array.from({ length: count }, (_, i) => count - 1 - i);
  const directions = fromRows(order.map((i) => row(found.vectors, i)), count);
  const turned = times(directions, turnedAxes);
  const inner = timesTransposed(turned, turned);
  const size = (i) => inner.cells[i * count + i];
  const off = noise.offdiagonalSd ** 2;
  const largest = Math.max(...order.map(size));
  const reach = (noise.expectedNorm(count) * largest) / rows;
  const loadings = times(directions, free);
  const total = values.reduce((sum, x) => sum + x, 0);
  const list = Array.from(values, (variance, i) => {
    let gap = Infinity;
    let square = 0;
    for (let j = 0; j < count; j++) {
      if (j === i) continue;
      const distance = Math.abs(variance - values[j]);
      gap = Math.min(gap, distance);
      square += (off * (size(i) * size(j) + inner.cells[i * count + j] ** 2)) / (rows * distance) ** 2;
    }
    return {
      variance,
      explained: total > 0 ? Math.min(Math.max(variance, 0) / total, 1) : 0,
      stable: gap > 2 * reach,
      sine: Number.isFinite(square) ? Math.sqrt(square) : 1,
      loadings: signed(row(loadings, i)),
    };
  });
  const called = (what) => positions.map((i) => moments.columns[i][what]);
  return { names: called("name"), labels: called("label"), list, noiseReach: reach };
}

// Whether it is a product with a level: these add up to other columns.
function hasLevels({ columns }, position) {
  const isLevel = (name) => columns.find((column) => column.name === name).kind === "level";
  return columns[position].factors.some(isLevel);
}

// All that can vary: functions that every table has as zero are left out.
function independentDirections(functions) {
  const { values, vectors } = eigen(timesTransposed(functions, functions));
  const largest = Math.max(...values);
  const kept = Array.from(values.keys()).filter((i) => values[i] > 1e-9 * largest);
  return fromRows(kept.map((i) => row(vectors, i)), functions.rows);
}

// The columns less their noisy means, as functions of the row.
function centredColumns(moments, positions) {
  const { gram, rows, constants, noise, width } = moments;
  if (rows === null) throw new Refusal("This release has no constant column, so it has no covariances.");
  const axes = positions.map((position) => {
    const axis = new Float64Array(width);
    axis[position] = 1;
    return moments.project(axis);
  });
  if (moments.constantVector !== null) {
    const constant = moments.project(moments.constantVector);
    if (rows <= constants.count_to_noise * noise.diagonalSd * dot(constant, constant)) throw new Refusal(TOO_NOISY);
    const toward = apply(gram, constant);
    for (const axis of axes) addScaled(axis, -dot(axis, toward) / rows, constant);
  }
  return { functions: fromRows(axes, width), rows };
}

function deviations(moments, positions, functions, rows) {
  const drowned = [];
  const result = positions.map((position, i) => {
    const f = row(functions, i);
    const variance = dot(f, apply(moments.gram, f)) / rows;
    const noise = (moments.noise.diagonalSd * dot(f, f)) / rows;
    if (variance <= 3 * noise) drowned.push(moments.columns[position].name);
    return Math.sqrt(variance);
  });
  if (drowned.length) {
    throw new Refusal(
      "The variance of a column does not stand clear of the noise, so it cannot be standardised: " +
        drowned.slice(0, 10).join(", "),
    );
  }
  return result;
}

// Orthonormal rows for all combinations that can vary: the levels of a whole group add up to one, always.
function freeDirections(moments, positions, scales) {
  const rows = [];
  const taken = new Set();
  const groups = moments.facts.complete_groups
    ? moments.declared.filter((column) => column.group)
    : [];
  for (const group of groups) {
    const members = group.positions.map((i) => positions.indexOf(i));
    if (members.includes(-1)) continue;
    const still = Float64Array.from(members, (at, k) => scales[at] / moments.columns[group.positions[k]].weight);
    const turn = reflection(still);
    for (let i = 1; i < members.length; i++) {
      const direction = new Float64Array(positions.length);
      turn.vector(members.map((_, k) => (k === i ? 1 : 0))).forEach((x, k) => { direction[members[k]] = x; });
      rows.push(direction);
    }
    members.forEach((at) => taken.add(at));
  }
  positions.forEach((_, at) => {
    if (taken.has(at)) return;
    const direction = new Float64Array(positions.length);
    direction[at] = 1;
    rows.push(direction);
  });
  return fromRows(rows, positions.length);
}

// The largest entry is positive.
function signed(loadings) {
  let at = 0;
  loadings.forEach((x, i) => { if (Math.abs(x) > Math.abs(loadings[at])) at = i; });
  const sign = loadings[at] < 0 ? -1 : 1;
  return Array.from(loadings, (x) => sign * x);
}

export { associationCautions, correlation, components };
