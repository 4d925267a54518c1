// Instrumental variables: 2SLS, LIML and the Anderson–Rubin set, as in analysis/iv.py and anderson_rubin.py.
import {
  matrix, fromRows, row, dot, addScaled, times, timesTransposed, apply, combine, transpose, form, symmetric, eigen,
  spectral, orthonormal, triangleInverse,
} from "./algebra.js";
import { Refusal } from "./moments.js";
import { buildDesign, calledAs, placesByColumn } from "./design.js";
import { upperTail, upperQuantile, fTail, fQuantile } from "./distributions.js";
import {
  solve, refusalOf, isTrusted, cautionsOf, untrustedCaution, movedColumns, NO_DEGREES, general,
} from "./inference.js";

const HIDDEN = 25;
const WEAK = 10;
const STEPS = 720;  // places at which an Anderson–Rubin set is looked at before its ends are found

// `endogenous`, `instruments` and `controls` are declared names.
function instrumental(moments, question) {
  const { target, endogenous, instruments, controls, method, kind, level, references = {} } = question;
  if (!moments.hasConstant) throw new Refusal("This release has no constant column, so no intercept can be fitted.");
  if (!endogenous.length || !instruments.length) {
    throw new Refusal("Choose the column whose effect is wanted, and at least one instrument for it.");
  }
  const computed = moments.declared.filter((column) => controls.includes(column.name) && column.factors.some((name) => endogenous.includes(name)));
  if (computed.length) {
    throw new Refusal(`A control is computed from an endogenous column: ${computed.map((column) => column.name).join(", ")}. Leave it out.`);
  }
  const structural = buildDesign(moments, target, [...endogenous, ...controls], references);
  const reduced = buildDesign(moments, target, [...instruments, ...controls], references);
  const inside = placesOf(moments, structural, endogenous);
  const outside = placesOf(moments, reduced, instruments);
  if (outside.length < inside.length) {
    throw new Refusal(
      `There are fewer instruments (${outside.length}) than endogenous coefficients (${inside.length}). Choose more instruments.`,
    );
  }
  const targets = [structural.targetVector, ...inside.map((i) => structural.vectors[i])].map(moments.project);
  const given = {
    controls: residuals(moments, structural.vectors.filter((_, i) => !inside.includes(i)), targets),
    all: residuals(moments, reduced.vectors, targets),
  };
  const toInstruments = fromRows(outside.map((i) => row(given.all.toTerms, i)), given.all.toTerms.columns);
  const model = { moments, structural, inside, given, toInstruments };
  return solved(model, method, kind, level);
}

function placesOf(moments, design, names) {
  const places = placesByColumn(moments, design);
  return names.flatMap((name) => places.get(calledAs(moments, name)) ?? []);
}

function degreesFor(moments, kind, parameters) {
  if (kind === "table") return null;
  if (moments.rows === null || !(moments.rows - parameters >= 1)) throw new Refusal(`No intervals: ${NO_DEGREES}.`);
  return moments.rows - parameters;
}

// What is left of the targets (already where the matrix was measured) given the features: analysis/forms.py.
function residuals(moments, features, targets) {
  const spanned = orthonormal(fromRows(features.map(moments.project), moments.width));
  if (!spanned.independent) throw new Refusal("Instruments and controls are linearly dependent by construction. Leave out one of them.");
  const { basis } = spanned;
  const solution = solve(moments, basis, targets[0]);
  const wanted = fromRows(targets, moments.width);
  const inner = timesTransposed(wanted, basis);
  const outer = fromRows(targets.map((t, a) => addScaled(Float64Array.from(t), -1, combine(basis, row(inner, a)))), moments.width);
  const toward = times(outer, moments.gram);
  const scores = timesTransposed(toward, basis);
  const slopes = times(scores, solution.resolvent);
  const correction = moments.noise.offdiagonalSd ** 2 * solution.inverse.values.reduce((sum, x) => sum + x, 0);
  const sums = timesTransposed(toward, outer);
  addScaled(sums.cells, -1, timesTransposed(slopes, scores).cells);
  addScaled(sums.cells, correction, timesTransposed(outer, outer).cells);
  const functions = targets.map((_, a) => addScaled(Float64Array.from(row(outer, a)), -1, combine(basis, row(slopes, a))));
  addScaled(slopes.cells, 1, inner.cells);
  return {
    solution, basis, sums: symmetric(sums), functions, slopes,  // one row for each target
    toTerms: triangleInverse(spanned.triangle),
  };
}

function solved(model, method, kind, level) {
  const { moments, structural, inside, given, toInstruments } = model;
  const degrees = degreesFor(moments, kind, structural.terms.length);
  const first = degreesFor(moments, kind, given.all.basis.rows);
  const stages = inside.map((_, j) => firstStage(model, j, first));
  const moved = movedColumns(moments, structural);
  let refusal = refusalOf(moments, null, given.all.solution)
    ?? (moved && kind === "population" ? moments.constants.moved_refusal : null);
  const test = instrumentTest(model, first, refusal, kind);
  const hidden = stages.filter((stage) => !(stage.againstNoise > HIDDEN));
  if (refusal === null && hidden.length) {
    const worst = hidden.reduce((a, b) => (b.againstNoise < a.againstNoise ? b : a));
    refusal = `the privacy noise hides the first stage: the F of the instruments for '${worst.name}' against the noise alone `
      + `is ${general(worst.againstNoise, 2)}, where ${HIDDEN} is asked for`;
  }
  const over = toInstruments.rows > inside.length;
  let kappa = method === "liml" && refusal === null && over ? limlKappa(model) : 1;
  if (kappa === null) {
    kappa = 1;
    refusal = "the privacy noise hides the variance of the errors, which LIML divides by; 2SLS does not";
  }
  const { theta, privacy, sampling, residualSum } = estimate(model, kappa, method === "liml" && over);
  const factor = degrees === null ? 0 : (moments.samplingFactor * Math.max(residualSum, 0)) / degrees;
  const whole = { ...privacy, cells: privacy.cells.map((x, i) => x + factor * sampling.cells[i]) };
  const jacobian = toTermsInOrder(model);
  const clear = structural.names.map((_, i) => isClear(model, row(jacobian, i)));
  const values = apply(jacobian, theta);
  values[0] += structural.offset;
  const quantile = upperQuantile(0.5 * (1 - level), degrees);
  const coefficients = structural.names.map((name, i) => {
    const variance = dot(apply(whole, row(jacobian, i)), row(jacobian, i));
    if (refusal !== null || !clear[i]) return { name, trusted: false, estimate: null, error: null, low: null, high: null, p: null };
    const error = Math.sqrt(variance);
    return {
      name, trusted: true, estimate: values[i], error, low: values[i] - quantile * error, high: values[i] + quantile * error,
      p: 2 * upperTail(Math.abs(values[i] / error), degrees),
    };
  });
  const cautions = cautionsOf(moments, given.all.solution, kind, moved, null);
  if (refusal === null) {
    for (const stage of stages.filter((each) => each.f < WEAK)) {
      cautions.push(`weak instruments: the first-stage F of '${stage.name}' is ${general(stage.f, 2)}, below 10. Estimates lean `
        + "towards least squares and these intervals are too short; those of anderson_rubin() hold");
    }
    if (!clear.every(Boolean)) cautions.push(untrustedCaution(structural.names.filter((_, i) => !clear[i])));
  }
  return {
    design: structural, kind, level, method, kappa, coefficients, stages, refusal, degrees, cautions,
    endogenous: inside.map((i) => structural.names[i]),
    andersonRubin: test.refusal === null
      ? { name: test.name, pieces: kept(test, level), p: testAt(test, 0) }
      : { name: test.name, refused: test.refusal },
    assumptions: moments.facts.assumptions[kind],
    meaning: kind === "population"
      ? "the coefficients in the population (sampling and privacy noise) if the instruments are valid"
      : `the ${method.toUpperCase()} coefficients of the table (privacy noise only)`,
  };
}

// The least bᵀS_W b / bᵀS_Z b; null where the noise hides bᵀS_Z b.
function limlKappa(model) {
  const { moments, given } = model;
  const found = eigen(given.all.sums);
  if (!(found.values[0] > 0)) return null;
  const half = spectral(found, (x) => 1 / Math.sqrt(x));
  const kappa = eigen(form(half, given.controls.sums)).values[0];
  const b = beta(model, kappa).errors;
  const left = given.all.functions.reduce((sum, f, a) => addScaled(sum, b[a], f), new Float64Array(moments.width));
  const noise = moments.noise.diagonalSd * dot(left, left);
  return dot(b, apply(given.all.sums, b)) > moments.constants.signal_to_noise * noise ? kappa : null;
}

// (1, −β) and A_xx⁻¹.
function beta({ given, inside }, kappa) {
  const size = inside.length + 1;
  const a = given.controls.sums.cells.map((x, i) => x - kappa * given.all.sums.cells[i]);
  const block = matrix(size - 1, size - 1);
  for (let i = 1; i < size; i++) for (let j = 1; j < size; j++) block.cells[(i - 1) * (size - 1) + j - 1] = a[i * size + j];
  const inverse = spectral(eigen(symmetric(block)), (x) => 1 / x);
  const slopes = apply(inverse, Float64Array.from(inside, (_, i) => a[(i + 1) * size]));
  return { errors: Float64Array.from([1, ...slopes.map((x) => -x)]), inverse };
}

// (β, γ), its covariance from the noise, and from sampling for errors of variance one.
function estimate(model, kappa, liml) {
  const { moments, given, inside } = model;
  const { controls: fewer, all: more } = given;
  const count = inside.length;
  const { errors: b, inverse } = beta(model, kappa);
  const mixed = (found) => found.functions.reduce((sum, f, a) => addScaled(sum, b[a], f), new Float64Array(moments.width));
  const [errors, shorter] = [mixed(fewer), mixed(more)];
  const toward = times(fewer.solution.resolvent, fewer.basis);
  const controls = toward.rows;
  // Pairs (f, g) for sym(fgᵀ): of each endogenous column given the controls and given all, of each control.
  const pairs = [
    ...fewer.functions.slice(1).map((f) => [f, errors]),
    ...more.functions.slice(1).map((f) => [f, shorter]),
    [errors, errors], [shorter, shorter],
    ...Array.from({ length: controls }, (_, k) => [row(toward, k), errors]),
  ];
  const moved = matrix(count, pairs.length);
  const bSb = dot(b, apply(more.sums, b));
  const sb = apply(more.sums, b);
  for (let j = 0; j < count; j++) {
    const line = row(moved, j);
    line[j] = 1;
    line[count + j] = -kappa;
    if (!liml) continue;
    line[2 * count] = -sb[j + 1] / bSb;
    line[2 * count + 1] = (kappa * sb[j + 1]) / bSb;
  }
  const shapesBeta = times(inverse, moved);
  const slopes = fromRows(Array.from({ length: count }, (_, j) => row(fewer.slopes, j + 1)), controls);  // count × controls
  const shapes = matrix(count + controls, pairs.length);
  shapes.cells.set(shapesBeta.cells);
  const across = times(transpose(slopes), shapesBeta);
  for (let k = 0; k < controls; k++) {
    const line = row(shapes, count + k);
    addScaled(line, -1, row(across, k));
    line[2 * count + 2 + k] += 1;
  }
  const privacy = form(shapes, pairCovariance(moments.noise, pairs));
  for (let i = 0; i < privacy.cells.length; i++) privacy.cells[i] *= more.solution.inflation;
  const sampling = samplingShape(inverse, slopes, fewer.solution.resolvent);
  const theta = Float64Array.from([...b.subarray(1).map((x) => -x), ...combine(fewer.slopes, b)]);
  return { theta, privacy, sampling, residualSum: dot(b, apply(fewer.sums, b)) };
}

// [[A⁻¹, −A⁻¹S], [−SᵀA⁻¹, R + SᵀA⁻¹S]] with S the slopes of the endogenous columns on the controls.
function samplingShape(inverse, slopes, resolvent) {
  const [count, controls] = [slopes.rows, slopes.columns];
  const size = count + controls;
  const result = matrix(size, size);
  const side = times(inverse, slopes);
  const corner = times(transpose(slopes), side);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < count; j++) result.cells[i * size + j] = inverse.cells[i * count + j];
    for (let k = 0; k < controls; k++) {
      result.cells[i * size + count + k] = result.cells[(count + k) * size + i] = -side.cells[i * controls + k];
    }
  }
  for (let k = 0; k < controls; k++) {
    for (let l = 0; l < controls; l++) {
      result.cells[(count + k) * size + count + l] = resolvent.cells[k * controls + l] + corner.cells[k * controls + l];
    }
  }
  return result;
}

// Cov(⟨sym(fgᵀ), N⟩, ⟨sym(pqᵀ), N⟩) of all pairs: o²((f·p)(g·q) + (f·q)(g·p)) + (s² − 2o²)Σ fᵢgᵢpᵢqᵢ.
function pairCovariance(noise, pairs) {
  const off = noise.offdiagonalSd ** 2;
  const excess = noise.diagonalSd ** 2 - 2 * off;
  const uneven = Math.abs(excess) > 1e-9 * off;
  const result = matrix(pairs.length, pairs.length);
  pairs.forEach(([f, g], i) => {
    for (let j = 0; j <= i; j++) {
      const [p, q] = pairs[j];
      let value = off * (dot(f, p) * dot(g, q) + dot(f, q) * dot(g, p));
      if (uneven) for (let k = 0; k < f.length; k++) value += excess * f[k] * g[k] * p[k] * q[k];
      result.cells[i * pairs.length + j] = result.cells[j * pairs.length + i] = value;
    }
  });
  return result;
}

// From (β, γ) to coefficients in original units, in the order of the design's terms.
function toTermsInOrder({ structural, inside, given }) {
  const count = structural.terms.length;
  const order = matrix(count, count);
  const others = structural.terms.map((_, i) => i).filter((i) => !inside.includes(i));
  inside.forEach((i, j) => { order.cells[i * count + j] = 1; });
  others.forEach((i, k) => row(order, i).set(row(given.controls.toTerms, k), inside.length));
  return times(structural.toOriginal, order);
}

// Whether a coefficient leans on no direction of the controls that the noise could have made.
function isClear({ moments, inside, given }, line) {
  const lean = line.subarray(inside.length);
  if (lean.every((x) => x === 0)) return true;
  return isTrusted(moments, lean, apply(given.controls.solution.resolvent, lean));
}

// Covariance of the instruments' coefficients from the noise, in a regression with this residual.
function noiseOfInstruments({ moments, given, toInstruments }, residual) {
  const { solution, basis } = given.all;
  const toward = times(times(toInstruments, solution.resolvent), basis);
  const covariance = pairCovariance(moments.noise, Array.from({ length: toward.rows }, (_, i) => [row(toward, i), residual]));
  for (let i = 0; i < covariance.cells.length; i++) covariance.cells[i] *= solution.inflation;
  return covariance;
}

function samplingOfInstruments({ moments, given, toInstruments }) {
  const found = form(toInstruments, given.all.solution.resolvent);
  for (let i = 0; i < found.cells.length; i++) found.cells[i] *= moments.samplingFactor;
  return found;
}

function firstStage(model, which, degrees) {
  const { structural, inside, given, toInstruments } = model;
  const coefficients = apply(toInstruments, row(given.all.slopes, which + 1));
  const noise = noiseOfInstruments(model, given.all.functions[which + 1]);
  const covariance = { ...noise, cells: Float64Array.from(noise.cells) };
  const count = coefficients.length;
  if (degrees !== null) {
    const at = (which + 1) * (inside.length + 2);
    addScaled(covariance.cells, Math.max(given.all.sums.cells[at], 0) / degrees, samplingOfInstruments(model).cells);
  }
  const f = wald(coefficients, covariance) / count;
  return {
    name: structural.names[inside[which]], f, againstNoise: wald(coefficients, noise) / count,
    p: fTail(Math.max(f, 0), count, degrees), numerator: count, denominator: degrees,
  };
}

function wald(values, covariance) {
  const size = values.length;
  const scale = Array.from({ length: size }, (_, i) => Math.sqrt(Math.max(covariance.cells[i * size + i], 0)));
  if (scale.some((x) => !(x > 0))) return Infinity;
  const shared = { ...covariance, cells: covariance.cells.map((x, k) => x / (scale[Math.floor(k / size)] * scale[k % size])) };
  const found = eigen(symmetric(shared));
  return apply(found.vectors, values.map((x, i) => x / scale[i])).reduce((sum, x, i) => sum + (x * x) / found.values[i], 0);
}

// π(β) = intercept + β·slope with covariance C₀ + βC₁ + β²C₂, β in units of `unit`.
function instrumentTest(model, degrees, refusal, kind) {
  const { structural, inside, given, toInstruments } = model;
  const count = toInstruments.rows;
  let why = refusal;
  if (inside.length > 1) why ??= "it has one for a single endogenous coefficient only";
  else if (kind === "table" && count > 1) why ??= "with more instruments than needed no value makes all of them agree in a table";
  const place = inside[0];
  const name = structural.names[place];
  if (why !== null) return { name, refusal: why };
  const { functions: [y, x], sums, slopes } = given.all;
  const scale = structural.toOriginal.cells[place * structural.terms.length + place];
  const pieces = [y, x, addScaled(Float64Array.from(y), -1, x)].map((r) => noiseOfInstruments(model, r));
  const parts = [pieces[0].cells, pieces[2].cells.map((c, i) => c - pieces[0].cells[i] - pieces[1].cells[i]), pieces[1].cells];
  if (degrees !== null) {
    const shape = samplingOfInstruments(model).cells;
    const sizes = [sums.cells[0], -2 * sums.cells[1], sums.cells[3]];
    parts.forEach((part, k) => addScaled(part, sizes[k] / degrees, shape));
  }
  const ratio = Math.sqrt(Math.max(sums.cells[0], 1e-300) / Math.max(sums.cells[3], 1e-300));
  const unit = Math.abs(scale) * ratio;
  const factors = [1, unit / scale, (unit / scale) ** 2];
  return {
    name, unit, degrees, count, refusal: null,
    intercept: apply(toInstruments, row(slopes, 0)),
    slope: apply(toInstruments, row(slopes, 1)).map((c) => (-c * unit) / scale),
    covariances: parts.map((part, k) => part.map((c) => c * factors[k])),
  };
}

// π'C⁻¹π at β = unit·tan(angle): all of it is homogeneous in (cos, sin), so that infinity is a place as any other.
function statisticAt(test, angle) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  const pi = test.intercept.map((x, i) => c * x + s * test.slope[i]);
  const covariance = matrix(test.count, test.count);
  for (let i = 0; i < covariance.cells.length; i++) {
    covariance.cells[i] = c * c * test.covariances[0][i] + c * s * test.covariances[1][i] + s * s * test.covariances[2][i];
  }
  return wald(pi, covariance);
}

function testAt(test, value) {
  return fTail(Math.max(statisticAt(test, Math.atan(value / test.unit)), 0) / test.count, test.count, test.degrees);
}

// The values that are not rejected, as pieces of the line in order.
function kept(test, level) {
  const limit = test.count * fQuantile(1 - level, test.count, test.degrees);
  const excess = (angle) => statisticAt(test, angle) - limit;
  const places = Array.from({ length: STEPS + 1 }, (_, k) => (k / STEPS - 0.5) * Math.PI);
  const angles = [...places];
  const values = places.map(excess);
  // Between two places the set may begin and end: where an extremum lies on the other side of the limit.
  for (let k = 1; k < STEPS; k++) {
    const sign = values[k] > 0 ? 1 : -1;
    if (sign * values[k] > sign * values[k - 1] || sign * values[k] > sign * values[k + 1]) continue;
    angles.push(lowest((angle) => sign * excess(angle), places[k - 1], places[k + 1]));
  }
  angles.sort((a, b) => a - b);
  const pieces = [];
  let from = excess(angles[0]) <= 0 ? -Infinity : null;
  for (let k = 1; k < angles.length; k++) {
    const inside = excess(angles[k]) <= 0;
    if (inside === (from !== null)) continue;
    const end = test.unit * Math.tan(crossing(excess, angles[k - 1], angles[k]));
    if (inside) from = end;
    else {
      pieces.push([from, end]);
      from = null;
    }
  }
  if (from !== null) pieces.push([from, Infinity]);
  return pieces;
}

function crossing(excess, low, high) {
  const before = excess(low) <= 0;
  for (let step = 0; step < 100; step++) {
    const middle = 0.5 * (low + high);
    if ((excess(middle) <= 0) === before) low = middle;
    else high = middle;
  }
  return 0.5 * (low + high);
}

// The place of a minimum between two others, by golden section.
function lowest(value, low, high) {
  const golden = 0.5 * (Math.sqrt(5) - 1);
  for (let step = 0; step < 60; step++) {
    const [left, right] = [high - golden * (high - low), low + golden * (high - low)];
    if (value(left) < value(right)) high = right;
    else low = left;
  }
  return 0.5 * (low + high);
}

export { instrumental };
