// Columns one by one: noisy counts with their noise, what was lost of each, means and deviations.
import { upperQuantile } from "../arithmetic/distributions.js";
import * as charts from "./charts.js";
import { asDate, at, card, element, fillTable, nameElement, notices, number, numberCell, options, percent, shortened } from "./elements.js";

const LOST = {
  missing: "missing", unreadable: "not readable, or of no declared level", below: "below the bounds, moved to the lower one",
  above: "above the bounds, moved to the upper one",
};
const rowsText = (value) => Math.round(Math.max(value, 0)).toLocaleString("en");

function showColumns(session) {
  const { facts, moments, state } = session;
  const read = moments.declared.filter((column) => column.factors.length === 0);
  options("column", read.map((column) => [column.name, column.label]));
  const name = state.column !== null && read.some((column) => column.name === state.column) ? state.column : read[0].name;
  at("column").value = name;
  const column = read.find((each) => each.name === name);
  at("columns-title").textContent = shortened(column.label, 80);
  const histogram = facts.histograms.find((each) => each.column === name) ?? null;
  showCards(session, column);
  if (histogram !== null) showHistogram(session, column, histogram);
  else showWithoutHistogram(session, column);
  showDescription(session);
  return { column: name, histogram, description: facts.description };
}

function showHistogram({ state }, column, histogram) {
  const reach = upperQuantile(0.5 * (1 - Number(state.level)), null) * histogram.noise_sd;
  const told = (value) => (column.dates ? asDate(value) : number(value, 4));
  const bar = (name, count, lost) => ({ name, count, reach, lost });
  const { below, above, ...others } = histogram.lost;
  const bars = [
    ...(below === undefined ? [] : [bar("below", below, true)]),
    ...histogram.values.map((value, i) => bar(histogram.numbers ? told(value) : column.choices[i]?.[0] ?? value, histogram.counts[i], false)),
    ...(above === undefined ? [] : [bar("above", above, true)]),
    ...Object.entries(others).map(([name, count]) => bar(name, count, true)),
  ];
  charts.counts("column-chart", bars, {
    axis: histogram.numbers ? column.label : "", upright: histogram.numbers,
    words: `Noisy numbers of rows by value of ${shortened(column.label)}; ${bars.length} bars, each with an interval of ${rowsText(reach)} rows to either side.`,
  });
  at("column-chart").dataset.counts = JSON.stringify(bars.map(({ name, count }) => [name, count]));
  const clear = Object.entries(histogram.lost).filter(([, count]) => count > reach);
  notices("column-notices", []);
  at("column-reading").textContent = [
    `Each bar is off by noise of ${number(histogram.noise_sd, 3)} rows (standard deviation); lines are ${percent(Number(state.level))} intervals for this table.`,
    ...(histogram.numbers ? ["A value between two of the places counts at both, in proportion."] : []),
    clear.length
      ? `Beyond the noise: ${clear.map(([name, count]) => `about ${rowsText(count)} rows ${LOST[name]}`).join("; ")}.`
      : "Nothing beyond the noise was missing, unreadable or outside the bounds.",
  ].join(" ");
}

// A plain release counts levels and knows no distribution of numbers.
function showWithoutHistogram({ facts, moments, state }, column) {
  const own = new Map((facts.description.columns ?? []).map((each) => [each.name, each]));
  const counted = column.positions.map((i) => moments.columns[i]).filter(({ name }) => own.get(name)?.count[state.level]);
  if (counted.length === 0) {
    charts.clear("column-chart");
    notices("column-notices", [
      `This release has no histogram of ${shortened(column.name)}: it was published as one plain matrix. Its mean and deviation are below; `
      + "the distribution would need a release of the adaptive kind, which is the default.",
    ], "");
    at("column-reading").textContent = "";
    return;
  }
  notices("column-notices", []);
  const bars = counted.map(({ name, level }) => {
    const [count, low, high] = own.get(name).count[state.level];
    return { name: level ?? "true", count, reach: 0.5 * (high - low), lost: false };
  });
  charts.counts("column-chart", bars, { axis: "", upright: false, words: `Noisy numbers of rows by level of ${shortened(column.label)}.` });
  at("column-chart").dataset.counts = JSON.stringify(bars.map(({ name, count }) => [name, count]));
  at("column-reading").textContent = `Lines are ${percent(Number(state.level))} intervals for this table.`;
}

function showCards({ facts, moments, state }, column) {
  const own = (facts.description.columns ?? []).find((each) => each.name === moments.columns[column.positions[0]].name);
  const cards = [];
  if (own !== undefined && !column.group) {
    const [mean, low, high] = own.mean[state.kind][state.level];
    const [deviation, from, to] = own.deviation[state.level];
    const isShare = own.count[state.level] !== null;
    const told = (value) => (own.dates ? asDate(value) : number(value, 4));
    const days = own.dates ? " days" : "";
    cards.push(
      card(isShare ? "Share of true" : "Mean", told(within([mean, low, high])[0]), `${percent(Number(state.level))} interval ${told(low)} to ${told(high)}`, { id: "column-mean", "data-value": String(mean), "data-low": String(low), "data-high": String(high) }),
      card("Standard deviation", number(deviation, 4) + days, `${percent(Number(state.level))} interval ${number(from, 4)} to ${number(to, 4)}${days} (table)`, { id: "column-deviation", "data-value": String(deviation) }),
    );
  }
  const [bounds, origin] = column.bounds === null || column.choices.length
    ? [`${column.choices.length} levels`, "declared in advance"]
    : [column.bounds.map((end) => (column.dates ? asDate(end) : number(end, 5))).join(" to "), column.learnt ? "learnt privately, under the same guarantee" : "declared in advance"];
  cards.push(card(column.choices.length ? "Levels" : "Bounds", bounds, origin));
  at("column-cards").replaceChildren(...cards);
}

function showDescription({ facts, state }) {
  const { description } = facts;
  if (description.refused) {
    fillTable("description", [], []);
    at("description-reading").textContent = `No means or counts: ${description.refused}`;
    return;
  }
  const level = percent(Number(state.level));
  const three = (told) => within(told).map((value) => numberCell(value, 4));
  const days = (told) => within(told).map((value) => element("td", asDate(value), { "data-value": String(value) }));
  fillTable("description", ["column", "mean or share", `${level} from`, "to", "deviation", "from", "to", description.counted, "from", "to"],
    description.columns.map((each) => [
      nameElement(each.name),
      ...(each.dates ? days : three)(each.mean[state.kind][state.level]), ...three(each.deviation[state.level]), ...rowCells(each.count[state.level]),
    ]));
  const [rows, low, high] = description.rows[state.level];
  at("description-reading").textContent = [
    `${description.counted[0].toUpperCase()}${description.counted.slice(1)}: about ${rowsText(rows)} (${rowsText(low)} to ${rowsText(high)}). Intervals of means are for ${state.kind === "population" ? "the population" : "this table"}, the others for this table.`,
    ...(description.columns.some((each) => each.dates) ? ["Deviations of dates are in days."] : []),
    ...description.cautions[state.kind].map((text) => `Caution: ${text}.`),
  ].join(" ");
}

// Noise can take an estimate out of what is possible; its ends are within it.
const within = ([value, low, high]) => [Math.min(Math.max(value, low), high), low, high];

function rowCells(told) {
  return [0, 1, 2].map((k) => (told === null ? element("td") : element("td", rowsText(told[k]), { "data-value": String(told[k]) })));
}

function listenToColumns(session) {
  at("column").addEventListener("change", () => session.change({ column: at("column").value }));
}

export { showColumns, listenToColumns };
