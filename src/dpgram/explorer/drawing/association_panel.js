// Correlations and principal components.
import { Refusal } from "../arithmetic/moments.js";
import { readColumns } from "../arithmetic/design.js";
import { associationCautions, components, correlation } from "../arithmetic/covariance.js";
import * as charts from "./charts.js";
import { at, element, fillTable, nameElement, notices, number, numberCell, options, percent, shortened } from "./elements.js";

// Positions of all encoded columns, or of the target and the features; never of products and powers.
function positions({ moments, state }) {
  const all = readColumns(moments).map((column) => column.position);
  if (state.part === "all") return all;
  const sources = new Set([moments.columns[state.target].source, ...state.chosen]);
  return all.filter((position) => sources.has(moments.columns[position].source));
}

function showCorrelations(session) {
  const { moments, state } = session;
  at("correlation-columns").value = state.part;
  let whole = null;
  try {
    whole = session.once(`correlation ${state.kind} ${state.level}`, () => correlation(moments, state.kind, Number(state.level)));
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    notices("correlation-notices", [problem.message]);
    charts.clear("correlation-chart");
    fillTable("strongest", [], []);
    at("correlation-reading").textContent = "";
    at("pair-told").textContent = "–";
    return null;
  }
  const shown = positions(session);
  const cautions = associationCautions(moments, "correlations", shown, state.kind);
  notices("correlation-notices", cautions.map((text) => `Caution: ${text}.`));
  const columns = shown.map((i) => moments.columns[i]);
  const part = (name) => shown.map((i) => shown.map((j) => whole[name][i - 1][j - 1]));
  const [values, low, high] = [part("estimate"), part("low"), part("high")];
  const known = columns.filter((_, i) => !Number.isNaN(values[i][i])).length;
  if (columns.length > 1 && known > 1) charts.heatMap(columns.map((column) => column.label), values, low, high, session.facts.conventions.diverging);
  else {
    charts.clear("correlation-chart");
    notices("correlation-notices", [columns.length > 1
      ? "The noise hides these columns, so there are no correlations to show: they would need a release of more rows, of fewer columns, or with a larger epsilon."
      : "One column has no correlations: choose more at the side, or show all."]);
  }
  showPair(session, whole);
  showStrongest(session, columns, values, low, high);
  return { names: columns.map((column) => column.name), level: Number(state.level), kind: state.kind, estimate: values, low, high, cautions };
}

// Any two columns, with their interval.
function showPair({ moments, state }, whole) {
  const columns = readColumns(moments);
  const names = columns.map((column) => [column.name, column.name]);
  const asked = state.pair.filter((name) => columns.some((column) => column.name === name));
  const left = asked[0] ?? columns[0].name;
  const right = asked[1] ?? columns.find((column) => column.source !== columns[0].source)?.name ?? columns.at(-1).name;
  options("pair-left", names, left);
  options("pair-right", names, right);
  const [i, j] = [left, right].map((name) => columns.find((column) => column.name === name).position - 1);
  const value = whole.estimate[i][j];
  at("pair-told").textContent = Number.isNaN(value)
    ? "hidden by the noise"
    : `${number(value, 3)}, ${percent(Number(state.level))} interval ${number(whole.low[i][j], 3)} to ${number(whole.high[i][j], 3)}`;
  at("pair-told").dataset.value = JSON.stringify([value, whole.low[i][j], whole.high[i][j]]);
}

function showStrongest({ moments, state }, columns, values, low, high) {
  const pairs = [];
  columns.forEach((left, i) => columns.slice(0, i).forEach((right, j) => {
    // Levels of one column exclude each other: nothing worth a line. Nor is what noise could have made: the
    // order is that of the end of the interval nearer to zero.
    const least = Math.max(low[i][j], -high[i][j]);
    if (left.source !== right.source && least > 0) pairs.push({ left: left.name, right: right.name, i, j, least });
  }));
  pairs.sort((a, b) => b.least - a.least);
  fillTable("strongest", ["", "and", "correlation", `${percent(Number(state.level))} from`, "to"], pairs.slice(0, 10).map(({ left, right, i, j }) => {
    const other = element("td");
    other.append(nameElement(right));
    return [nameElement(left), other, numberCell(values[i][j], 3), numberCell(low[i][j], 3), numberCell(high[i][j], 3)];
  }));
  const hidden = columns.filter((_, i) => Number.isNaN(values[i][i])).map((column) => shortened(column.name));
  at("correlation-reading").textContent = [
    pairs.length ? "Empty cells: the interval includes zero." : "No pair of different columns has an interval without zero: more rows or a larger epsilon would be needed to tell.",
    ...(hidden.length ? [`Hidden by the noise: ${hidden.slice(0, 5).join(", ")}${hidden.length > 5 ? ` and ${hidden.length - 5} more` : ""}.`] : []),
    ...(state.kind === "population" ? [`${moments.constants.normal_errors}.`] : []),
  ].join(" ");
}

function showComponents(session) {
  const { moments, state } = session;
  at("pca-columns").value = state.part;
  at("standardise").checked = state.standardise;
  try {
    const shown = positions(session);
    const found = session.once(`components ${JSON.stringify([shown, state.standardise])}`, () => components(moments, shown, state.standardise));
    const cautions = associationCautions(moments, "components", shown);
    notices("pca-notices", cautions.map((text) => `Caution: ${text}.`));
    drawComponents(found);
    return { standardise: state.standardise, ...found, cautions };
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    const remedies = state.standardise ? [["Leave variances as they are", () => session.change({ standardise: false })]] : [];
    notices("pca-notices", [{ text: problem.message, remedies }]);
    charts.clear("scree-chart");
    charts.clear("biplot-chart");
    fillTable("component-table", [], []);
    return null;
  }
}

function drawComponents(found) {
  charts.scree(found);
  if (found.list.length > 1) charts.biplot(found);
  else charts.clear("biplot-chart");
  const heads = ["component", "variance", "explained", "stable", "turned by noise", "largest loadings"];
  fillTable("component-table", heads, found.list.slice(0, 20).map((c, i) => {
    const angle = (Math.asin(Math.min(c.sine, 1)) * 180) / Math.PI;
    const largest = element("td");
    found.names.map((name, k) => ({ name, value: c.loadings[k] }))
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
  }));
}

function listenToAssociation(session) {
  at("correlation-columns").addEventListener("change", () => session.change({ part: at("correlation-columns").value }));
  at("pca-columns").addEventListener("change", () => session.change({ part: at("pca-columns").value }));
  at("standardise").addEventListener("change", () => session.change({ standardise: at("standardise").checked }));
  for (const id of ["pair-left", "pair-right"]) {
    at(id).addEventListener("change", () => session.change({ pair: [at("pair-left").value, at("pair-right").value] }));
  }
}

export { showCorrelations, showComponents, listenToAssociation };
