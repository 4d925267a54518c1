// The page: opens the session, shows one view at a time, keeps the address, saves files.
import { Refusal } from "../arithmetic/moments.js";
import { modelOf, asJson, asCsv, asPython } from "../arithmetic/downloads.js";
import { trendCsv } from "../arithmetic/trend.js";
import { VIEWS, fromAddress } from "./address.js";
import { openSession } from "./session.js";
import { fillQuestion, listenToQuestion } from "./question.js";
import { showFit, listenToFit } from "./fit_panel.js";
import { showPerson, listenToPerson } from "./person_panel.js";
import { showInstruments, listenToInstruments } from "./instruments_panel.js";
import { showModels, listenToModels } from "./models_panel.js";
import { showColumns, listenToColumns } from "./columns_panel.js";
import { showCorrelations, showComponents, listenToAssociation } from "./association_panel.js";
import { showTrend, trendOf, listenToTrend } from "./trend_panel.js";
import { at, element, number, shortened } from "./elements.js";

const SHOW = {
  regression: showFit, person: showPerson, instruments: showInstruments, models: showModels, columns: showColumns,
  correlations: showCorrelations, components: showComponents, trend: showTrend, promise: () => {},
};
const root = document.documentElement;
const facts = JSON.parse(at("data").textContent);
const session = openSession(facts, location.hash);

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

function show() {
  const started = performance.now();
  const { state } = session;
  if ((state.view === "models" && facts.models.length === 0) || (state.view === "trend" && !facts.series)) state.view = "regression";
  if (document.body.dataset.view !== state.view) shown(state.view);
  document.body.dataset.part = state.part;
  for (const view of VIEWS) {
    const tab = at(`tab-${view}`);
    tab.setAttribute("aria-selected", String(view === state.view));
    tab.tabIndex = view === state.view ? 0 : -1;
    at(view).hidden = view !== state.view;
  }
  fillQuestion(session);
  session.told = SHOW[state.view](session) ?? null;
  at("save-view").disabled = session.told === null;
  keepAddress();
  document.title = `${titleOf(state)} – ${shortened(facts.title || "a private release", 60)}`;
  root.dataset.milliseconds = String(performance.now() - started);
  root.dataset.answers = String(Number(root.dataset.answers ?? 0) + 1);
}

// On a narrow screen the row of tabs scrolls: the chosen one is to be seen.
function shown(view) {
  document.body.dataset.view = view;
  const tab = at(`tab-${view}`);
  at("views").scrollLeft = tab.offsetLeft - at("views").offsetLeft - 48;
}

function titleOf(state) {
  if (["regression", "person", "instruments", "trend"].includes(state.view)) return `${shortened(session.targetName(), 40)}: ${at(`tab-${state.view}`).textContent}`;
  return at(`tab-${state.view}`).textContent;
}

function keepAddress() {
  const address = session.address();
  if (location.hash.replace(/^#/, "") !== address) history.replaceState(null, "", address === "" ? location.pathname + location.search : `#${address}`);
}

function showRelease() {
  const { guarantee } = facts;
  if (facts.title !== "") at("title").textContent = shortened(facts.title, 120);
  else if (facts.series) at("title").textContent = "Explore a private series";
  at("headline").textContent =
    `${facts.series ? `${facts.series.labels.length} periods; ` : ""}${facts.declared.length} columns, protected with ε = ${number(guarantee.epsilon)} and δ = ${number(guarantee.delta)} (${guarantee.adjacency})`;
  at("guarantee").textContent = guarantee.words;
  at("library").textContent = facts.library;
  at("seeded").hidden = !facts.seeded;
  at("tab-models").hidden = facts.models.length === 0;
  at("tab-trend").hidden = !facts.series;
  at("facts").replaceChildren(...facts.facts.flatMap(([name, text]) => [element("dt", name), element("dd", text, { dir: "auto" })]));
}

// A name for a file that every system takes.
function fileName(...parts) {
  return parts.map((text) => text.normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 40)).filter(Boolean).join("-") || "release";
}

function save(name, kind, content) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([content], { type: kind }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function saveFit(ending, kind, form) {
  unlessRefused(() => save(`${fileName(facts.title || "release", session.targetName())}.${ending}`, kind, form(modelOf(session.moments, session.answer()))));
}

function saveTrend() {
  unlessRefused(() => save(`${fileName(facts.title || "release", session.targetName(), "trend")}.csv`, "text/csv", trendCsv(trendOf(session))));
}

function unlessRefused(task) {
  try {
    task();
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
  }
}

// All numbers of the view, with the question they answer. JSON has no word for what is not finite.
function saveView() {
  const { view } = session.state;
  const content = { release: facts.digest, view, question: session.address(), ...session.told };
  const plain = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value)
    : typeof value === "number" && !Number.isFinite(value) ? (Number.isNaN(value) ? null : String(value)) : value);
  save(`${fileName(facts.title || "release", view)}.json`, "application/json", `${JSON.stringify(content, plain, 2)}\n`);
}

function setTheme(theme) {
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  SHOW[session.state.view](session);
}

async function copyAddress() {
  const button = at("copy-address");
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copy it from the address line";
  }
  setTimeout(() => { button.textContent = said; }, 2500);
}

// Arrow keys go from tab to tab, as readers of screens expect.
function tabKeys(event) {
  const tabs = VIEWS.filter((view) => !at(`tab-${view}`).hidden);
  const place = tabs.indexOf(session.state.view);
  const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  const view = tabs[(next + tabs.length) % tabs.length];
  session.change({ view });
  at(`tab-${view}`).focus();
}

function listen() {
  listenToQuestion(session);
  listenToFit(session);
  listenToPerson(session);
  listenToInstruments(session);
  listenToModels(session);
  listenToColumns(session);
  listenToAssociation(session);
  listenToTrend(session);
  at("views").addEventListener("keydown", tabKeys);
  for (const view of VIEWS) {
    at(`tab-${view}`).addEventListener("click", () => session.change({ view }));
  }
  at("save-json").addEventListener("click", () => saveFit("json", "application/json", asJson));
  at("save-csv").addEventListener("click", () => saveFit("csv", "text/csv", asCsv));
  at("save-python").addEventListener("click", () => saveFit("py", "text/x-python", asPython));
  at("save-release").addEventListener("click", () => save(`${fileName(facts.title || "release")}.dpgram.json`, "application/json", facts.release));
  at("save-view").addEventListener("click", saveView);
  at("save-trend-json").addEventListener("click", saveView);
  at("save-trend-csv").addEventListener("click", saveTrend);
  at("copy-address").addEventListener("click", copyAddress);
  at("theme").addEventListener("change", () => setTheme(at("theme").value));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => SHOW[session.state.view](session));
  addEventListener("hashchange", () => {
    if (location.hash.replace(/^#/, "") === session.address()) return;
    session.state = fromAddress(session.moments, location.hash);
    show();
  });
  // Paper is white, whatever the screen is.
  addEventListener("beforeprint", () => setTheme("light"));
  addEventListener("afterprint", () => setTheme(at("theme").value));
}

session.changed = soon(show);
showRelease();
// On a phone the results come first; the question opens with one touch.
if (matchMedia("(max-width: 800px)").matches) at("question").open = false;
listen();
show();
root.dataset.ready = "true";
