// Pieces of a page: texts, numbers, tables, notices. Every text goes in as text, never as markup.
import { general } from "../arithmetic/inference.js";

const at = (id) => document.getElementById(id);

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

// Names cut to a length so that no two look alike: the same rule as `shortened` in figures.py.
function distinct(names, longest) {
  const ends = names.map((name) => shortened(name, longest));
  const seen = new Map();
  ends.forEach((short) => seen.set(short, (seen.get(short) ?? 0) + 1));
  const middles = names.map((name, i) => {
    if (seen.get(ends[i]) === 1 || ends[i] === name) return ends[i];
    const characters = Array.from(name);
    const head = Math.floor((longest - 1) / 3);
    return `${characters.slice(0, head).join("")}…${characters.slice(characters.length - (longest - 1 - head)).join("")}`;
  });
  return middles.map((short, i) => (middles.indexOf(short) === i ? short : `${i + 1}: ${shortened(short, longest - 5)}`));
}

// A name from the release: at most two lines, the whole of it on hovering.
function nameElement(name, meaning = name) {
  return element("span", name, { class: "name", title: meaning.slice(0, 1000), dir: "auto" });
}

function number(value, digits = 5) {
  if (value === null) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  // 10180, where Python would write 1.018e+04.
  const text = Math.abs(value) >= 10 ** digits && Math.abs(value) < 1e9 ? String(Math.round(value)) : general(value, digits);
  return text.replaceAll("-", "−");
}

const percent = (level) => `${Math.round(1000 * level) / 10}%`;

const DAY = 86_400_000;

const asDate = (days) => new Date(Math.round(days) * DAY).toISOString().slice(0, 10);

function numberCell(value, digits) {
  return element("td", number(value, digits), value === null ? {} : { "data-value": String(value) });
}

function pValue(value) {
  const text = value === null ? "–" : value < 1e-16 ? "<1e−16" : number(value, 2);
  return element("td", text, value === null ? {} : { "data-value": String(value) });
}

// Rows are lists of a heading (text or element) and cells; `heads` [] empties the table and hides it.
function fillTable(id, heads, rows) {
  const table = at(id);
  const head = element("tr");
  head.append(...heads.map((text) => (text === "" ? element("td") : element("th", text, { scope: "col" }))));
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows.map(([first, ...cells]) => {
    const line = element("tr");
    const heading = element("th", "", { scope: "row" });
    heading.append(first);
    line.append(heading, ...cells);
    return line;
  }));
  table.closest(".scroll").hidden = heads.length === 0 || rows.length === 0;
}

// { text, remedies: [[label, action]] } or a text; `good` and `warning` are the looks of it.
function notices(id, list, look = "warning") {
  at(id).replaceChildren(...list.map((each) => {
    const { text, remedies = [] } = typeof each === "string" ? { text: each } : each;
    const box = element("div", "", { class: `notice ${look}` });
    box.append(element("p", text, { dir: "auto" }));
    if (remedies.length) {
      const line = element("div", "", { class: "row" });
      line.append(...remedies.map(([label, action]) => {
        const button = element("button", label, { type: "button" });
        button.addEventListener("click", action);
        return button;
      }));
      box.append(line);
    }
    return box;
  }));
}

function card(title, value, detail, attributes = {}) {
  const box = element("div");
  const said = element("dd", value, attributes);
  if (detail) said.append(element("small", detail));
  box.append(element("dt", title), said);
  return box;
}

function options(id, list, chosen) {
  at(id).replaceChildren(...list.map(([value, text]) => element("option", shortened(text, 60), { value, dir: "auto" })));
  if (chosen !== undefined) at(id).value = chosen;
}

// A box for each name, ticked where `chosen` has it; `changed` is told the name and whether it is ticked.
function tickBoxes(names, chosen, changed) {
  return names.map((name) => {
    const line = element("label");
    const box = element("input", "", { type: "checkbox" });
    box.checked = chosen.has(name);
    box.addEventListener("change", () => changed(name, box.checked));
    line.append(box, nameElement(name));
    line.dataset.column = name;
    return line;
  });
}

export {
  at, element, shortened, distinct, nameElement, number, percent, numberCell, pValue, fillTable, notices, card, options,
  tickBoxes, asDate, DAY,
};
