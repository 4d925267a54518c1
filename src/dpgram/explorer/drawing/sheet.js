// A sheet of SVG to draw on: axes, legends, tooltips. Every text goes in as text.
import { distinct, number } from "./elements.js";
const SVG = "http://www.w3.org/2000/svg";
const LONGEST = 26;
const LINE = 20;
const TICK = 4;
const RIGHT_EDGE = 12;
const drawn = new Map();  // id → { width, redraw }: drawn again when the page gets another width
let observer = null;  // of that width, from the first picture on

// One line, short, and isolated from the writing direction of its surroundings.
function oneLine(name) {
  return name.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ");
}

function label(name, longest = LONGEST) {
  const line = oneLine(name);
  const characters = Array.from(line);
  const short = characters.length > longest ? characters.slice(0, longest - 1).join("") + "…" : line;
  return `\u2068${short}\u2069`;
}

function shape(kind, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.textContent = text;
  return made;
}

// `least` is the width below which the place scrolls instead of becoming illegible.
function draw(id, words, height, paint, least = 0) {
  observer ??= watchWidth();
  const place = document.getElementById(id);
  place.hidden = false;
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", words);
  const redraw = () => {
    const room = place.clientWidth;  // before the picture is there: with it, a scrollbar may take some
    const width = Math.max(room, least);
    const sheet = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    place.replaceChildren(sheet, tip);
    listen(place, sheet, tip);
    paint(sheet, width);
    drawn.set(id, { width: room, redraw });
  };
  redraw();
}

function clear(id) {
  drawn.delete(id);
  const place = document.getElementById(id);
  place.replaceChildren();
  place.hidden = true;
}

// A shape with a tooltip, `tipText`: a text, or a function of the place within it.
function withTip(made, tipText) {
  made.tipText = tipText;
  return made;
}

function listen(place, sheet, tip) {
  const show = (event) => {
    const { tipText } = event.target;
    const corner = place.getBoundingClientRect();
    const [x, y] = [event.clientX - corner.left, event.clientY - corner.top];
    tip.textContent = (typeof tipText === "function" ? tipText(x, y) : tipText) ?? "";
    tip.hidden = tip.textContent === "";
    // To the left of the pointer where there is more room.
    tip.style.left = x < corner.width / 2 ? `${x + 12}px` : "";
    tip.style.right = x < corner.width / 2 ? "" : `${corner.width - x + 12}px`;
    tip.style.top = `${y + 12}px`;
  };
  sheet.addEventListener("pointermove", show);
  sheet.addEventListener("pointerdown", show);
  sheet.addEventListener("pointerleave", () => { tip.hidden = true; });
}

function linear(low, high, from, to) {
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}

// Low and high with some room around them; zero is among them.
function range(values, room = 0.05) {
  const low = values.reduce((a, b) => Math.min(a, b), 0);
  const high = values.reduce((a, b) => Math.max(a, b), 0);
  if (low === high) return [-1, 1];
  const more = room * (high - low);
  return [low < 0 ? low - more : low, high > 0 ? high + more : high];
}

// Round numbers between low and high, about `count` of them.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

// Texts on the sheet that are cut until each takes at most `room`; how wide the widest is.
function fit(texts, room) {
  return texts.reduce((widest, text) => {
    while (text.getComputedTextLength() > room && Array.from(text.textContent).length > 4) {
      text.textContent = `\u2068${Array.from(text.textContent).slice(1, -3).join("")}…\u2069`;
    }
    return Math.max(widest, text.getComputedTextLength());
  }, 0);
}

// Names beside the rows of a plot, `places` being { name, y }, cut so that no two look alike; gives back where the
// plot may begin.
function rowNames(sheet, width, places, size = 13) {
  const room = Math.min(0.4 * width, 280);
  const letters = Math.max(Math.floor(room / (0.56 * size)), 8);
  const names = distinct(places.map(({ name }) => oneLine(name)), letters);
  const texts = places.map(({ name, y }, i) => withTip(shape("text", {
    y, "text-anchor": "end", "dominant-baseline": "central", "font-size": size, class: "named",
  }, `\u2068${names[i]}\u2069`), label(name, 200)));
  sheet.append(...texts);
  const left = Math.min(texts.reduce((widest, text) => Math.max(widest, text.getComputedTextLength()), 0), room + 20) + 2 * TICK;
  texts.forEach((text) => text.setAttribute("x", left - 2 * TICK));
  return left;
}

// Numbers below a plot, with lines through it.
function bottomAxis(sheet, box, [low, high], title, values = ticks(low, high, Math.max((box.right - box.left) / 90, 3))) {
  const x = linear(low, high, box.left, box.right);
  for (const value of values) {
    sheet.append(
      shape("line", { x1: x(value), x2: x(value), y1: box.top, y2: box.bottom, class: value === 0 ? "zero" : "grid" }),
      shape("text", { x: x(value), y: box.bottom + 16, "text-anchor": "middle" }, number(value)),
    );
  }
  axisTitle(sheet, box, title);
  return x;
}

// In as many lines as it needs; the sheet grows with them.
function axisTitle(sheet, box, title) {
  const [left, right] = [Math.max(0, box.left - 60), box.right + RIGHT_EDGE];
  const lines = [""];
  const probe = shape("text");
  sheet.append(probe);
  for (const word of title.split(" ")) {
    probe.textContent = `${lines.at(-1)} ${word}`.trim();
    if (probe.getComputedTextLength() > right - left && lines.at(-1) !== "") lines.push(word);
    else lines[lines.length - 1] = probe.textContent;
  }
  const half = probe.getComputedTextLength() / 2;  // of the one line, where there is one
  probe.remove();
  const middle = Math.min((box.left + box.right) / 2, right - half);
  lines.forEach((line, i) => {
    const text = shape("text", { y: box.bottom + 36 + 17 * i, "text-anchor": "middle", x: lines.length > 1 ? (left + right) / 2 : middle }, line);
    sheet.append(text);
  });
  const height = Number(sheet.getAttribute("height")) + 17 * (lines.length - 1);
  sheet.setAttribute("height", height);
  sheet.setAttribute("viewBox", `0 0 ${sheet.getAttribute("width")} ${height}`);
}

// Numbers to the left of a plot; gives back where the plot may begin, and how to place a number.
function leftAxis(sheet, { top, bottom, right }, [low, high], title) {
  const y = linear(low, high, bottom, top);
  const texts = ticks(low, high, (bottom - top) / 45).map((value) =>
    shape("text", { y: y(value), "text-anchor": "end", "dominant-baseline": "central", "data-value": value }, number(value)));
  sheet.append(...texts);
  const left = LINE + fit(texts, 0.4 * right) + 2 * TICK;
  for (const text of texts) {
    const value = Number(text.dataset.value);
    text.setAttribute("x", left - 2 * TICK);
    sheet.append(shape("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: value === 0 ? "zero" : "grid" }));
  }
  const middle = (top + bottom) / 2;
  sheet.append(shape("text", { x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, title));
  return [left, y];
}

// Marks with their meaning, in lines as wide as the sheet; gives back where the plot may begin.
function legend(sheet, width, entries) {
  let [x, y] = [8, LINE / 2];
  for (const { mark, name } of entries) {
    const text = shape("text", { "dominant-baseline": "central" }, name);
    sheet.append(text);
    const needed = 24 + text.getComputedTextLength();
    if (x > 8 && x + needed > width) [x, y] = [8, y + LINE];
    text.setAttribute("x", x + 20);
    text.setAttribute("y", y);
    sheet.append(mark(x + 8, y));
    x += needed + 16;
  }
  return y + LINE;
}

// The window gets another width, or the page a scrollbar, of which no window is told.
function watchWidth() {
  const observer = new ResizeObserver(() => {
    for (const [id, { width, redraw }] of drawn) {
      const { clientWidth } = document.getElementById(id);
      if (clientWidth !== 0 && clientWidth !== width) redraw();
    }
  });
  observer.observe(document.documentElement);
  return observer;
}

export { draw, clear, shape, withTip, oneLine, label, linear, range, rowNames, bottomAxis, leftAxis, legend };
