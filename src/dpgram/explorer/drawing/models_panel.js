// Models that the curator declared beforehand: logit, probit and others of their kind.
import { INTERCEPT, span } from "../arithmetic/design.js";
import { modelDesign, modelTable, predictModel } from "../arithmetic/models.js";
import { neededColumns } from "../arithmetic/prediction.js";
import * as charts from "./charts.js";
import { fillForm, interval, personOf } from "./person_panel.js";
import { labelOf } from "./session.js";
import { at, card, fillTable, nameElement, notices, number, numberCell, options, percent, pValue, shortened } from "./elements.js";

const NAMES = { logistic: "logit", probit: "probit", poisson: "Poisson" };
const PREDICTED = { logistic: "Probability", probit: "Probability", poisson: "Expected count" };

const nameOf = (model) => `${NAMES[model.family] ?? model.family} of ${model.target} on ${model.on.join(", ")}`;

function showModels(session) {
  const { facts, moments, state } = session;
  options("model", facts.models.map((model, i) => [String(i), nameOf(model)]), String(state.model));
  const model = facts.models[state.model];
  at("models-title").textContent = `Declared: ${shortened(nameOf(model), 80)}`;
  const refused = model.refused !== undefined;
  const cautions = refused ? [] : model.cautions.map((text) => `Caution: ${text}.`);
  notices("model-notices", refused ? [`This model has no answer: ${model.refused}`] : cautions);
  for (const id of ["model-form", "model-who", "model-reading"]) at(id).hidden = refused;
  if (refused) {
    at("model-prediction").replaceChildren();
    fillTable("model-coefficients", [], []);
    fillTable("model-meaning", [], []);
    charts.clear("model-chart");
    return null;
  }
  const level = Number(state.level);
  const rows = modelTable(model, level);
  showCoefficients(model, rows, level);
  const design = modelDesign(moments, model);
  showChart(session, model, rows, design, level);
  const columns = neededColumns(moments, design);
  const person = personOf(session, columns);
  fillForm("model-form", session, columns, person);
  const found = predictModel(model, design, moments, person, level);
  if (found.refused) {
    notices("model-notices", [...cautions, `No intervals are given for this person: ${found.refused}. The prediction is a best guess.`]);
  }
  at("model-prediction").replaceChildren(
    card(`${PREDICTED[model.family] ?? "Prediction"} for the person below`, number(found.fitted, 4), "by the fitted coefficients", { id: "model-predicted", "data-value": String(found.fitted) }),
    ...(found.refused ? [] : [card("People like this", number(found.mean, 4), `${percent(level)} interval ${interval(found.low, found.high)}`, {
      id: "model-expected", "data-value": String(found.mean), "data-low": String(found.low), "data-high": String(found.high),
    })]),
    card("Newton steps", model.steps === 0 ? "none" : String(model.steps), "measured under the same guarantee"),
  );
  at("model-reading").textContent = "Intervals are for the population and hold sampling error and privacy noise. "
    + "The mean effect is the change of what is predicted with one unit more, on average over all rows.";
  const { family, target, on, steps } = model;
  return { family, target, on, steps, cautions: model.cautions, level, coefficients: rows, person: { ...person }, prediction: found };
}

function showCoefficients(model, rows, level) {
  if (rows.every((row) => row.estimate === null)) {  // a notice says so: no table of dashes
    fillTable("model-coefficients", [], []);
    fillTable("model-meaning", [], []);
    return;
  }
  const heads = ["", "coefficient", "std. error", `${percent(level)} from`, "to", "p-value"];
  fillTable("model-coefficients", heads, rows.map((row) => [
    nameElement(row.name), numberCell(row.estimate), numberCell(row.error, 3), numberCell(row.low), numberCell(row.high), pValue(row.p),
  ]));
  // The same in words that need no logarithm.
  const kinds = [[model.ratios, "ratio"], [model.slope === null ? null : "mean effect", "effect"]].filter(([word]) => word !== null);
  const cells = (three) => (three ?? [null, null, null]).map((value) => numberCell(value, 3));
  fillTable("model-meaning", ["", ...kinds.flatMap(([word]) => [word, "from", "to"])], kinds.length === 0 ? [] : rows
    .filter((row) => row.name !== INTERCEPT)
    .map((row) => [nameElement(row.name), ...kinds.flatMap(([, key]) => cells(row[key]))]));
}

function showChart({ moments, facts }, model, rows, design, level) {
  const effects = design.terms.map((term, k) => ({ term, row: rows[k] })).filter(({ term }) => term.name !== INTERCEPT).map(({ term, row }) => {
    const size = span(moments, term);
    const scaled = (x) => (x === null ? null : x * size);
    return { name: labelOf(moments, term), fitted: null, estimate: scaled(row.estimate), low: scaled(row.low), high: scaled(row.high) };
  });
  if (effects.every((e) => e.estimate === null)) {
    charts.clear("model-chart");
    return;
  }
  charts.coefficients("model-chart", effects, {
    axis: facts.conventions.effects.replace("{target}", `the ${NAMES[model.family] ?? model.family} index of ${shortened(model.target, 30)}`),
    marks: { estimate: `${100 * level}% interval (population)` },
    wide: facts.conventions.wide,
  });
}

function listenToModels(session) {
  at("model").addEventListener("change", () => session.change({ model: Number(at("model").value) }));
}

export { showModels, listenToModels };
