// The pictures of effects, correlations and columns. Colours, scales and words are those of figures.py.
import {
  draw, clear, shape, withTip, oneLine, label, linear, range, rowNames, bottomAxis, leftAxis, legend,
} from "./sheet.js";
import { distinct, number } from "./elements.js";

const RIGHT = 12;
const AXIS = 44;  // height of the numbers below a plot, and of their title
const MOST_NAMES = 12;  // in the picture of two components
const MOST_ROWS = 40;  // effects that are shown before somebody asks for all

const dot = (x, y, radius = 4.5) => shape("circle", { cx: x, cy: y, r: radius, class: "estimate" });
const diamond = (x, y) => shape("path", { d: `M${x - 6},${y}l6,-6l6,6l-6,6z`, class: "fitted" });

const hasEnds = (e) => e.low !== null && Number.isFinite(e.low) && Number.isFinite(e.high);

// As far as the axis goes: a few intervals that are much wider than the others must not flatten these.
// The same rule as `limits` in figures.py.
function limits(effects, wide) {
  const drawn = effects.filter(hasEnds);
  const reaches = drawn.map((e) => Math.max(Math.abs(e.low), Math.abs(e.high))).sort((a, b) => a - b);
  const clear = (e) => hasEnds(e) && (e.low > 0 || e.high < 0);
  const centres = effects.flatMap((e) => [e.fitted, clear(e) ? e.estimate : null]).filter((x) => x !== null && Number.isFinite(x));
  const [middle, other] = [reaches[Math.floor(reaches.length / 2)], reaches[Math.ceil(reaches.length / 2) - 1]];
  const most = Math.max(reaches.length ? 0.5 * wide * (middle + other) : 0, ...centres.map((x) => 1.25 * Math.abs(x)));
  const within = (x) => Math.min(Math.max(x, -most), most);
  return range([...centres, ...drawn.flatMap((e) => [within(e.low), within(e.high)])]);
}

// Effects { name, fitted (or null), estimate, low, high } on one axis. `marks` names what the marks are.
function coefficients(id, effects, { axis, marks, wide, whole = false }) {
  const shown = whole ? effects : strongest(effects, MOST_ROWS);
  const pitch = shown.length > 20 ? 20 : 26;
  const height = 110 + Math.max(2, shown.length) * pitch;
  const words = `Chart of ${shown.length} effects with intervals; a table on this page holds the numbers.`;
  draw(id, words, height, (sheet, width) => {
    const top = legend(sheet, width, [
      ...(shown.some(hasEnds) ? [{ mark: (x, y) => dot(x, y), name: marks.estimate }] : []),
      ...(shown.some((e) => e.fitted !== null) ? [{ mark: diamond, name: marks.fitted }] : []),
    ]);
    const box = { top, bottom: height - AXIS, right: width - RIGHT };
    const y = linear(-0.6, shown.length - 0.4, box.top, box.bottom);
    box.left = rowNames(sheet, width, shown.map(({ name }, i) => ({ name, y: y(i) })), pitch < 26 ? 12 : 13);
    const ends = limits(shown, wide);
    const x = bottomAxis(sheet, box, ends, axis);
    const someInterval = shown.some(hasEnds);
    shown.forEach((e, i) => {
      const name = label(e.name, 200);
      if (hasEnds(e)) {
        const told = `${name}: ${number(e.estimate)} (${number(e.low)} to ${number(e.high)})`;
        sheet.append(...intervalMarks(e, y(i), x, ends, told));
        if (e.estimate >= ends[0] && e.estimate <= ends[1]) sheet.append(withTip(dot(x(e.estimate), y(i)), told));
      } else if (someInterval) sheet.append(openEnded(box, y(i), `${name}: no interval, the noise leaves none`));
      if (e.fitted !== null) sheet.append(withTip(diamond(x(e.fitted), y(i)), `${name}, fitted: ${number(e.fitted)}`));
    });
  });
  return shown.length;
}

// Those that stand clearest of zero, in their own order.
function strongest(effects, most) {
  if (effects.length <= most) return effects;
  const size = (e) => (hasEnds(e) ? Math.abs(e.estimate) / Math.max(e.high - e.low, 1e-300) : Math.abs(e.fitted ?? 0) * 1e-12);
  const kept = new Set([...effects].sort((a, b) => size(b) - size(a)).slice(0, most));
  return effects.filter((e) => kept.has(e));
}

// A line, with an arrow and the number at an end that lies beyond the axis.
function intervalMarks(e, y, x, [least, most], told) {
  const [from, to] = [Math.max(e.low, least), Math.min(e.high, most)];
  const parts = [withTip(shape("line", { x1: x(from), x2: x(to), y1: y, y2: y, class: "interval" }), told)];
  for (const [cut, end, at, way] of [[e.low < least, e.low, least, 1], [e.high > most, e.high, most, -1]]) {
    if (!cut) continue;
    parts.push(
      withTip(shape("path", { d: `M${x(at) + 7 * way},${y - 5}L${x(at)},${y}L${x(at) + 7 * way},${y + 5}`, class: "cut" }), told),
      shape("text", { x: x(at) + 10 * way, y: y - 6, class: "small", "text-anchor": way > 0 ? "start" : "end" }, number(end, 3)),
    );
  }
  return parts;
}

// A line with arrows over the whole width, where a bare mark would read as perfect precision.
function openEnded(box, y, words) {
  const [left, right] = [box.left + 2, box.right - 2];
  const path = `M${left + 6},${y - 4}L${left},${y}L${left + 6},${y + 4}M${left},${y}H${right}M${right - 6},${y - 4}L${right},${y}L${right - 6},${y + 4}`;
  return withTip(shape("path", { d: path, class: "open" }), words);
}

function channels(colour) {
  return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
}

const brightness = (tone) => tone.reduce((sum, channel, k) => sum + channel * [0.299, 0.587, 0.114][k], 0);

// The colour of a correlation; what is not known has one of its own. The middle is the ground, and what stands out
// most from it is at the ends: the deep shade on a light ground, the light one on a dark ground.
function tones(colours) {
  const style = getComputedStyle(document.documentElement);
  const [ground, empty] = ["panel", "empty"].map((name) => channels(style.getPropertyValue(`--${name}`).trim()));
  const half = (colours.length - 1) / 2;
  const shades = brightness(ground) < 140 ? [...colours.slice(0, half).reverse(), null, ...colours.slice(half + 1).reverse()] : colours;
  const stops = shades.map((colour, i) => [(i - half) / half, i === half ? ground : channels(colour)]);
  return (value) => {
    if (Number.isNaN(value)) return empty;
    const next = stops.findIndex(([place]) => place >= Math.min(value, 1));
    if (next <= 0) return stops[0][1];
    const [[from, before], [to, after]] = [stops[next - 1], stops[next]];
    return before.map((channel, i) => Math.round(channel + ((value - from) / (to - from)) * (after[i] - channel)));
  };
}

// One pixel per cell, made large by the browser: two hundred columns are forty thousand cells.
function pixels(values, tone) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = values.length;
  const ink = canvas.getContext("2d");
  const picture = ink.createImageData(values.length, values.length);
  values.forEach((row, i) => row.forEach((value, j) => {
    picture.data.set([...tone(value), 255], 4 * (i * values.length + j));
  }));
  ink.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}

// Empty where the interval from `low` to `high` includes zero. Every row and column keeps its name: with many of
// them cells do not become smaller than letters, and the place scrolls.
function heatMap(names, estimates, low, high, colours) {
  const empty = (i, j) => low[i][j] <= 0 && high[i][j] >= 0;
  const values = estimates.map((line, i) => line.map((value, j) => (empty(i, j) ? 0 : value)));
  const count = names.length;
  const size = count > 30 ? 10 : 12;
  const pitch = count > 30 ? 11 : Math.max(Math.min(560 / count, 56), 22);
  const turned = distinct(names.map(oneLine), 22);
  const below = 24 + 0.6 * size * Math.max(...turned.map((name) => Array.from(name).length)) * 0.75;
  const height = 16 + pitch * count + below;
  const words = `Heat map of the correlations of ${count} columns; the table below lists the strongest.`;
  const tone = tones(colours);
  draw("correlation-chart", words, height, (sheet, width) => {
    const box = { top: 8, bottom: 8 + pitch * count };
    const y = linear(-0.5, count - 0.5, box.top, box.bottom);
    box.left = rowNames(sheet, Math.min(width, 640), names.map((name, i) => ({ name, y: y(i) })), size);
    box.right = Math.min(width - 62, box.left + 1.6 * pitch * count);
    const x = linear(-0.5, count - 0.5, box.left, box.right);
    const [wide, tall] = [box.right - box.left, box.bottom - box.top];
    const cells = shape("image", {
      x: box.left, y: box.top, width: wide, height: tall, preserveAspectRatio: "none", class: "cells", href: pixels(values, tone),
    });
    sheet.append(withTip(cells, (atX, atY) => {
      const i = Math.min(Math.max(Math.floor(((atY - box.top) / tall) * count), 0), count - 1);
      const j = Math.min(Math.max(Math.floor(((atX - box.left) / wide) * count), 0), count - 1);
      const value = estimates[i][j];
      const told = Number.isNaN(value)
        ? "hidden by the noise"
        : `${number(value, 3)}\n${number(low[i][j], 3)} to ${number(high[i][j], 3)}`;
      return `${label(names[i], 60)}\n${label(names[j], 60)}\n${told}`;
    }));
    turned.forEach((name, i) => {
      sheet.append(shape("text", {
        transform: `translate(${x(i)} ${box.bottom + 12}) rotate(-50)`, "text-anchor": "end", "font-size": size,
      }, `\u2068${name}\u2069`));
    });
    if (count <= 14 && wide / count >= 34) {
      values.forEach((row, i) => row.forEach((value, j) => {
        if (Number.isNaN(value) || empty(i, j)) return;
        const dark = brightness(tone(value)) < 140;
        sheet.append(shape("text", {
          x: x(j), y: y(i), "text-anchor": "middle", "dominant-baseline": "central", class: dark ? "on-dark" : "on-light",
        }, value.toFixed(2).replace("-", "−")));
      }));
    }
    const bar = Math.min(box.bottom, box.top + 320);
    scaleBar(sheet, { top: box.top, bottom: bar, left: box.right + 14, right: box.right + 26 }, tone);
  }, (count > 30 ? 240 : 190) + Math.min(pitch, 18) * count);
}

function scaleBar(sheet, box, tone) {
  const steps = 64;
  const y = linear(-1, 1, box.bottom, box.top);
  for (let k = 0; k < steps; k += 1) {
    const value = -1 + (2 * k + 1) / steps;
    sheet.append(shape("rect", {
      x: box.left, width: box.right - box.left, y: y(value + 1 / steps), height: (box.bottom - box.top) / steps + 0.5,
      fill: `rgb(${tone(value).join(" ")})`,
    }));
  }
  for (const value of [-1, -0.5, 0, 0.5, 1]) {
    sheet.append(shape("text", { x: box.right + 4, y: y(value), "dominant-baseline": "central", class: "small" }, number(value)));
  }
}

function scree(found) {
  const shown = found.list.slice(0, 30);
  const height = 380;
  draw("scree-chart", "Bar chart of the components' variances against the reach of the noise.", height, (sheet, width) => {
    const square = (kind) => (x, y) => shape("rect", { x: x - 6, y: y - 6, width: 12, height: 12, class: kind });
    const dashes = (x1, x2, y) => shape("line", { x1, x2, y1: y, y2: y, class: "reach" });
    const top = legend(sheet, width, [
      { mark: square("stable"), name: "stable" },
      { mark: square("mixed"), name: "mixed by the noise" },
      { mark: (x, y) => dashes(x - 8, x + 8, y), name: "reach of the noise" },
    ]);
    const box = { top, bottom: height - AXIS, right: width - RIGHT };
    const [left, y] = leftAxis(sheet, box, range([...shown.map((c) => c.variance), found.noiseReach]), "variance");
    const every = shown.length > 12 ? 5 : 1;
    const numbers = shown.map((_, i) => i + 1).filter((i) => i === 1 || i % every === 0);
    const x = bottomAxis(sheet, { ...box, left }, [0.5, shown.length + 0.5], "component", numbers);
    shown.forEach((c, i) => {
      sheet.append(withTip(shape("rect", {
        x: x(i + 0.65), width: x(i + 1.35) - x(i + 0.65), y: Math.min(y(c.variance), y(0)), height: Math.abs(y(c.variance) - y(0)),
        class: c.stable ? "stable" : "mixed",
      }), `component ${i + 1}: ${number(c.variance, 4)}`));
    });
    sheet.append(dashes(left, box.right, y(found.noiseReach)));
  });
}

function biplot(found) {
  const [first, second] = found.list;
  const arrows = found.labels.map((name, i) => ({
    name,
    x: first.loadings[i] * Math.sqrt(Math.max(first.variance, 0)),
    y: second.loadings[i] * Math.sqrt(Math.max(second.variance, 0)),
  }));
  const longest = [...arrows].sort((a, b) => Math.hypot(b.x, b.y) - Math.hypot(a.x, a.y)).slice(0, 60);
  const limit = 1.35 * Math.max(...arrows.map((a) => Math.max(Math.abs(a.x), Math.abs(a.y))), 1e-12);
  const short = distinct(longest.map(({ name }) => oneLine(name)), 24);
  const title = (number, component) =>
    `component ${number} (${(100 * component.explained).toFixed(0)}%${component.stable ? "" : ", NOT stable"})`;
  const height = 380;
  draw("biplot-chart", "Loadings of the columns on the first two components; the table below lists them.", height, (sheet, width) => {
    const box = { top: 8, bottom: height - AXIS, right: width - RIGHT };
    const [left, y] = leftAxis(sheet, box, [-limit, limit], title(2, second));
    const x = bottomAxis(sheet, { ...box, left }, [-limit, limit], title(1, first));
    for (const arrow of longest) {
      sheet.append(
        shape("line", { x1: x(0), y1: y(0), x2: x(arrow.x), y2: y(arrow.y), class: "arrow" }),
        withTip(dot(x(arrow.x), y(arrow.y), 3.5), label(arrow.name, 60)),
      );
    }
    // The names that do not run into one of a longer arrow.
    const taken = [];
    longest.forEach((arrow, i) => {
      const high = y(arrow.y) + (arrow.y >= 0 ? -8 : 18);
      const text = shape("text", { y: high, "text-anchor": "middle" }, `\u2068${short[i]}\u2069`);
      sheet.append(text);
      const half = text.getComputedTextLength() / 2;
      const middle = Math.min(Math.max(x(arrow.x), left + half), width - half);
      text.setAttribute("x", middle);
      const crowded = taken.some((t) => Math.abs(t.middle - middle) < t.half + half + 4 && Math.abs(t.high - high) < 16);
      if (crowded || taken.length === MOST_NAMES) text.remove();
      else taken.push({ middle, half, high });
    });
  });
}

// Noisy counts { name, count, reach, lost }, upright for numbers and lying for levels: `reach` to either side of a
// bar holds its count with the confidence that was asked for; what was lost stands apart, in grey.
function counts(id, bars, { axis, upright, words }) {
  const named = (bar) => `${label(bar.name, 60)}: ${Math.round(bar.count).toLocaleString("en")} ± ${Math.round(bar.reach).toLocaleString("en")} rows`;
  const limit = range(bars.flatMap(({ count, reach }) => [count - reach, count + reach]));
  const look = (bar) => (bar.lost ? "mixed" : "stable");
  if (!upright) {
    const height = 60 + 24 * bars.length;
    draw(id, words, height, (sheet, width) => {
      const box = { top: 8, bottom: height - AXIS, right: width - RIGHT };
      const y = linear(-0.5, bars.length - 0.5, box.top, box.bottom);
      box.left = rowNames(sheet, width, bars.map(({ name }, i) => ({ name, y: y(i) })));
      const x = bottomAxis(sheet, box, limit, "rows");
      bars.forEach((bar, i) => {
        const [from, to] = [Math.min(x(0), x(bar.count)), Math.max(x(0), x(bar.count))];
        sheet.append(
          withTip(shape("rect", { x: from, width: to - from, y: y(i) - 8, height: 16, class: look(bar) }), named(bar)),
          shape("line", { x1: x(bar.count - bar.reach), x2: x(bar.count + bar.reach), y1: y(i), y2: y(i), class: "whisker" }),
        );
      });
    });
    return;
  }
  const height = 340;
  draw(id, words, height, (sheet, width) => {
    const box = { top: 12, bottom: height - AXIS - 20, right: width - RIGHT };
    const [left, y] = leftAxis(sheet, box, limit, "rows");
    // Where the names of all bars do not fit, as many as do.
    const longest = Math.max(...bars.filter((bar) => !bar.lost).map((bar) => Math.min(bar.name.length, 12)));
    const every = Math.ceil((bars.length * Math.max(52, 6.6 * longest + 8)) / Math.max(width - left, 1));
    const x = linear(-0.6, bars.length - 0.4, left, box.right);
    const pitch = x(1) - x(0);
    const half = 0.4 * pitch;
    const beforeLost = (i) => bars.slice(i + 1, i + 1 + Math.floor(40 / pitch)).some((bar) => bar.lost);
    bars.forEach((bar, i) => {
      sheet.append(
        withTip(shape("rect", {
          x: x(i) - half, width: 2 * half, y: Math.min(y(bar.count), y(0)), height: Math.abs(y(bar.count) - y(0)), class: look(bar),
        }), named(bar)),
        shape("line", { x1: x(i), x2: x(i), y1: y(bar.count - bar.reach), y2: y(bar.count + bar.reach), class: "whisker" }),
      );
      if (bar.lost || (i % every === 0 && !beforeLost(i))) {
        // What was lost has long names beside each other: the steeper, the closer the bars.
        const place = bar.lost
          ? { transform: `translate(${x(i) + 4} ${box.bottom + 12}) rotate(${pitch < 22 ? -55 : -35})`, "text-anchor": "end" }
          : { x: x(i), y: box.bottom + 16, "text-anchor": "middle" };
        sheet.append(shape("text", { ...place, class: "small" }, label(bar.name, 12)));
      }
    });
    sheet.append(shape("text", { x: 0.5 * (left + box.right), y: box.bottom + 56, "text-anchor": "middle" }, axis));
  });
}

// Estimates over time { window, short, place, estimate, trusted, low, high } with intervals, and the straight line through
// them where there is one.
function overTime(id, rows, { axis, slope, mark, wide }) {
  const height = 340;
  const drawn = rows.filter(({ trusted }) => trusted);
  const words = `Chart of ${axis} in ${rows.length} windows with intervals; the table below holds the numbers.`;
  const cross = (x, y) => shape("path", { d: `M${x - 4},${y - 4}l8,8m0,-8l-8,8`, class: "absent" });
  draw(id, words, height, (sheet, width) => {
    const top = legend(sheet, width, [
      ...(drawn.length ? [{ mark: (x, y) => dot(x, y), name: mark }] : []),
      ...(slope === null ? [] : [{ mark: (x, y) => shape("line", { x1: x - 8, x2: x + 8, y1: y, y2: y, class: "straight" }), name: `straight line: ${number(slope.estimate, 3)} in one period` }]),
      ...(drawn.length < rows.length ? [{ mark: cross, name: "no interval: the noise leaves none" }] : []),
    ]);
    const box = { top: top + 8, bottom: height - 40, right: width - RIGHT };
    const ends = spread(drawn, wide);
    const [left, y] = leftAxis(sheet, box, ends, axis);
    const [first, last] = [rows[0].place, rows.at(-1).place];
    const room = 0.5 * Math.max((last - first) / Math.max(rows.length - 1, 1), 1);
    const x = linear(first - room, last + room, left, box.right);
    periodNames(sheet, rows, x, box, left);
    if (slope !== null) {
      const line = straight(rows, slope.estimate);
      sheet.append(shape("line", { x1: x(first), x2: x(last), y1: y(line(first)), y2: y(line(last)), class: "straight" }));
    }
    for (const each of rows) {
      const name = label(each.window, 60);
      if (!each.trusted) {
        sheet.append(withTip(cross(x(each.place), box.bottom - 8), `${name}: no interval, the noise leaves none`));
        continue;
      }
      const told = `${name}: ${number(each.estimate)} (${number(each.low)} to ${number(each.high)})`;
      const [low, high] = [Math.max(each.low, ends[0]), Math.min(each.high, ends[1])];
      sheet.append(withTip(shape("line", { x1: x(each.place), x2: x(each.place), y1: y(low), y2: y(high), class: "interval" }), told));
      for (const [cut, end, way] of [[each.low < ends[0], ends[0], -1], [each.high > ends[1], ends[1], 1]]) {
        if (cut) sheet.append(withTip(shape("path", { d: `M${x(each.place) - 5},${y(end) + 7 * way}L${x(each.place)},${y(end)}L${x(each.place) + 5},${y(end) + 7 * way}`, class: "cut" }), told));
      }
      if (each.estimate >= ends[0] && each.estimate <= ends[1]) sheet.append(withTip(dot(x(each.place), y(each.estimate), rows.length > 40 ? 3 : 4.5), told));
    }
  });
}

// From the lowest to the highest end, but for intervals that are much wider than most.
function spread(drawn, wide) {
  if (drawn.length === 0) return [-1, 1];
  const middle = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
  const centre = middle(drawn.map(({ estimate }) => estimate));
  const most = wide * middle(drawn.map(({ low, high }) => Math.max(high - centre, centre - low)));
  const within = (value) => (Number.isFinite(most) ? Math.min(Math.max(value, centre - most), centre + most) : value);
  const ends = drawn.flatMap(({ low, high }) => [within(low), within(high)]).filter(Number.isFinite);
  const [least, largest] = [Math.min(...ends), Math.max(...ends)];
  if (!(largest > least)) return [centre - 1, centre + 1];
  return [least - 0.05 * (largest - least), largest + 0.05 * (largest - least)];
}

// Through the mean of windows that count by their precision, as in the figure of Python.
function straight(rows, slope) {
  const all = rows.reduce((sum, { error }) => sum + error ** -2, 0);
  const mean = (key) => rows.reduce((sum, each) => sum + each[key] / each.error ** 2, 0) / all;
  const [place, value] = [mean("place"), mean("estimate")];
  return (at) => value + slope * (at - place);
}

// As many names of windows as fit beside each other.
function periodNames(sheet, rows, x, box, left) {
  const texts = rows.map((each) => shape("text", { x: x(each.place), y: box.bottom + 18, "text-anchor": "middle" }, label(each.short, 20)));
  sheet.append(...texts);
  const widest = Math.max(...texts.map((text) => text.getComputedTextLength())) + 12;
  const every = Math.ceil((rows.length * widest) / Math.max(box.right - left, 1));
  texts.forEach((text, i) => {
    if (i % every !== 0) {
      text.remove();
      return;
    }
    // None is cut off at the edge.
    const half = 0.5 * text.getComputedTextLength();
    text.setAttribute("x", Math.min(x(rows[i].place), box.right + RIGHT - half));
  });
}

export { coefficients, heatMap, scree, biplot, counts, overTime, clear, limits, MOST_ROWS };
