// The controls at the side: they read and write the session's state.
import { possibleTargets, possibleFeatures } from "../arithmetic/design.js";
import { Refusal } from "../arithmetic/moments.js";
import { defaultPenalty } from "../arithmetic/regression.js";
import { usualFeatures } from "./address.js";
import { at, element, number, options, percent, shortened, tickBoxes } from "./elements.js";

function picked(name) {
  return document.querySelector(`input[name="${name}"]:checked`).value;
}

// Fills the controls from the state; the boxes of the features only when the target is another.
function fillQuestion(session) {
  const { moments, state } = session;
  if (at("target").options.length === 0) {
    options("target", possibleTargets(moments).map(({ position, name }) => [String(position), name]));
  }
  at("target").value = String(state.target);
  fillFeatures(session);
  fillReferences(session);
  for (const name of ["method", "kind"]) document.querySelector(`input[name="${name}"][value="${state[name]}"]`).checked = true;
  at("level").value = state.level;
  at("lambda").value = String(state.lambda);
  at("penalty").hidden = state.method !== "ridge";
  if (state.method === "ridge") tellPenalty(session);
  at("chosen").textContent = `${session.features().length} of ${at("features").querySelectorAll("input").length} chosen`;
  at("asked").textContent = inWords(session);
}

function tellPenalty(session) {
  let told = "–";
  try {
    told = number(session.penalty() ?? defaultPenalty(session.moments, session.design()), 4);
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
  }
  at("lambda-value").textContent = told;
  at("lambda").setAttribute("aria-valuetext", told);
}

// Columns of the table first, then what is computed from them.
function fillFeatures(session) {
  const { moments, state } = session;
  const features = possibleFeatures(moments, state.target);
  const key = String(moments.columns[state.target].source);
  const place = at("features");
  if (place.dataset.target === key) {
    for (const line of place.querySelectorAll("label")) line.querySelector("input").checked = state.chosen.has(line.dataset.column);
    return;
  }
  place.dataset.target = key;
  const boxes = (list) => tickBoxes(list.map((column) => column.name), state.chosen, (name, on) => choose(session, name, on));
  const derived = features.filter((column) => column.factors.length);
  place.replaceChildren(...boxes(features.filter((column) => !column.factors.length)));
  if (derived.length) place.append(element("p", "Interactions and powers", { class: "subhead" }), ...boxes(derived));
  filterFeatures();
}

// An interaction brings its columns along: without them its coefficient would mean something else.
function choose(session, name, on) {
  const { moments, state } = session;
  const chosen = new Set(state.chosen);
  const possible = new Set(possibleFeatures(moments, state.target).map((column) => column.name));
  if (on) {
    chosen.add(name);
    moments.declared.find((column) => column.name === name).factors.filter((each) => possible.has(each)).forEach((each) => chosen.add(each));
  } else chosen.delete(name);
  session.change({ chosen });
}

function filterFeatures() {
  const wanted = at("search").value.toLowerCase();
  let hits = 0;
  for (const line of at("features").querySelectorAll("label")) {
    line.hidden = !line.dataset.column.toLowerCase().includes(wanted);
    hits += line.hidden ? 0 : 1;
  }
  at("features").hidden = hits === 0;
  at("no-hit").hidden = hits > 0;
  at("no-hit").textContent = hits > 0 ? "" : `No column has “${shortened(wanted, 30)}” in its name. Clear the search to see all.`;
}

// All that are seen; those that a search hides stay as they are.
function chooseAll(session, on) {
  const chosen = new Set(session.state.chosen);
  for (const line of at("features").querySelectorAll("label")) {
    if (line.hidden) continue;
    if (on) chosen.add(line.dataset.column);
    else chosen.delete(line.dataset.column);
  }
  session.change({ chosen });
}

// Groups among the features, and behind their products.
function fillReferences(session) {
  const { moments, state } = session;
  const chosen = new Set(session.features());
  const inside = new Set(moments.declared.filter((column) => chosen.has(column.name)).flatMap((column) => [column.name, ...column.factors]));
  const groups = moments.declared.filter((column) => column.group && inside.has(column.name) && column.positions.length > 1);
  at("references-field").hidden = groups.length === 0;
  const key = JSON.stringify(groups.map((group) => group.name));
  const place = at("references");
  if (place.dataset.groups !== key) {
    place.dataset.groups = key;
    place.replaceChildren(...groups.map((group) => {
      const line = element("label", `${shortened(group.name, 60)} `, { dir: "auto" });
      const list = element("select");
      list.dataset.column = group.name;
      list.append(...group.positions.map((i) => moments.columns[i].level).map((level) =>
        element("option", shortened(level, 60) + (level === group.reference ? " (most frequent)" : ""), { value: level, dir: "auto" })));
      list.addEventListener("change", () => {
        const references = Object.assign(Object.create(null), session.state.references);
        if (list.value === group.reference) delete references[group.name];
        else references[group.name] = list.value;
        session.change({ references });
      });
      line.append(list);
      return line;
    }));
  }
  for (const list of place.querySelectorAll("select")) {
    const group = groups.find((each) => each.name === list.dataset.column);
    list.value = state.references[group.name] ?? group.reference;
  }
}

const METHODS = { auto: "noise-aware", ridge: "ridge", ols: "least squares" };

// The question in words: on a phone and on paper it stands for the controls.
function inWords(session) {
  const { state } = session;
  const intervals = `${percent(Number(state.level))} intervals for ${state.kind === "table" ? "this table" : "the population"}`;
  const on = session.features();
  const few = on.length > 3 ? `${on.length} columns` : on.map((name) => shortened(name, 24)).join(", ") || "nothing";
  const fit = `${shortened(session.targetName(), 40)} from ${few}`;
  if (["regression", "person"].includes(state.view)) return `${fit}; ${METHODS[state.method]}; ${intervals}`;
  if (state.view === "models") return `${percent(Number(state.level))} intervals`;
  if (["instruments", "trend"].includes(state.view)) return `${fit}; ${intervals}`;
  return ["components", "promise"].includes(state.view) ? "The question" : intervals;
}

function listenToQuestion(session) {
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  at("target").addEventListener("change", () => {
    const target = Number(at("target").value);
    const possible = new Set(possibleFeatures(session.moments, target).map((column) => column.name));
    const kept = [...session.state.chosen].filter((name) => possible.has(name));
    // A set as it was at the beginning is replaced by that of the new target.
    const usual = usualFeatures(session.moments, session.state.target);
    const same = usual.length === session.state.chosen.size && usual.every((name) => session.state.chosen.has(name));
    session.change({ target, chosen: new Set(same ? usualFeatures(session.moments, target) : kept) });
  });
  at("search").addEventListener("input", filterFeatures);
  at("all").addEventListener("click", () => chooseAll(session, true));
  at("none").addEventListener("click", () => chooseAll(session, false));
  for (const name of ["method", "kind"]) {
    for (const button of document.querySelectorAll(`input[name="${name}"]`)) {
      button.addEventListener("change", () => session.change({ [name]: picked(name) }));
    }
  }
  at("level").addEventListener("change", () => session.change({ level: at("level").value }));
  at("lambda").addEventListener("input", () => session.change({ lambda: Number(at("lambda").value) }));
  at("lambda-reset").addEventListener("click", () => session.change({ lambda: 0 }));
}

export { fillQuestion, listenToQuestion };
