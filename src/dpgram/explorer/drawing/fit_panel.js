// The regression: cards, chart, coefficients, effects where columns interact, joint tests.
import { Refusal } from "../arithmetic/moments.js";
import { INTERCEPT, placesByColumn, span } from "../arithmetic/design.js";
import { jointTest, varianceTestInWords } from "../arithmetic/inference.js";
import { marginalEffects } from "../arithmetic/contrasts.js";
import { modelOf } from "../arithmetic/downloads.js";
import * as charts from "./charts.js";
import { usualFeatures } from "./address.js";
import { labelOf } from "./session.js";
import { at, card, element, fillTable, nameElement, notices, number, numberCell, percent, pValue, shortened, tickBoxes } from "./elements.js";

const METHODS = { auto: "noise-aware", ridge: "ridge", ols: "least squares" };

function showFit(session) {
  const { moments } = session;
  const target = moments.columns[session.state.target].title;
  at("regression-title").textContent = `Regression of ${shortened(target, 80)}`;
  let answer = null;
  try {
    answer = session.answer();
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    showNothing(session, problem.message);
  }
  for (const id of ["save-json", "save-csv", "save-python"]) at(id).disabled = answer === null;
  if (answer === null) return null;
  notices("notices", said(session, answer));
  showQuality(session, answer);
  showChart(session, answer);
  showCoefficients(session, answer);
  const effects = showInteractions(session, answer);
  const tests = showTests(session, answer);
  return { ...modelOf(moments, answer), effects, tests };
}

function showNothing(session, text) {
  notices("notices", [{ text, remedies: [["Choose the usual columns", () => chooseUsual(session)]] }]);
  at("quality").replaceChildren();
  at("show-whole").hidden = true;
  fillTable("coefficients", [], []);
  charts.clear("coefficient-chart");
  at("reading").textContent = "";
  at("interactions").hidden = true;
  at("joint").hidden = true;
}

function chooseUsual(session) {
  session.change({ chosen: new Set(usualFeatures(session.moments, session.state.target)), references: Object.create(null) });
}

function nothingChosen(session, features, consequence) {
  if (features.length > 0) return [];
  const text = `No column is chosen, ${consequence}. Choose columns to explain the target by.`;
  return [{ text, remedies: [["Choose the usual columns", () => chooseUsual(session)]] }];
}

// What a reader must know before the numbers, each with what can be done about it.
function said(session, { fit, inference, features }) {
  const list = nothingChosen(session, features, "so there is only the mean to show");
  if (inference.refusal !== null) {
    list.push({
      text: `No intervals are given: ${inference.refusal}. The fitted values are the best guess for prediction.`,
      remedies: remedies(session, inference),
    });
  }
  list.push(...cautionsOf({ fit, inference }));
  return list;
}

function cautionsOf({ fit, inference }) {
  return [...fit.cautions, ...inference.cautions].map((text) => `Caution: ${text}.`);
}

function remedies(session, inference) {
  if (inference.refusal === session.moments.constants.moved_refusal) {
    return [["Ask about this table instead", () => session.change({ kind: "table" })]];
  }
  const all = session.features();
  if (all.length < 2) return [];
  const fewer = all.slice(0, Math.ceil(all.length / 2));
  return [[`Keep the first ${fewer.length} columns`, () => session.change({ chosen: new Set(fewer) })]];
}

function estimateCard(title, id, found, change, level) {
  if (found.refused) return card(title, "–", "not available here", { id, title: found.refused });
  const interval = found.low === undefined
    ? ""
    : `${percent(level)} interval ${number(change(found.low), 4)} to ${number(change(found.high), 4)}`;
  return card(title, number(change(found.estimate), 4), interval, { id, "data-value": String(found.estimate) });
}

function showQuality({ moments }, { design, fit, inference, quality }) {
  const { counted } = moments.facts;
  const rows = moments.rows === null
    ? "unknown" : `about ${Math.round(Math.max(moments.rows, 0) * counted.scale).toLocaleString("en")}`;
  const used = fit.effective !== null
    ? `the noise leaves ${fit.effective.toFixed(1)} of ${design.terms.length} parameters to be fitted`
    : fit.penalty > 0 ? `λ = ${number(fit.penalty, 4)}` : `${design.terms.length} parameters`;
  const test = inference.unequalVariance;
  at("quality").replaceChildren(
    ...(design.terms.length > 1 || !design.intercept
      ? [estimateCard("R², explained share", "r-squared", quality.rSquared, (x) => x, inference.level)] : []),
    estimateCard("Standard deviation of errors", "error-sd", quality.residualVariance, Math.sqrt, inference.level),
    card(counted.name, rows, counted.words, { id: "rows", "data-value": String(moments.rows) }),
    card("Fit", METHODS[fit.method], used, { id: "fit", "data-penalty": String(fit.penalty), "data-effective": String(fit.effective) }),
    ...(test === null ? [] : [card(
      "Declared model", "robust errors",
      `they allow for unequal variances: ${varianceTestInWords(test)}; unequal below p = ${moments.constants.unequal_variance}`,
      { id: "unequal-variance", "data-value": String(test.statistic) },
    )]),
  );
}

function showChart(session, { design, fit, inference }) {
  const { moments } = session;
  const effects = design.terms.map((term, k) => ({ term, k })).filter(({ term }) => term.name !== INTERCEPT).map(({ term, k }) => {
    const size = span(moments, term);
    const c = inference.coefficients[k];
    const scaled = (x) => (x === null ? null : x * size);
    return { name: labelOf(moments, term), fitted: fit.values[k] * size, estimate: scaled(c.estimate), low: scaled(c.low), high: scaled(c.high) };
  });
  const button = at("show-whole");
  button.hidden = effects.length <= charts.MOST_ROWS;
  if (effects.length === 0) {
    charts.clear("coefficient-chart");
    return;
  }
  const { effects: axis, fitted, unshrunken, wide } = session.facts.conventions;
  const whole = session.state.whole === true;
  const shown = charts.coefficients("coefficient-chart", effects, {
    axis: axis.replace("{target}", shortened(moments.columns[design.target].title, 40)),
    marks: {
      estimate: unshrunken.replace("{level}", String(100 * inference.level)).replace("{kind}", inference.kind),
      fitted: fitted.replace("{method}", fit.method),
    },
    wide, whole,
  });
  button.textContent = whole ? `Show the ${charts.MOST_ROWS} clearest only` : `Showing the ${shown} clearest of ${effects.length} effects. Show all`;
}

function showCoefficients({ moments }, { design, fit, inference }) {
  // Tables go by names, with what the schema calls a column as a tip; figures by the latter.
  const name = (term) => nameElement(term.name, labelOf(moments, term));
  const heads = ["", "fitted", "un-shrunken", "std. error", `${percent(inference.level)} from`, "to", "p-value"];
  if (inference.refusal !== null) {
    // Six columns of dashes would say nothing more than the notice above.
    fillTable("coefficients", heads.slice(0, 2), design.terms.map((term, k) => [name(term), numberCell(fit.values[k])]));
  } else {
    fillTable("coefficients", heads, design.terms.map((term, k) => {
      const c = inference.coefficients[k];
      return [
        name(term), numberCell(fit.values[k]), numberCell(c.estimate), numberCell(c.error, 3), numberCell(c.low),
        numberCell(c.high), pValue(c.p),
      ];
    }));
  }
  const references = design.references.map((each) => `${shortened(each.name)} is compared with “${shortened(each.level)}”.`);
  at("reading").textContent = [
    "The table is in original units: one unit more of a column. The chart shows effects over each column's whole public range, or against the reference level.",
    ...(inference.refusal !== null ? [] : [
      `Estimand: ${inference.meaning}. Intervals are centred at the un-shrunken estimate. The fitted column is the one to predict with.`,
      ...(inference.assumptions.length ? [`Assumed: ${inference.assumptions.join("; ")}.`] : []),
    ]),
    ...references,
  ].join(" ");
}

// For a product of a number with levels: its slope at each level. For one of two numbers: at three places.
function showInteractions({ moments }, { design, inference }) {
  const lines = [];
  const seen = new Set();
  try {
    for (const { position } of inference.refusal === null ? design.terms : []) {
      const column = moments.columns[position];
      const product = moments.declared.find((each) => each.name === column.source);
      if (column.monomial.length < 2 || seen.has(column.source) || new Set(column.monomial).size < 2) continue;
      seen.add(column.source);
      const [left, right] = product.factors.map((name) => moments.declared.find((each) => each.name === name));
      const [moving, other] = left.group ? [right, left] : [left, right];
      if (moving.group) continue;
      for (const place of placesOf(moments, other)) {
        const found = marginalEffects(moments, design, inference, { [other.name]: place.value }).find((each) => each.name === moving.name);
        lines.push([nameElement(moving.name), place.text, other.name, found]);
      }
    }
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    lines.length = 0;
  }
  at("interactions").hidden = lines.length === 0;
  fillTable("margins", ["effect of", "where", "estimate", "std. error", `${percent(inference.level)} from`, "to", "p-value"],
    lines.map(([name, place, other, c]) => {
      const where = element("td", `${shortened(other, 30)} = ${shortened(place, 30)}`, { dir: "auto" });
      return [name, where, numberCell(c.estimate), numberCell(c.error, 3), numberCell(c.low), numberCell(c.high), pValue(c.p)];
    }));
  at("margins-reading").textContent = "Columns of other interactions are at their noisy means.";
  return lines.map(([, place, other, found]) => ({ ...found, where: { [other]: place } }));
}

function placesOf(moments, column) {
  if (column.group) return column.positions.map((i) => moments.columns[i].level).map((level) => ({ text: level, value: level }));
  if (column.choices.length) return column.choices.map(([text, value]) => ({ text, value }));
  const [low, high] = column.bounds;
  return [0.25, 0.5, 0.75].map((part) => low + part * (high - low)).map((value) => ({ text: number(value, 4), value }));
}

function testText(found) {
  const law = found.denominator === null ? `χ²(${found.numerator})` : `F(${found.numerator}, ${Math.round(found.denominator).toLocaleString("en")})`;
  return `${law} = ${number(found.statistic, 4)}`;
}

function showTests(session, { design, inference }) {
  const { moments } = session;
  const columns = placesByColumn(moments, design);
  at("joint").hidden = inference.refusal !== null || columns.size === 0;
  if (at("joint").hidden) return [];
  const asked = [...columns].filter(([, places]) => places.length > 1);
  const every = [...columns.values()].flat();
  const tests = [["all of them", every], ...asked].map(([name, places]) => ({ name, places, found: jointTest(inference, design.names, places) }));
  const rows = tests.map(({ name: text, places, found }) => {
    const name = places === every ? element("strong", text) : nameElement(text);
    if (found.refused) return [name, element("td", String(places.length)), element("td", "not available", { title: found.refused }), pValue(null)];
    return [name, element("td", String(places.length)), element("td", testText(found), { "data-value": String(found.statistic) }), pValue(found.p)];
  });
  fillTable("tests", ["column", "coefficients", "test", "p-value"], rows);
  showOwnTest(session, design, inference);
  return tests.map(({ name, found }) => ({ column: name, ...found }));
}

function showOwnTest(session, design, inference) {
  const tested = new Set([...session.state.tested].filter((name) => design.names.includes(name)));
  const tell = () => {
    const places = design.names.map((name, k) => (tested.has(name) ? k : -1)).filter((k) => k >= 0);
    if (places.length === 0) {
      at("own-result").textContent = "Tick the coefficients that might all be zero.";
      return;
    }
    const found = jointTest(inference, design.names, places);
    at("own-result").textContent = found.refused
      ? `No joint test: ${found.refused}.`
      : `That ${places.map((k) => shortened(design.names[k], 30)).join(", ")} ${places.length > 1 ? "are all" : "is"} zero: ${testText(found)}, p ${found.p < 1e-16 ? "< 1e−16" : `= ${number(found.p, 2)}`}`;
    at("own-result").dataset.value = String(found.statistic ?? "");
  };
  at("tested").replaceChildren(...tickBoxes(design.names, tested, (name, on) => {
    if (on) tested.add(name);
    else tested.delete(name);
    session.state.tested = tested;
    tell();
  }));
  tell();
}

function listenToFit(session) {
  at("show-whole").addEventListener("click", () => session.change({ whole: !session.state.whole }));
}

export { showFit, listenToFit, cautionsOf, nothingChosen, remedies };
