// The four pictures.
import { draw, clear, shape, withTip, label, number, linear, range, rowNames, bottomAxis, leftAxis, legend } from "./sheet.js";
// Purple to orange: told apart with any colour vision; the middle is the ground, so dark stays dark.
const TONES = [[-1, "#5b3c99"], [-0.5, "#a99ccb"], [0, null], [0.5, "#f0a558"], [1, "#b35806"]];
const RIGHT = 12;
const AXIS = 44;  // height of the numbers below a plot, and of their title

const dot = (x, y, radius = 4.5) => shape("circle", { cx: x, cy: y, r: radius, class: "estimate" });
const diamond = (x, y) => shape("path", { d: `M${x - 6},${y}l6,-6l6,6l-6,6z`, class: "fitted" });

// Effects over each column's public range, so that one axis serves all: { name, fitted, estimate, low, high }.
function coefficients(effects, target, level) {
  const every = Math.ceil(effects.length / 60);
  const height = 110 + Math.max(2, Math.min(effects.length, 60)) * 26;
  const words = `Chart of ${effects.length} coefficients with intervals; the table below holds the same numbers.`;
  draw("coefficient-chart", words, height, (sheet, width) => {
    const top = legend(sheet, width, [
      { mark: (x, y) => dot(x, y), name: `un-shrunken, ${level * 100}% interval` },
      { mark: diamond, name: "fitted" },
    ]);
    const box = { top, bottom: height - AXIS, right: width - RIGHT };
    const y = linear(-0.6, effects.length - 0.4, box.top, box.bottom);
    const named = effects.map(({ name }, i) => ({ name, y: y(i) })).filter((_, i) => i % every === 0);
    box.left = rowNames(sheet, width, named);
    const hasInterval = (e) => e.low !== null && Number.isFinite(e.low) && Number.isFinite(e.high);
    const someInterval = effects.some(hasInterval);
    const values = effects.flatMap((e) => (hasInterval(e) ? [e.fitted, e.estimate, e.low, e.high] : [e.fitted]));
    const x = bottomAxis(sheet, box, range(values), `change of ${label(target)}`);
    effects.forEach((e, i) => {
      if (hasInterval(e)) {
        const words = `${label(e.name)}: ${number(e.estimate)} (${number(e.low)} to ${number(e.high)})`;
        sheet.append(
          withTip(shape("line", { x1: x(e.low), x2: x(e.high), y1: y(i), y2: y(i), class: "interval" }), words),
          withTip(dot(x(e.estimate), y(i)), words),
        );
      }
      if (!hasInterval(e) && someInterval) sheet.append(openEnded(box, y(i), `${label(e.name)}: no interval, the noise leaves none`));
      sheet.append(withTip(diamond(x(e.fitted), y(i)), `${label(e.name)}, fitted: ${number(e.fitted)}`));
    });
  });
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

// The colour of a correlation; what is not known has one of its own.
function tones() {
  const style = getComputedStyle(document.documentElement);
  const [ground, empty] = ["panel", "empty"].map((name) => channels(style.getPropertyValue(`--${name}`).trim()));
  const stops = TONES.map(([value, colour]) => [value, colour === null ? ground : channels(colour)]);
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

// Empty where the interval from `low` to `high` includes zero.
function heatMap(names, estimates, low, high) {
  const empty = (i, j) => low[i][j] <= 0 && high[i][j] >= 0;
  const values = estimates.map((line, i) => line.map((value, j) => (empty(i, j) ? 0 : value)));
  const count = names.length;
  const height = Math.min(160 + 30 * count, 720);
  const words = `Heat map of the correlations of ${count} columns; the table below lists the strongest.`;
  const tone = tones();
  draw("correlation-chart", words, height, (sheet, width) => {
    const box = { top: 8, bottom: height - 120, right: width - 56 };
    const y = linear(-0.5, count - 0.5, box.top, box.bottom);
    const few = (most) => names.map((name, i) => ({ name, i })).filter(({ i }) => i % Math.ceil(count / most) === 0);
    box.left = rowNames(sheet, width, few(40).map(({ name, i }) => ({ name, y: y(i) })));
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
      return `${label(names[i])}\n${label(names[j])}\n${told}`;
    }));
    for (const { name, i } of few(Math.max(2, Math.min(40, Math.floor(wide / 20))))) {
      const place = `${x(i)} ${box.bottom + 12}`;
      sheet.append(shape("text", { transform: `translate(${place}) rotate(-45)`, "text-anchor": "end" }, label(name, 16)));
    }
    if (count <= 12 && wide / count >= 36) {
      values.forEach((row, i) => row.forEach((value, j) => {
        if (Number.isNaN(value) || empty(i, j)) return;
        const dark = tone(value).reduce((sum, channel, k) => sum + channel * [0.299, 0.587, 0.114][k], 0) < 140;
        sheet.append(shape("text", {
          x: x(j), y: y(i), "text-anchor": "middle", "dominant-baseline": "central", class: dark ? "on-dark" : "on-light",
        }, value.toFixed(2).replace("-", "−")));
      }));
    }
    scaleBar(sheet, { ...box, left: box.right + 14, right: box.right + 26 }, tone);
  });
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
    const limits = range([...shown.map((c) => c.variance), found.noiseReach]);
    const [left, y] = leftAxis(sheet, box, limits, "variance");
    const every = shown.length > 12 ? 5 : 1;
    const numbers = shown.map((_, i) => i + 1).filter((i) => i % every === 0);
    const x = bottomAxis(sheet, { ...box, left }, [0.5, shown.length + 0.5], "component", numbers);
    shown.forEach((c, i) => {
      sheet.append(withTip(shape("rect", {
        x: x(i + 0.6), width: x(i + 1.4) - x(i + 0.6), y: Math.min(y(c.variance), y(0)), height: Math.abs(y(c.variance) - y(0)),
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
  const named = spaced(longest, limit);
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
        withTip(dot(x(arrow.x), y(arrow.y), 3.5), label(arrow.name)),
      );
    }
    for (const arrow of named) {
      const text = shape("text", { y: y(arrow.y) + (arrow.y >= 0 ? -8 : 18), "text-anchor": "middle" }, label(arrow.name));
      sheet.append(text);
      const half = text.getComputedTextLength() / 2;
      text.setAttribute("x", Math.min(Math.max(x(arrow.x), left + half), width - half));
    }
  });
}

// The arrows whose names do not run into one that is longer.
function spaced(arrows, limit) {
  const taken = [];
  for (const arrow of arrows) {
    const crowded = taken.some((t) => Math.abs(t.x - arrow.x) < 0.55 * limit && Math.abs(t.y - arrow.y) < 0.11 * limit);
    if (!crowded && taken.length < 12) taken.push(arrow);
  }
  return new Set(taken);
}

export { coefficients, heatMap, scree, biplot, clear };
