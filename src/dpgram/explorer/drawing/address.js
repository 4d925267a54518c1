// A view as the part of the address behind the #: what is asked can be kept, sent and opened again.
import { possibleTargets, possibleFeatures } from "../arithmetic/design.js";

const VIEWS = ["regression", "person", "instruments", "models", "columns", "correlations", "components", "trend", "promise"];
const METHODS = ["auto", "ridge", "ols"];
const KINDS = ["population", "table"];
const LEVELS = ["0.9", "0.95", "0.99"];
const MANY_DECLARED = 40;  // more columns than this start with a few features instead of all
const FEW = 10;

function usualTarget(moments) {
  const targets = possibleTargets(moments);
  const numbers = targets.filter((column) => column.kind === "numeric");
  return (numbers.length ? numbers : targets).at(-1).position;
}

// At the start all features are chosen, or a few of very many.
function usualFeatures(moments, target) {
  const usual = possibleFeatures(moments, target).filter((column) => column.byDefault).map((column) => column.name);
  return usual.length > MANY_DECLARED ? usual.slice(0, FEW) : usual;
}

function initialState(moments) {
  const target = usualTarget(moments);
  return {
    view: moments.facts.series ? "trend" : "regression", target, chosen: new Set(usualFeatures(moments, target)), references: Object.create(null), method: "auto", lambda: 0,
    level: "0.95", kind: "population", part: "all", standardise: false, pair: [], column: null, model: 0,
    endogenous: null, instruments: new Set(), ivMethod: "2sls", person: {}, tested: new Set(),
    windows: "1", coefficient: null,
  };
}

const sameSet = (set, list) => set.size === list.length && list.every((name) => set.has(name));

// Only what differs from the beginning, so that addresses stay short.
function toAddress(moments, state) {
  const usual = initialState(moments);
  const parts = new URLSearchParams();
  const put = (key, value, other) => { if (value !== other) parts.set(key, String(value)); };
  put("view", state.view, usual.view);
  put("y", moments.columns[state.target].name, moments.columns[usual.target].name);
  if (!sameSet(state.chosen, usualFeatures(moments, state.target))) {
    for (const name of state.chosen) parts.append("x", name);
    if (state.chosen.size === 0) parts.set("x", "");
  }
  for (const key of ["method", "lambda", "level", "kind", "part", "standardise", "column", "model", "endogenous", "ivMethod", "windows", "coefficient"]) {
    put(key, state[key], usual[key]);
  }
  for (const [name, level] of Object.entries(state.references)) parts.append("reference", JSON.stringify([name, level]));
  for (const [name, value] of Object.entries(state.person)) parts.append("person", JSON.stringify([name, value]));
  for (const name of state.instruments) parts.append("instrument", name);
  for (const name of state.pair) parts.append("pair", name);
  return parts.toString();
}

// What an address says, as far as it can be true of this release; the rest is as at the beginning.
function fromAddress(moments, text) {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  const state = initialState(moments);
  const declared = new Set(moments.declared.map((column) => column.name));
  const one = (key, allowed) => { if (allowed.includes(parts.get(key))) state[key] = parts.get(key); };
  one("view", VIEWS);
  one("method", METHODS);
  one("kind", KINDS);
  one("level", LEVELS);
  one("part", ["all", "chosen"]);
  one("ivMethod", ["2sls", "liml"]);
  one("column", [...declared]);
  one("windows", [...(moments.facts.series?.lengths ?? []).map(String), "running"]);
  if (parts.has("coefficient")) state.coefficient = parts.get("coefficient");
  one("endogenous", [...declared]);
  state.standardise = parts.get("standardise") === "true";
  const lambda = Number(parts.get("lambda") ?? 0);
  if (lambda >= -4 && lambda <= 4) state.lambda = lambda;
  const model = Number(parts.get("model") ?? 0);
  if (Number.isInteger(model) && model >= 0 && model < moments.facts.models.length) state.model = model;
  const target = possibleTargets(moments).find((column) => column.name === parts.get("y"));
  if (target !== undefined) state.target = target.position;
  const possible = new Set(possibleFeatures(moments, state.target).map((column) => column.name));
  state.chosen = new Set(parts.has("x") ? parts.getAll("x").filter((name) => possible.has(name)) : usualFeatures(moments, state.target));
  state.instruments = new Set(parts.getAll("instrument").filter((name) => declared.has(name)));
  const names = new Set(moments.columns.map((column) => column.name));
  state.pair = parts.getAll("pair").filter((name) => names.has(name)).slice(0, 2);
  state.references = pairs(parts.getAll("reference"), declared);
  state.person = pairs(parts.getAll("person"), declared);
  return state;
}

// [name, value] in JSON, one each; an object without a prototype, since a column may be called __proto__.
function pairs(texts, declared) {
  const found = Object.create(null);
  for (const text of texts) {
    try {
      const [name, value] = JSON.parse(text);
      if (declared.has(name) && ["string", "number"].includes(typeof value)) found[name] = value;
    } catch {
      // An address that somebody cut: the rest of it may still be true.
    }
  }
  return found;
}

export { VIEWS, initialState, usualFeatures, toAddress, fromAddress };
