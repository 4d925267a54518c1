// What the page shows of an answer: tables, cards and notices. Every text goes in as text, never as markup.
import { general } from "../arithmetic/inference.js";
import { INTERCEPT, span } from "../arithmetic/design.js";
import * as charts from "./charts.js";

function element(kind, text = "", properties = {}) {
  const made = document.createElement(kind);
  made.textContent = text;
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  return made;
}

function shortened(name, longest = 40) {
  const characters = Array.from(name);
  return characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : name;
}

// A name from the release: at most two lines, the whole of it on hovering.
function nameElement(name, meaning = name) {
  return element("span", name, { class: "name", title: meaning.slice(0, 1000), dir: "auto" });
}

function number(value, digits = 5) {
  if (value === null) return "–";
  return value === Infinity ? "∞" : value === -Infinity ? "−∞" : general(value, digits).replace("-", "−");
}

function numberCell(value, digits) {
  return element("td", number(value, digits), value === null ? {} : { "data-value": String(value) });
}

function fillTable(id, heads, rows) {
  const table = document.getElementById(id);
  const head = element("tr");
  head.append(...heads.map((text) => element("th", text, { scope: "col" })));
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows.map(([first, ...cells]) => {
    const line = element("tr");
    const heading = element("th", "", { scope: "row" });
    heading.append(first);
    line.append(heading, ...cells);
    return line;
  }));
}

function pValue(value) {
  const text = value === null ? "–" : value < 1e-16 ? "<1e−16" : number(value, 2);
  return element("td", text, value === null ? {} : { "data-value": String(value) });
}

function notices(texts) {
  document.getElementById("notices").replaceChildren(
    ...texts.map((text) => element("p", text, { class: "notice warning", dir: "auto" })),
  );
}

function card(title, value, detail, attributes = {}) {
  const box = element("div");
  const said = element("dd", value, attributes);
  if (detail) said.append(element("small", detail));
  box.append(element("dt", title), said);
  return box;
}

function estimateCard(title, id, found, change, level) {
  if (found.refused) return card(title, "–", "not available here", { id, title: found.refused });
  const interval = found.low === undefined
    ? ""
    : `${100 * level}% interval ${number(change(found.low), 4)} to ${number(change(found.high), 4)}`;
  return card(title, number(change(found.estimate), 4), interval, { id, "data-value": String(found.estimate) });
}

function showQuality(moments, { design, fit, inference, quality }) {
  const rows = moments.rows === null ? "unknown" : `about ${Math.round(Math.max(moments.rows, 0)).toLocaleString("en")}`;
  const used = fit.effective !== null
    ? `the noise leaves ${fit.effective.toFixed(1)} of ${design.terms.length} parameters to be fitted`
    : fit.penalty > 0 ? `λ = ${number(fit.penalty, 4)}` : `${design.terms.length} parameters`;
  document.getElementById("quality").replaceChildren(
    estimateCard("R², explained share", "r-squared", quality.rSquared, (x) => x, inference.level),
    estimateCard("Standard deviation of errors", "error-sd", quality.residualVariance, Math.sqrt, inference.level),
    card("Rows", rows, "noisy count", { id: "rows", "data-value": String(moments.rows) }),
    card("Fit", { auto: "noise-aware", ridge: "ridge", ols: "least squares" }[fit.method], used, {
      id: "fit", "data-penalty": String(fit.penalty), "data-effective": String(fit.effective),
    }),
  );
}

function showRegression(moments, answer) {
  const { design, fit, inference } = answer;
  const target = moments.columns[design.target].title;
  // Tables go by names, with what the schema calls a column as a tip; figures by the latter.
  const labelOf = ({ name, position }) => {
    const column = moments.columns[position];
    return column.label === column.name ? name : column.label;
  };
  const texts = [];
  if (inference.refusal !== null) {
    texts.push(`No intervals are given: ${inference.refusal}. The fitted values are the best guess for prediction.`);
  }
  texts.push(...[...fit.cautions, ...inference.cautions].map((text) => `Caution: ${text}.`));
  if (moments.facts.robust_targets.includes(moments.columns[design.target].name)) {
    texts.push("A model of this column was declared: Python and the command line give errors for it that allow for "
      + "unequal variances. Those on this page take variances to be equal.");
  }
  notices(texts);
  showQuality(moments, answer);
  const percent = `${100 * inference.level}%`;
  fillTable(
    "coefficients",
    ["", "fitted", "un-shrunken", "std. error", `${percent} from`, "to", "p-value"],
    design.terms.map((term, k) => {
      const c = inference.coefficients[k];
      return [
        nameElement(term.name, labelOf(term)), numberCell(fit.values[k]), numberCell(c.estimate), numberCell(c.error, 3),
        numberCell(c.low), numberCell(c.high), pValue(c.p),
      ];
    }),
  );
  const effects = design.terms
    .map((term, k) => ({ term, k }))
    .filter(({ term }) => term.name !== INTERCEPT)
    .map(({ term, k }) => {
      const size = span(moments, term);
      const c = inference.coefficients[k];
      const scaled = (x) => (x === null ? null : x * size);
      return { name: labelOf(term), fitted: fit.values[k] * size, estimate: scaled(c.estimate), low: scaled(c.low), high: scaled(c.high) };
    });
  charts.coefficients(effects, target, inference.level);
  const references = design.references.map(({ name, level }) => `${shortened(name)}: compared with “${shortened(level)}”.`);
  document.getElementById("reading").textContent = [
    "The chart shows effects over each column's whole public range, or against the reference level.",
    `Estimand: ${inference.meaning}. Intervals are centred at the un-shrunken estimate. The fitted column is the one to predict with.`,
    ...(inference.assumptions.length ? [`Assumed: ${inference.assumptions.join("; ")}.`] : []),
    ...references,
  ].join(" ");
}

function showRefusedRegression(text) {
  notices([text]);
  document.getElementById("quality").replaceChildren();
  fillTable("coefficients", [""], []);
  charts.clear("coefficient-chart");
  document.getElementById("reading").textContent = "";
}

function showCorrelation(moments, columns, { values, low, high }, { kind, level }) {
  charts.heatMap(columns.map((column) => column.label), values, low, high);
  const pairs = [];
  columns.forEach((left, i) => columns.slice(0, i).forEach((right, j) => {
    // Levels of one column exclude each other: nothing worth a line. Nor is what noise could have made: the
    // order is that of the end of the interval nearer to zero.
    const least = Math.max(low[i][j], -high[i][j]);
    if (left.source !== right.source && least > 0) pairs.push({ left: left.name, right: right.name, i, j, least });
  }));
  pairs.sort((a, b) => b.least - a.least);
  const head = ["", "and", "correlation", `${100 * level}% from`, "to"];
  fillTable("correlations", head, pairs.slice(0, 10).map(({ left, right, i, j }) => {
    const other = element("td");
    other.append(nameElement(right));
    return [nameElement(left), other, numberCell(values[i][j], 3), numberCell(low[i][j], 3), numberCell(high[i][j], 3)];
  }));
  const hidden = columns.filter((_, i) => Number.isNaN(values[i][i])).map((column) => shortened(column.name));
  document.getElementById("correlation-reading").textContent = [
    "Empty cells: the interval includes zero.",
    ...(hidden.length ? [`Hidden by the noise: ${hidden.slice(0, 5).join(", ")}${hidden.length > 5 ? ` and ${hidden.length - 5} more` : ""}.`] : []),
    ...(kind === "population" ? [`${moments.constants.normal_errors}.`] : []),
  ].join(" ");
}

function showComponents(found) {
  charts.scree(found);
  if (found.list.length > 1) charts.biplot(found);
  else charts.clear("biplot-chart");
  fillTable(
    "components",
    ["component", "variance", "explained", "stable", "turned by noise", "largest loadings"],
    found.list.slice(0, 20).map((c, i) => {
      const angle = (Math.asin(Math.min(c.sine, 1)) * 180) / Math.PI;
      const largest = element("td");
      largest.style.textAlign = "left";
      found.names
        .map((name, k) => ({ name, value: c.loadings[k] }))
        .sort((a, b) => Math.abs(b.value) - Math.abs(a.value))
        .slice(0, 3)
        .forEach(({ name, value }) => {
          const line = element("div");
          line.append(element("bdi", shortened(name, 30)), ` ${number(value, 2)}`);
          largest.append(line);
        });
      return [
        String(i + 1), numberCell(c.variance, 4), element("td", `${(100 * c.explained).toFixed(1)}%`, { "data-value": String(c.explained) }),
        element("td", c.stable ? "yes" : "NO"), element("td", `about ${angle.toFixed(0)}°`), largest,
      ];
    }),
  );
}

// A text instead of a picture and its table.
function showNotice(part, text, chartIds, tableId) {
  const place = document.getElementById(`${part}-notice`);
  place.hidden = text === null;
  place.textContent = text ?? "";
  if (text === null) return;
  chartIds.forEach(charts.clear);
  document.getElementById(`${part}-reading`)?.replaceChildren();
  fillTable(tableId, [""], []);
}

function showRelease(facts) {
  const { guarantee } = facts;
  const columns = facts.declared.length;
  document.getElementById("headline").textContent =
    `${columns} columns, protected with ε = ${number(guarantee.epsilon)} and δ = ${number(guarantee.delta)} (${guarantee.adjacency})`;
  document.getElementById("guarantee").textContent = guarantee.words;
  document.getElementById("library").textContent = facts.library;
  document.getElementById("seeded").hidden = !facts.seeded;
  document.getElementById("facts").replaceChildren(
    ...facts.facts.flatMap(([name, text]) => [element("dt", name), element("dd", text, { dir: "auto" })]),
  );
}

export {
  element, nameElement, number, shortened, showRegression, showRefusedRegression, showCorrelation, showComponents,
  showNotice, showRelease,
};
