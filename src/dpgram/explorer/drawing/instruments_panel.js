// Instrumental variables: what the effect is of, by which instruments, and how strong these are.
import { Refusal } from "../arithmetic/moments.js";
import { INTERCEPT, span } from "../arithmetic/design.js";
import { instrumental } from "../arithmetic/instruments.js";
import * as charts from "./charts.js";
import { labelOf } from "./session.js";
import { at, card, fillTable, nameElement, notices, number, numberCell, options, percent, pValue, shortened, tickBoxes } from "./elements.js";

// Columns of the table that may be instrumented or be instruments.
function candidates({ moments, state }) {
  const own = moments.columns[state.target].source;
  return moments.declared.filter((column) => column.name !== own && column.factors.length === 0).map((column) => column.name);
}

function fillInstruments(session) {
  const { state } = session;
  const names = candidates(session);
  const chosen = names.includes(state.endogenous) ? state.endogenous : "";
  options("endogenous", [["", "choose a column"], ...names.map((name) => [name, name])], chosen);
  at("iv-method").value = state.ivMethod;
  const possible = names.filter((name) => name !== chosen);
  const ticked = new Set(possible.filter((name) => state.instruments.has(name)));
  const key = JSON.stringify(possible);
  const place = at("instrument-boxes");
  if (place.dataset.names !== key) {
    place.dataset.names = key;
    place.replaceChildren(...tickBoxes(possible, ticked, (name, on) => {
      const instruments = new Set(session.state.instruments);
      if (on) instruments.add(name);
      else instruments.delete(name);
      session.change({ instruments });
    }));
  }
  for (const line of place.children) line.querySelector("input").checked = ticked.has(line.dataset.column);
  return { endogenous: chosen, instruments: [...ticked] };
}

function showInstruments(session) {
  const { moments, state } = session;
  at("instruments-title").textContent = `${shortened(moments.columns[state.target].title, 60)} by instruments`;
  const { endogenous, instruments } = fillInstruments(session);
  const empty = (list, look) => {
    notices("iv-notices", list, look);
    at("stages").replaceChildren();
    charts.clear("iv-chart");
    fillTable("iv-coefficients", [], []);
    at("iv-reading").textContent = "";
  };
  if (endogenous === "" || instruments.length === 0) {
    empty([
      endogenous === ""
        ? "Choose the column whose effect is wanted, then its instruments. The other columns ticked at the side are held fixed."
        : `Tick at least one instrument for ${shortened(endogenous)}: a column that moves it, and acts on ${shortened(session.targetName())} in no other way.`,
    ], "");
    return null;
  }
  const used = new Set([endogenous, ...instruments]);
  // What is computed from the endogenous column is endogenous as well; what is computed from an instrument would
  // hold a part of what it moves fixed.
  const ticked = session.features().filter((name) => !used.has(name));
  const computed = new Set(moments.declared.filter((column) => column.factors.some((name) => used.has(name))).map((column) => column.name));
  const controls = ticked.filter((name) => !computed.has(name));
  try {
    const question = { target: state.target, endogenous: [endogenous], instruments, controls, method: state.ivMethod, kind: state.kind, level: Number(state.level), references: state.references };
    const { design, ...found } = instrumental(moments, question);
    showEstimates(session, { ...found, design }, controls, ticked.filter((name) => computed.has(name)));
    return { target: session.targetName(), instruments, controls, ...found };
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    empty([problem.message]);
    return null;
  }
}

function showEstimates(session, found, controls, leftOut) {
  const { moments, facts } = session;
  notices("iv-notices", [
    ...(found.refusal === null ? [] : [`No errors or intervals: ${found.refusal}.`]),
    // Python's word for the set that is shown on this page.
    ...found.cautions.map((text) => `Caution: ${text.replace("anderson_rubin()", "the Anderson–Rubin set")}.`),
  ]);
  at("stages").replaceChildren(
    ...found.stages.map((stage) => card(`First stage of ${shortened(stage.name, 30)}`, `F = ${number(stage.f, 4)}`,
      `against the noise alone ${number(stage.againstNoise, 4)}; below 10 is weak`,
      { class: "stage", "data-value": String(stage.f), "data-against-noise": String(stage.againstNoise) })),
    rubinCard(found),
  );
  const heads = ["", "estimate", "std. error", `${percent(found.level)} from`, "to", "p-value"];
  fillTable("iv-coefficients", found.refusal === null ? heads : [], found.design.terms.map((term, k) => {
    const c = found.coefficients[k];
    return [nameElement(term.name, labelOf(moments, term)), numberCell(c.estimate), numberCell(c.error, 3), numberCell(c.low), numberCell(c.high), pValue(c.p)];
  }));
  const effects = found.refusal !== null ? [] : found.design.terms.map((term, k) => ({ term, c: found.coefficients[k] }))
    .filter(({ term }) => term.name !== INTERCEPT)
    .map(({ term, c }) => {
      const size = span(moments, term);
      const scaled = (x) => (x === null ? null : x * size);
      return { name: labelOf(moments, term), fitted: null, estimate: scaled(c.estimate), low: scaled(c.low), high: scaled(c.high) };
    });
  if (effects.length) {
    charts.coefficients("iv-chart", effects, {
      axis: facts.conventions.effects.replace("{target}", shortened(moments.columns[found.design.target].title, 40)),
      marks: { estimate: `${found.method.toUpperCase()}, ${100 * found.level}% interval (${found.kind})` },
      wide: facts.conventions.wide,
    });
  } else charts.clear("iv-chart");
  at("iv-reading").textContent = [
    `Held fixed: ${controls.length ? controls.map((name) => shortened(name, 30)).slice(0, 12).join(", ") + (controls.length > 12 ? ` and ${controls.length - 12} more` : "") : "nothing"}.`,
    ...(leftOut.length ? [`Left out, since computed from the column whose effect is wanted or from an instrument: ${leftOut.map((name) => shortened(name, 30)).join(", ")}.`] : []),
    `Intervals are for ${found.meaning}.`,
    ...(found.assumptions.length ? [`Assumed: ${found.assumptions.join("; ")}.`] : []),
    "Whether an instrument is valid no table can tell.",
  ].join(" ");
}

function rubinCard({ andersonRubin: found, level }) {
  const title = `${percent(level)} Anderson–Rubin set of ${shortened(found.name, 30)}`;
  if (found.refused) return card(title, "–", found.refused, { id: "rubin" });
  const [first] = found.pieces;
  const told = found.pieces.length === 0
    ? ["empty", "no value agrees with all instruments"]
    : first[0] === -Infinity && first[1] === Infinity
      ? ["every value", "the instruments say nothing about it"]
      : [found.pieces.map(([low, high]) => `${number(low, 4)} to ${number(high, 4)}`).join(" or "), "holds however weak the instruments are"];
  return card(title, ...told, { id: "rubin", "data-pieces": JSON.stringify(found.pieces), "data-p": String(found.p) });
}

function listenToInstruments(session) {
  at("iv-form").addEventListener("submit", (event) => event.preventDefault());
  at("endogenous").addEventListener("change", () => session.change({ endogenous: at("endogenous").value || null }));
  at("iv-method").addEventListener("change", () => session.change({ ivMethod: at("iv-method").value }));
}

export { showInstruments, listenToInstruments };
