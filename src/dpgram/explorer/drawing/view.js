// The page: reads the controls, asks the arithmetic, fills the panels.
import { momentsOf, Refusal } from "../arithmetic/moments.js";
import { possibleTargets, possibleFeatures, buildDesign } from "../arithmetic/design.js";
import { regress, defaultPenalty } from "../arithmetic/regression.js";
import { infer, quality } from "../arithmetic/inference.js";
import { correlation, components } from "../arithmetic/covariance.js";
import { modelOf, asJson, asCsv, asPython } from "../arithmetic/downloads.js";
import * as panels from "./panels.js";

const MANY_DECLARED = 40;  // more columns than this start with a few features instead of all
const FEW = 10;
const HEAVY = 400;  // encoded columns from which correlations and components wait to be asked for

const at = (id) => document.getElementById(id);
const facts = JSON.parse(at("data").textContent);
const moments = momentsOf(facts);
const state = { target: 0, chosen: new Set(), design: null, answer: null, correlation: null };

// One click, one answer: several changes within a frame are answered together.
function soon(task) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      task();
    });
  };
}

function fillTargets() {
  const targets = possibleTargets(moments);
  at("target").replaceChildren(...targets.map(({ position, name }) =>
    panels.element("option", panels.shortened(name, 60), { value: String(position), dir: "auto" }),
  ));
  const numbers = targets.filter((column) => column.kind === "numeric");
  state.target = (numbers.length ? numbers : targets).at(-1).position;
  at("target").value = String(state.target);
}

// A new target keeps the features that may stay; at the start all are chosen, or a few of very many.
function fillFeatures(first) {
  const features = possibleFeatures(moments, state.target);
  const names = new Set(features.map((column) => column.name));
  if (first) {
    const usual = features.filter((column) => column.byDefault).map((column) => column.name);
    state.chosen = new Set(usual.length > MANY_DECLARED ? usual.slice(0, FEW) : usual);
  } else {
    state.chosen = new Set([...state.chosen].filter((name) => names.has(name)));
  }
  at("features").replaceChildren(...features.map((column) => {
    const line = panels.element("label");
    const box = panels.element("input", "", { type: "checkbox" });
    box.checked = state.chosen.has(column.name);
    box.addEventListener("change", () => {
      if (box.checked) state.chosen.add(column.name);
      else state.chosen.delete(column.name);
      askAgain();
    });
    line.append(box, panels.nameElement(column.name));
    line.dataset.column = column.name;
    return line;
  }));
  filterFeatures();
}

function filterFeatures() {
  const wanted = at("search").value.toLowerCase();
  for (const line of at("features").children) {
    line.hidden = !line.dataset.column.toLowerCase().includes(wanted);
  }
}

function chooseAll(on) {
  for (const line of at("features").children) {
    if (line.hidden) continue;
    line.querySelector("input").checked = on;
    if (on) state.chosen.add(line.dataset.column);
    else state.chosen.delete(line.dataset.column);
  }
  askAgain();
}

function picked(name) {
  return document.querySelector(`input[name="${name}"]:checked`).value;
}

// In the order of the schema, as Python would list them.
function features() {
  return moments.declared.map((column) => column.name).filter((name) => state.chosen.has(name));
}

function answerRegression() {
  const started = performance.now();
  const on = features();
  at("chosen").textContent = `${on.length} of ${at("features").children.length} chosen`;
  try {
    const question = JSON.stringify([state.target, on]);
    if (state.design?.question !== question) {
      state.design = { question, value: buildDesign(moments, state.target, on) };
    }
    const design = state.design.value;
    const method = picked("method");
    at("penalty").hidden = method !== "ridge";
    const fit = regress(moments, design, method, method === "ridge" ? penalty(design) : null);
    const inference = infer(moments, design, picked("kind"), Number(at("level").value));
    state.answer = { design, fit, inference, quality: quality(moments, design, inference), features: on };
    document.documentElement.dataset.milliseconds = String(performance.now() - started);
    panels.showRegression(moments, state.answer);
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    state.answer = null;
    panels.showRefusedRegression(problem.message);
  }
  for (const id of ["save-json", "save-csv", "save-python"]) at(id).disabled = state.answer === null;
  document.documentElement.dataset.answers = String(Number(document.documentElement.dataset.answers ?? 0) + 1);
}

// The slider is in powers of ten around the size of the noise; far left there is no penalty at all.
function penalty(design) {
  const noise = defaultPenalty(moments, design) || 1;
  const place = Number(at("lambda").value);
  const value = place === Number(at("lambda").min) ? 0 : noise * 10 ** place;
  at("lambda-value").textContent = panels.number(value, 4);
  at("lambda").setAttribute("aria-valuetext", panels.number(value, 4));
  return value;
}

const askAgain = soon(() => {
  answerRegression();
  const changed = state.correlation !== null && state.correlation.asked !== askedOfCorrelations();
  if (changed || at("correlation-columns").value === "chosen") showCorrelation();
  if (at("pca-columns").value === "chosen") showComponents();
});

// Positions of all encoded columns, or of the target and the features.
function positions(choice) {
  const all = possibleTargets(moments).map((column) => column.position);
  if (choice === "all") return all;
  const sources = new Set([moments.columns[state.target].source, ...state.chosen]);
  return all.filter((position) => sources.has(moments.columns[position].source));
}

function refusing(part, charts, table, compute) {
  try {
    const show = compute();
    panels.showNotice(part, null, charts, table);
    show();
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    panels.showNotice(part, problem.message, charts, table);
  }
}

const askedOfCorrelations = () => `${picked("kind")} ${at("level").value}`;

function showCorrelation() {
  refusing("correlation", ["correlation-chart"], "correlations", () => {
    const asked = askedOfCorrelations();
    if (state.correlation?.asked !== asked) {
      state.correlation = { asked, ...correlation(moments, picked("kind"), Number(at("level").value)) };
    }
    const shown = positions(at("correlation-columns").value);
    const part = (name) => shown.map((i) => shown.map((j) => state.correlation[name][i - 1][j - 1]));
    const found = { values: part("estimate"), low: part("low"), high: part("high") };
    const told = { kind: picked("kind"), level: Number(at("level").value) };
    return () => panels.showCorrelation(moments, shown.map((i) => moments.columns[i]), found, told);
  });
}

function showComponents() {
  refusing("pca", ["scree-chart", "biplot-chart"], "components", () => {
    const found = components(moments, positions(at("pca-columns").value), at("standardise").checked);
    return () => panels.showComponents(found);
  });
}

function save(name, kind, content) {
  const link = panels.element("a");
  link.href = URL.createObjectURL(new Blob([content], { type: kind }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function saveFit(name, kind, form) {
  if (state.answer !== null) save(name, kind, form(modelOf(moments, state.answer)));
}

function redraw() {
  if (state.answer !== null) panels.showRegression(moments, state.answer);
  if (state.correlation !== null) showCorrelation();
  if (at("components").tBodies[0].rows.length) showComponents();
}

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  redraw();
}

function listen() {
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  at("target").addEventListener("change", () => {
    state.target = Number(at("target").value);
    fillFeatures(false);
    askAgain();
  });
  at("search").addEventListener("input", filterFeatures);
  at("all").addEventListener("click", () => chooseAll(true));
  at("none").addEventListener("click", () => chooseAll(false));
  for (const name of ["method", "kind"]) {
    for (const button of document.querySelectorAll(`input[name="${name}"]`)) button.addEventListener("change", askAgain);
  }
  at("level").addEventListener("change", askAgain);
  at("lambda").addEventListener("input", askAgain);
  at("lambda-reset").addEventListener("click", () => {
    at("lambda").value = "0";
    askAgain();
  });
  at("correlation-columns").addEventListener("change", showCorrelation);
  at("correlation-start").addEventListener("click", showCorrelation);
  for (const id of ["pca-columns", "standardise"]) at(id).addEventListener("change", showComponents);
  at("pca-start").addEventListener("click", showComponents);
  at("save-json").addEventListener("click", () => saveFit("fit.json", "application/json", asJson));
  at("save-csv").addEventListener("click", () => saveFit("fit.csv", "text/csv", asCsv));
  at("save-python").addEventListener("click", () => saveFit("fit.py", "text/x-python", asPython));
  at("save-release").addEventListener("click", () => save("release.dpgram.json", "application/json", facts.release));
  at("theme").addEventListener("change", () => setTheme(at("theme").value));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is white, whatever the screen is.
  addEventListener("beforeprint", () => setTheme("light"));
  addEventListener("afterprint", () => setTheme(at("theme").value));
}

panels.showRelease(facts);
fillTargets();
fillFeatures(true);
listen();
answerRegression();
if (moments.width > HEAVY) {
  at("correlation-start").hidden = false;
  at("pca-start").hidden = false;
} else {
  // After the first picture of the regression is on the screen.
  setTimeout(() => {
    showCorrelation();
    showComponents();
    document.documentElement.dataset.ready = "true";
  }, 0);
}
