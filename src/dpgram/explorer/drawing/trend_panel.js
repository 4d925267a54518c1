// Trends: a coefficient in every window of a series, with intervals, changes and the straight line through them.
import { Refusal } from "../arithmetic/moments.js";
import { INTERCEPT } from "../arithmetic/design.js";
import { seriesOf, trend } from "../arithmetic/trend.js";
import * as charts from "./charts.js";
import { at, card, element, fillTable, notices, number, numberCell, options, percent, pValue, shortened } from "./elements.js";

const RUNNING = "running";

// What the list of windows offers: [value, words].
function windowChoices({ series }) {
  const words = (length) => (length === 1 ? "each period" : `${length} periods in each window`);
  return [...series.lengths.map((length) => [String(length), words(length)]), [RUNNING, "running totals"]];
}

// The levels that the controls show: the most frequent one of all periods, unless another was chosen.
function shownReferences({ moments, state }) {
  const found = Object.create(null);
  for (const column of moments.declared) if (column.group) found[column.name] = state.references[column.name] ?? column.reference;
  return found;
}

// The trend that is asked for; a Refusal is thrown where there is none.
function trendOf(session) {
  const { moments, state } = session;
  const series = session.once("series", () => seriesOf(moments));
  const running = state.windows === RUNNING;
  const question = {
    target: state.target, on: session.features(), references: shownReferences(session), kind: state.kind, level: Number(state.level),
    ends: series.ends(running ? 1 : Number(state.windows), running), running,
  };
  return session.remembered(["trend", question], () => trend(moments, series, question));
}

function showTrend(session) {
  const { moments, state, facts } = session;
  if (at("windows").options.length === 0) options("windows", windowChoices(facts));
  at("windows").value = state.windows;
  at("trend-title").textContent = `${shortened(moments.columns[state.target].title, 60)} over time`;
  try {
    const found = trendOf(session);
    const chosen = found.names.includes(state.coefficient) ? state.coefficient : found.names.find((name) => name !== INTERCEPT) ?? found.names[0];
    options("coefficient", found.names.map((name) => [name, name]), chosen);
    return tellTrend(session, found, found.coefficient(chosen));
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    notices("trend-notices", [problem.message]);
    options("coefficient", []);
    at("changes").replaceChildren();
    charts.clear("trend-chart");
    fillTable("trend-table", [], []);
    at("trend-reading").textContent = "";
    return null;
  }
}

function tellTrend(session, found, own) {
  const { facts } = session;
  const { rows } = own;
  const change = rows.length > 1 ? own.change() : null;
  const slope = own.slope();
  const noisy = rows.filter(({ trusted }) => !trusted).length;
  notices("trend-notices", [
    ...(noisy ? [tooNoisy(session, noisy, rows.length)] : []),
    ...found.cautions.map((text) => `Caution: ${text}.`),
  ]);
  at("changes").replaceChildren(...[
    change && changeCard("The last window less the first", change, found.level, "trend-change"),
    slope && changeCard("In one period, by the straight line", slope, found.level, "trend-slope"),
  ].filter(Boolean));
  // A total is named by the period it goes up to.
  const { labels } = facts.series;
  const short = rows.map((each, i) => ({ ...each, short: session.state.windows === RUNNING ? labels[i] : each.window }));
  charts.overTime("trend-chart", short, {
    axis: shortened(own.name, 40), slope: noisy ? null : slope, mark: `${percent(found.level)} interval (${found.kind})`, wide: facts.conventions.wide,
  });
  fillTable("trend-table", ["window", "estimate", "std. error", `${percent(found.level)} from`, "to"], rows.map((each) => [
    element("span", each.window, { class: "name", dir: "auto" }), numberCell(each.estimate), numberCell(each.error, 3),
    ...(each.trusted ? [numberCell(each.low), numberCell(each.high)] : [element("td", "too noisy"), element("td", "too noisy")]),
  ]));
  at("trend-reading").textContent = [
    `${shortened(own.name, 60)} in the regression of ${shortened(session.targetName(), 60)}, in original units. Each interval is that of its own window, for ${found.windows.at(-1).inference.meaning}.`,
    "Windows share noise: changes and the straight line know how much, so they may be clearer or less clear than the intervals look.",
    ...(session.state.windows === RUNNING ? ["A running total holds the rows of all before it, so its steps are smaller than those of single periods."] : []),
  ].join(" ");
  const plain = (each) => each && { what: each.what, estimate: each.estimate, std_error: each.error, low: each.low, high: each.high, p_value: each.p, cautions: each.cautions };
  return {
    target: session.targetName(), features: session.features(), level: found.level, kind: found.kind, cautions: found.cautions,
    coefficient: own.name, change: plain(change), slope: plain(slope),
    coefficients: found.names.map((name) => ({
      name, windows: found.coefficient(name).rows.map((each) => ({ window: each.window, estimate: each.estimate, std_error: each.error, low: each.low, high: each.high })),
    })),
  };
}

// Longer windows have more rows: the next of them, and totals, are one click away.
function tooNoisy(session, noisy, count) {
  const { facts, state } = session;
  const longer = state.windows === RUNNING ? undefined : facts.series.lengths.find((length) => length > Number(state.windows));
  const remedies = [
    ...(longer === undefined ? [] : [[`${longer} periods in each window`, () => session.change({ windows: String(longer) })]]),
    ...(state.windows === RUNNING ? [] : [["Running totals", () => session.change({ windows: RUNNING })]]),
  ];
  return { text: `${noisy} of ${count} windows are too noisy for an interval of their own. Longer windows, or fewer columns, have more to tell.`, remedies };
}

function changeCard(title, found, level, id) {
  const detail = `${percent(level)} interval ${number(found.low, 4)} to ${number(found.high, 4)}, p ${pText(found.p)}`;
  return card(title, number(found.estimate, 4), [detail, ...found.cautions].join("; "), {
    id, "data-value": String(found.estimate), "data-low": String(found.low), "data-high": String(found.high), "data-p": String(found.p),
  });
}

function pText(p) {
  const text = pValue(p).textContent;
  return text.startsWith("<") ? text.replace("<", "< ") : `= ${text}`;
}

function listenToTrend(session) {
  at("trend-form").addEventListener("submit", (event) => event.preventDefault());
  at("coefficient").addEventListener("change", () => session.change({ coefficient: at("coefficient").value }));
  at("windows").addEventListener("change", () => session.change({ windows: at("windows").value }));
}

export { showTrend, trendOf, listenToTrend };
