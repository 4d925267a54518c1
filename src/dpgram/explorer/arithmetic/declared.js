// Declared linear models: what Python made of their measurements comes with the page, in its own order of terms.
import { fromRows, times, timesTransposed, apply, inverse } from "./algebra.js";
import { buildDesign } from "./design.js";

const sameNames = (a, b) => a.length === b.length && a.every((name) => b.includes(name));

// { estimate, covariance, linear, told } in the terms of the design; null: not declared, or without an answer.
// `linear`: the covariance does not depend on the coefficients.
function declaredModel(moments, design, kind) {
  const target = moments.columns[design.target].name;
  const model = moments.facts.linear_models.find((each) => each.target === target && sameNames(each.on, design.on));
  const told = model?.kinds[kind] ?? null;
  if (told === null || told.covariance === null || !design.intercept) return null;
  const own = buildDesign(moments, design.target, model.on);
  const size = model.names.length;
  const order = own.names.map((name) => model.names.indexOf(name));
  if (order.includes(-1) || own.names.length !== size) return null;
  const estimate = Float64Array.from(order, (k) => told.estimate[k]);
  const covariance = fromRows(order.map((i) => order.map((j) => told.covariance[i][j])), size);
  const { linear } = told;
  if (design.names.every((name, k) => name === own.names[k])) return { estimate, covariance, linear, told };
  if (design.names.length !== size) return null;
  const carry = changeOfTerms(moments, own, design);
  estimate[0] -= own.offset;
  const carried = apply(carry, estimate);
  carried[0] += design.offset;
  return { estimate: carried, covariance: timesTransposed(times(carry, covariance), carry), linear, told };
}

// From coefficients of one design to those of another with the same span.
function changeOfTerms(moments, from, to) {
  const functions = fromRows(from.vectors.map(moments.project), moments.width);
  const inside = times(to.toTerms, timesTransposed(to.basis, functions));
  return times(to.toOriginal, times(inside, inverse(from.toOriginal)));
}

// The tests for unequal variances of a target's declared models.
function declaredTests({ facts }, target) {
  return facts.linear_models
    .filter((each) => each.target === target)
    .map((each) => each.kinds.population.unequal_variance)
    .filter((test) => test !== null);
}

export { declaredModel, declaredTests };
