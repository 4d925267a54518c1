// A prediction for one person: a form of the columns that matter, and what is expected with its intervals.
import { Refusal } from "../arithmetic/moments.js";
import { meanOf } from "../arithmetic/contrasts.js";
import { neededColumns, predict, withoutRows } from "../arithmetic/prediction.js";
import { cautionsOf, nothingChosen, remedies } from "./fit_panel.js";
import { DAY, asDate, at, card, element, notices, number, percent, shortened } from "./elements.js";

// Nobody in particular: noisy means, and the most frequent level.
function average(moments, column) {
  if (column.group) return column.reference;
  let mean = 0.5 * (column.bounds?.[0] ?? 0) + 0.5 * (column.bounds?.[1] ?? 1);
  try {
    mean = meanOf(moments, column.positions[0]);
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
  }
  if (column.choices.length) {
    return column.choices.map(([, value]) => value).reduce((best, value) => (Math.abs(value - mean) < Math.abs(best - mean) ? value : best));
  }
  const [low, high] = column.bounds ?? [-Infinity, Infinity];
  const within = Math.min(Math.max(mean, low), high);
  return column.dates ? Math.round(within) : Number(within.toPrecision(3));
}

function personOf(session, columns) {
  const found = Object.create(null);
  for (const column of columns) {
    const given = session.state.person[column.name];
    const allowed = column.choices.length === 0 ? Number.isFinite(given) : column.choices.some(([, value]) => value === given);
    found[column.name] = allowed ? given : average(session.moments, column);
  }
  return found;
}

// One field a column; it is made anew when the columns are others.
function fillForm(id, session, columns, person) {
  const form = at(id);
  const key = JSON.stringify(columns.map((column) => column.name));
  if (form.dataset.columns !== key) {
    form.dataset.columns = key;
    form.replaceChildren(...columns.map((column, i) => field(`${id}-${i}`, session, column)));
  }
  columns.forEach((column, i) => {
    const control = at(`${id}-${i}`);
    if (control === document.activeElement) return;
    const value = person[column.name];
    control.value = column.choices.length ? String(column.choices.findIndex(([, each]) => each === value)) : column.dates ? asDate(value) : String(value);
  });
}

function field(id, session, column) {
  const box = element("div", "", { class: "field" });
  const given = (value) => session.change({ person: Object.assign(Object.create(null), session.state.person, { [column.name]: value }) });
  box.append(element("label", shortened(column.label, 80), { for: id, dir: "auto" }));
  if (column.choices.length) {
    const list = element("select", "", { id });
    list.append(...column.choices.map(([text], k) => element("option", shortened(text, 60), { value: String(k), dir: "auto" })));
    list.addEventListener("change", () => given(column.choices[Number(list.value)][1]));
    box.append(list);
    return box;
  }
  const [low, high] = column.bounds;
  const input = element("input", "", column.dates ? { id, type: "date" } : { id, type: "number", step: "any" });
  const told = column.dates ? `${asDate(low)} to ${asDate(high)}` : `${number(low, 6)} to ${number(high, 6)}`;
  const hint = element("p", told, { class: "hint", id: `${id}-hint` });
  input.setAttribute("aria-describedby", hint.id);
  input.addEventListener("input", () => {
    const value = column.dates ? Date.parse(input.value) / DAY : input.value === "" ? NaN : Number(input.value);
    const outside = !Number.isFinite(value) || value < low || value > high;
    input.setAttribute("aria-invalid", String(outside));
    hint.textContent = outside ? `Outside the public range ${told}: the regression has seen nobody there.` : told;
    if (Number.isFinite(value)) given(value);
  });
  box.append(input, hint);
  return box;
}

function interval(low, high) {
  return Number.isFinite(low) && Number.isFinite(high) ? `${number(low, 4)} to ${number(high, 4)}` : "the noise leaves no interval";
}

function showPerson(session) {
  const { moments, state } = session;
  const target = moments.columns[state.target].title;
  at("person-title").textContent = `${shortened(target, 60)} of one person`;
  let answer = null;
  try {
    answer = session.answer();
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    notices("person-notices", [problem.message]);
    at("prediction").replaceChildren();
    at("person-form").replaceChildren();
    delete at("person-form").dataset.columns;
    for (const id of ["person-who", "person-reset"]) at(id).hidden = true;
    return null;
  }
  const columns = neededColumns(moments, answer.design);
  const person = personOf(session, columns);
  fillForm("person-form", session, columns, person);
  const found = predict(moments, answer, person);
  notices("person-notices", [
    ...nothingChosen(session, answer.features, "so everybody has the same prediction: the mean"),
    ...(found.refused ? [{
      text: `No intervals are given: ${found.refused}. The prediction is a best guess.`,
      remedies: withoutRows(answer.design, person) === null ? remedies(session, answer.inference) : [],
    }] : []),
    ...cautionsOf(answer),
  ]);
  for (const id of ["person-who", "person-reset"]) at(id).hidden = columns.length === 0;
  const level = percent(answer.inference.level);
  at("prediction").replaceChildren(
    card("Prediction", number(found.fitted, 5), "by the fitted coefficients", { id: "predicted", "data-value": String(found.fitted) }),
    ...(found.refused ? [] : [
      card("People like this, on average", number(found.mean, 5), `${level} interval ${interval(found.low, found.high)}`, {
        id: "expected", "data-value": String(found.mean), "data-low": String(found.low), "data-high": String(found.high),
      }),
      card("This one person", interval(found.newLow, found.newHigh), `${level} interval for one of them`, {
        id: "observed", "data-low": String(found.newLow), "data-high": String(found.newHigh),
      }),
    ]),
  );
  at("person-reading").textContent = "What is typed here stays in this page, and in its address if you copy it. "
    + "The release says as much about a person who was not in the table as about one who was.";
  return { target: session.targetName(), person: { ...person }, level: answer.inference.level, kind: answer.inference.kind, cautions: [...answer.fit.cautions, ...answer.inference.cautions], prediction: found };
}

function listenToPerson(session) {
  at("person-reset").addEventListener("click", () => session.change({ person: {} }));
  for (const id of ["person-form", "model-form"]) at(id).addEventListener("submit", (event) => event.preventDefault());
}

export { showPerson, listenToPerson, personOf, fillForm, interval };
