// Declared models that are no linear regressions: coefficients come with the page, what follows of them is computed.
import { dot } from "./algebra.js";
import { upperTail, upperQuantile, normalBelow } from "./distributions.js";
import { buildDesign } from "./design.js";
import { designRow, withoutRows } from "./prediction.js";

// From the index to what is predicted: a probability, or for counts a mean.
const CURVES = {
  logistic: (index) => 1 / (1 + Math.exp(-index)),
  probit: normalBelow,
  poisson: (index) => Math.exp(Math.min(index, 700)),
};

// Coefficients, errors and ends, and as odds (or rate) ratios and mean effects where the family has them.
function modelTable(model, level) {
  const reach = upperQuantile(0.5 * (1 - level), null);
  return model.names.map((name, j) => {
    const [estimate, error] = [model.estimate[j], model.errors[j]];
    if (estimate === null || error === null) return { name, estimate: null, error: null, low: null, high: null, p: null };
    const ends = [estimate - reach * error, estimate + reach * error];
    const all = [estimate, ...ends];
    return {
      name, estimate, error, low: ends[0], high: ends[1], p: 2 * upperTail(Math.abs(estimate / error), null),
      ratio: model.ratios === null ? null : all.map((x) => Math.exp(Math.min(x, 700))),
      effect: model.slope === null ? null : all.map((x) => model.slope * x),
    };
  });
}

function modelDesign(moments, model) {
  const target = moments.columns.findIndex((column) => column.name === model.target);
  return buildDesign(moments, target, model.on, model.references);
}

// { fitted, mean, low, high } for one person: `fitted` by the shrunken coefficients, the rest by the others; or,
// without intervals, { fitted, refused }.
function predictModel(model, design, moments, person, level) {
  const row = designRow(moments, design, person);
  const curve = CURVES[model.family];
  const fitted = curve(dot(row, Float64Array.from(model.fitted)));
  const nobody = withoutRows(design, person);
  if (nobody !== null) return { fitted, refused: nobody };
  const hidden = row.some((x, i) => x !== 0 && (model.estimate[i] === null || model.errors[i] === null));
  if (hidden || model.covariance === null) return { fitted, refused: "the noise leaves no intervals" };
  const index = dot(row, Float64Array.from(model.estimate));
  const variance = model.covariance.reduce((sum, line, i) => sum + row[i] * dot(row, Float64Array.from(line)), 0);
  const reach = upperQuantile(0.5 * (1 - level), null) * Math.sqrt(Math.max(variance, 0));
  return { fitted, mean: curve(index), low: curve(index - reach), high: curve(index + reach) };
}

export { modelTable, modelDesign, predictModel };
