// Coefficients over time: one regression in every window of a series, whose noises go together.
// The same formulas as analysis/trend.py and noise/factor.py.
import { matrix, row, dot, times, apply, inverse, fromRows } from "./algebra.js";
import { momentsOf, memory } from "./moments.js";
import { buildDesign } from "./design.js";
import { infer } from "./inference.js";
import { upperQuantile, upperTail } from "./distributions.js";
import { csvCell } from "./downloads.js";

// The windows of a series: { ends(length, running), moments(first, last), weights(first, last), name(first, last) }.
function seriesOf(moments) {
  const { series } = moments.facts;
  const own = new Map(series.windows.map((each) => [String(each.ends), each]));
  const known = memory();
  const count = series.labels.length;
  // w with Σ_s w_s Y_s = X_first + … + X_last + noise.
  const weights = (first, last) => Float64Array.from({ length: last }, (_, i) =>
    series.weights[last - i - 1] - (i + 1 < first ? series.weights[first - i - 2] : 0));
  const whole = size(weights(1, count));
  return {
    weights,
    name: (first, last) => own.get(String([first, last])).name,
    ends(length, running) {
      const lasts = Array.from({ length: Math.floor(count / length) }, (_, k) => (k + 1) * length);
      return lasts.map((last) => [running ? 1 : last - length + 1, last]);
    },
    moments: (first, last) => known(String([first, last]), () => {
      const w = weights(first, last);
      return windowMoments(moments, own.get(String([first, last])), w, size(w) / whole);
    }),
  };
}

const size = (w) => Math.sqrt(dot(w, w));

// What is known of the rows of one window; `ratio` is its noise beside that of the running total.
function windowMoments({ facts }, own, w, ratio) {
  const { noise, series } = facts;
  const told = (lists) => Object.fromEntries(Object.entries(lists).map(([kind, places]) => [kind, places.map((k) => series.texts[k])]));
  const references = new Map(own.references);
  const empty = new Set(own.empty);
  return momentsOf({
    ...facts,
    columns: facts.columns.map((column) => ({ ...column, empty: empty.has(column.name) })),
    declared: facts.declared.map((column) => (references.has(column.name) ? { ...column, reference: references.get(column.name) } : column)),
    sampling_factor: own.sampling_factor,
    cautions: told(own.cautions),
    refused_cautions: told(own.refused_cautions),
    noise: {
      ...noise,
      diagonal_sd: ratio * noise.diagonal_sd,
      offdiagonal_sd: ratio * noise.offdiagonal_sd,
      expected_norms: noise.expected_norms.map((x) => ratio * x),
    },
  }, windowGram(facts, w));
}

// Σ_s w_s Y_s, in encoded units.
function windowGram({ columns, cell_unit: unit, series }, w) {
  const width = columns.length;
  const result = matrix(width, width);
  for (let i = 0, at = 0; i < width; i++) {
    for (let j = 0; j <= i; j++, at++) {
      let sum = 0;
      for (let s = 0; s < w.length; s++) sum += w[s] * series.lines[s][at];
      result.cells[i * width + j] = sum * unit;
      result.cells[j * width + i] = sum * unit;
    }
  }
  return result;
}

const NOT_INCLUDED = ", and no interval here includes the difference";

// What one window says of its intervals, another without intervals need not say again.
function eachOnce(cautions) {
  const every = [...new Set(cautions)];
  const shorter = new Set(every.filter((text) => text.includes(NOT_INCLUDED)).map((text) => text.replace(NOT_INCLUDED, "")));
  return every.filter((text) => !shorter.has(text));
}

// { names, windows, cautions, coefficient(name) }: `ends` has the first and last period of each.
function trend(moments, series, { target, on, references = {}, kind, level, ends, running }) {
  const every = ends.map(([first, last]) => series.moments(first, last));
  // The most frequent level may be another one in other windows: the last tells for all.
  const asked = Object.create(null);
  for (const each of buildDesign(every.at(-1), target, on, references).references) asked[each.name] = each.level;
  const windows = every.map((own, i) => {
    const design = buildDesign(own, target, on, asked);
    const inference = infer(own, design, kind, level);
    const noise = kind === "table" ? inference : infer(own, design, "table", level);
    const leaning = times(times(design.toOriginal, design.toTerms), inference.solution.resolvent);
    return {
      ends: ends[i], name: series.name(...ends[i]), place: 0.5 * (ends[i][0] + ends[i][1]), weights: series.weights(...ends[i]),
      design, inference, noise, toward: times(leaning, design.basis), residual: inference.solution.residual,
    };
  });
  const names = windows.at(-1).design.names.filter((name) => windows.every(({ design }) => design.names.includes(name)));
  const partly = [...new Set(windows.flatMap(({ design }) => design.names))].filter((name) => !names.includes(name));
  const lacking = partly.length === 0 ? null
    : `noisy counts of some of the windows show no rows to speak of with ${partly.join(", ")}: left out of the trend`;
  const seeded = moments.facts.seeded ? "the noise came from a seed: whoever knows it can remove it" : null;
  const beside = [lacking, moments.facts.series.repeated[kind], seeded].filter((caution) => caution !== null);
  const cautions = [...eachOnce(windows.flatMap(({ inference }) => inference.cautions)), ...beside];
  const shared = running && windows.length > 1;
  const known = memory();
  return { names, windows, cautions, level, kind, coefficient: (name) => known(name, () => coefficientOf(windows, name, level, shared)) };
}

// One coefficient in every window, and how its errors go together.
function coefficientOf(windows, name, level, sharedRows) {
  const found = windows.map((own) => {
    const j = own.design.names.indexOf(name);
    const told = own.inference.coefficients[j];
    return {
      window: own.name, place: own.place, estimate: own.inference.raw[j], variance: own.inference.covarianceOf([j]).cells[0],
      noise: own.noise.covarianceOf([j]).cells[0], toward: row(own.toward, j), own,
      trusted: told.trusted, low: told.trusted ? told.low ?? -Infinity : null, high: told.trusted ? told.high ?? Infinity : null,
    };
  });
  const count = found.length;
  const sampling = found.map(({ variance, noise }) => Math.max(variance - noise, 0));
  const covariance = matrix(count, count);
  for (let i = 0; i < count; i++) {
    covariance.cells[i * count + i] = found[i].variance;
    for (let j = 0; j < i; j++) {
      const noise = correlation(found[i], found[j]) * Math.sqrt(found[i].noise * found[j].noise);
      const both = noise + (sharedRows ? Math.min(sampling[i], sampling[j]) : 0);
      covariance.cells[i * count + j] = both;
      covariance.cells[j * count + i] = both;
    }
  }
  const rows = found.map((each) => ({
    window: each.window, place: each.place, estimate: each.estimate, error: Math.sqrt(each.variance), trusted: each.trusted, low: each.low, high: each.high,
  }));
  const combined = (what, weights) => combination(what, weights, rows, covariance, level);
  return {
    name, rows, covariance,
    change(first = 0, last = count - 1) {
      const weights = new Float64Array(count);
      weights[last] += 1;
      weights[first] -= 1;
      return combined(`${name}, ${rows[last].window} less ${rows[first].window}`, weights);
    },
    slope() {
      const weights = count < 3 ? null : slopeWeights(rows, covariance);
      return weights && combined(`${name}, change in one period`, weights);
    },
  };
}

// By the noise that both windows share: ρ·[(r·r')(D·D') + (D·r')(D'·r)], scaled by the same of each alone.
function correlation(one, other) {
  const between = (a, b) => dot(a.own.residual, b.own.residual) * dot(a.toward, b.toward) + dot(a.toward, b.own.residual) * dot(b.toward, a.own.residual);
  const [v, w] = [one.own.weights, other.own.weights];
  let overlap = 0;
  for (let s = 0; s < Math.min(v.length, w.length); s++) overlap += v[s] * w[s];
  return ((overlap / (size(v) * size(w))) * between(one, other)) / Math.sqrt(between(one, one) * between(other, other));
}

// Less is known of a slope than this part of what windows tell of it, once they have told the level: rounding.
const LEAST_KNOWN = 1e-12;

// The slope of the straight line through all windows, by generalised least squares: as weights of the estimates.
// None where rounding leaves nothing of it.
function slopeWeights(rows, covariance) {
  const middle = rows.reduce((sum, { place }) => sum + place, 0) / rows.length;
  const design = fromRows([rows.map(() => 1), rows.map(({ place }) => place - middle)], rows.length);
  // In units of the errors, so that nothing is lost where these differ much.
  const scale = rows.map(({ error }) => error);
  const standard = { ...covariance, cells: covariance.cells.map((x, k) => x / (scale[Math.floor(k / rows.length)] * scale[k % rows.length])) };
  const scaled = fromRows([0, 1].map((i) => row(design, i).map((x, k) => x / scale[k])), rows.length);
  const precise = times(scaled, inverse(standard));
  const [a, b, c] = [dot(row(precise, 0), row(scaled, 0)), dot(row(precise, 0), row(scaled, 1)), dot(row(precise, 1), row(scaled, 1))];
  const determinant = a * c - b * b;
  if (!(determinant > LEAST_KNOWN * a * c)) return null;
  return Float64Array.from(rows, (_, k) => (a * row(precise, 1)[k] - b * row(precise, 0)[k]) / determinant / scale[k]);
}

function combination(what, weights, rows, covariance, level) {
  const variance = Math.max(dot(weights, apply(covariance, weights)), 2 ** -1022);
  const estimate = rows.reduce((sum, each, k) => sum + weights[k] * each.estimate, 0);
  const error = Math.sqrt(variance);
  const reach = upperQuantile(0.5 * (1 - level), null) * error;
  const noisy = rows.filter(({ trusted }, k) => !trusted && weights[k] !== 0).map((each) => each.window);
  return {
    what, estimate, error, low: estimate - reach, high: estimate + reach, p: 2 * upperTail(Math.abs(estimate) / error, null),
    cautions: noisy.length ? [`too noisy for an interval of its own: ${noisy.join(", ")}; error and p-value may be wrong`] : [],
  };
}

// One line for each coefficient in each window, as in `Trend.to_frame`.
function trendCsv(found) {
  const lines = found.names.flatMap((name) => found.coefficient(name).rows.map((each) =>
    [name, each.window, each.estimate, each.error, each.low, each.high]));
  return [["name", "window", "estimate", "std_error", "low", "high"], ...lines].map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

export { seriesOf, trend, trendCsv };
