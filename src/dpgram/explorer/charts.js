// The four pictures, drawn by plotly. Names reach it as escaped text: plotly reads a little HTML in labels.
(function (dpgram) {
  "use strict";

  const LONGEST = 26;
  const CONFIG = { displaylogo: false, displayModeBar: false, responsive: true, showTips: false, doubleClick: "reset" };

  // One line, short, isolated from the writing direction of its surroundings, and without markup.
  function label(name) {
    const line = name.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ");
    const characters = Array.from(line);
    const short = characters.length > LONGEST ? characters.slice(0, LONGEST - 1).join("") + "…" : line;
    const plain = short.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    return `\u2068${plain}\u2069`;
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function layout(extra) {
    const axis = {
      gridcolor: colour("grid"), zerolinecolor: colour("quiet"), linecolor: colour("line"), automargin: true,
      fixedrange: true,
    };
    const { xaxis, yaxis, ...others } = extra;
    return {
      paper_bgcolor: colour("ground"), plot_bgcolor: colour("ground"),
      font: { color: colour("ink"), family: "system-ui, sans-serif", size: 13 },
      margin: { l: 10, r: 10, t: 10, b: 40 },
      hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("ink") } },
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom" },
      dragmode: false,
      xaxis: { ...axis, ...xaxis },
      yaxis: { ...axis, ...yaxis },
      ...others,
    };
  }

  function draw(id, traces, extra, words) {
    const place = document.getElementById(id);
    place.setAttribute("aria-label", words);
    globalThis.Plotly.react(place, traces, layout(extra), CONFIG);
  }

  function clear(id) {
    const place = document.getElementById(id);
    globalThis.Plotly.purge(place);
    place.replaceChildren();
    place.removeAttribute("aria-label");
  }

  // Effects over each column's public range, so that one axis serves all: { name, fitted, estimate, low, high }.
  function coefficients(effects, target, level) {
    const places = effects.map((_, i) => i);
    const told = effects.filter((e) => e.low !== null && Number.isFinite(e.low) && Number.isFinite(e.high));
    const at = told.map((e) => effects.indexOf(e));
    const traces = [
      {
        type: "scatter", mode: "markers", name: `un-shrunken, ${level * 100}% interval`,
        x: told.map((e) => e.estimate), y: at,
        error_x: {
          type: "data", symmetric: false, array: told.map((e) => e.high - e.estimate),
          arrayminus: told.map((e) => e.estimate - e.low), color: colour("estimate"), thickness: 2.4, width: 0,
        },
        marker: { color: colour("estimate"), size: 9 },
        text: told.map((e) => label(e.name)), hovertemplate: "%{text}: %{x:.5g}<extra></extra>",
      },
      {
        type: "scatter", mode: "markers", name: "fitted", x: effects.map((e) => e.fitted), y: places,
        marker: { color: colour("fitted"), size: 11, symbol: "diamond-open", line: { width: 2 } },
        text: effects.map((e) => label(e.name)), hovertemplate: "%{text}, fitted: %{x:.5g}<extra></extra>",
      },
    ];
    const every = Math.ceil(effects.length / 60);
    const shown = places.filter((i) => i % every === 0);
    draw("coefficient-chart", traces, {
      height: 130 + Math.max(2, Math.min(effects.length, 60)) * 26,
      xaxis: { title: { text: `change of ${label(target)}` }, zeroline: true },
      yaxis: {
        tickvals: shown, ticktext: shown.map((i) => label(effects[i].name)), range: [effects.length - 0.4, -0.6],
        zeroline: false,
      },
    }, `Chart of ${effects.length} coefficients with intervals; the table below holds the same numbers.`);
  }

  function heatMap(names, values) {
    const places = names.map((_, i) => i);
    const numbers = values.map((row) => row.map((x) => (Number.isNaN(x) ? null : x)));
    const axis = (most) => {
      const ticks = places.filter((i) => i % Math.ceil(names.length / most) === 0);
      return { tickvals: ticks, ticktext: ticks.map((i) => label(names[i])), showgrid: false, zeroline: false };
    };
    const wide = document.getElementById("correlation-chart").clientWidth;
    draw("correlation-chart", [{
      type: "heatmap", z: numbers, x: places, y: places, zmin: -1, zmax: 1, hoverongaps: false,
      // Purple to orange: told apart with any colour vision; the middle is the ground, so dark stays dark.
      colorscale: [[0, "#5b3c99"], [0.25, "#a99ccb"], [0.5, colour("panel")], [0.75, "#f0a558"], [1, "#b35806"]],
      colorbar: { thickness: 12, title: { text: "" }, len: 0.9 },
      text: values.map((row, i) => row.map((_, j) => `${label(names[i])}<br>${label(names[j])}`)),
      hovertemplate: "%{text}<br>%{z:.3f}<extra></extra>",
      ...(names.length <= 12
        ? { texttemplate: "%{z:.2f}", textfont: { size: 11 } }
        : {}),
    }], {
      height: Math.min(160 + 30 * names.length, 720),
      plot_bgcolor: colour("empty"),
      xaxis: { ...axis(Math.max(2, Math.min(40, Math.floor((wide - 180) / 20)))), tickangle: -45 },
      yaxis: { ...axis(40), autorange: "reversed" },
    }, `Heat map of the correlations of ${names.length} columns; the table below lists the strongest.`);
  }

  function scree(found) {
    const shown = found.list.slice(0, 30);
    const bars = [["stable", true, "estimate"], ["mixed by the noise", false, "empty"]].map(([name, stable, tone]) => ({
      type: "bar", name, marker: { color: colour(tone) },
      x: shown.map((_, i) => i + 1).filter((i) => shown[i - 1].stable === stable),
      y: shown.filter((c) => c.stable === stable).map((c) => c.variance),
      hovertemplate: "component %{x}: %{y:.4g}<extra></extra>",
    }));
    const reach = {
      type: "scatter", mode: "lines", name: "reach of the noise", x: [0.5, shown.length + 0.5],
      y: [found.noiseReach, found.noiseReach], line: { color: colour("fitted"), dash: "dash" }, hoverinfo: "skip",
    };
    draw("scree-chart", [...bars, reach], {
      height: 380, barmode: "overlay",
      xaxis: { title: { text: "component" }, dtick: shown.length > 12 ? 5 : 1 },
      yaxis: { title: { text: "variance" }, rangemode: "tozero" },
    }, "Bar chart of the components' variances against the reach of the noise.");
  }

  function biplot(found) {
    const [first, second] = found.list;
    const arrows = found.names.map((name, i) => ({
      name,
      x: first.loadings[i] * Math.sqrt(Math.max(first.variance, 0)),
      y: second.loadings[i] * Math.sqrt(Math.max(second.variance, 0)),
    }));
    const longest = [...arrows].sort((a, b) => Math.hypot(b.x, b.y) - Math.hypot(a.x, a.y)).slice(0, 60);
    const limit = 1.35 * Math.max(...arrows.map((a) => Math.max(Math.abs(a.x), Math.abs(a.y))), 1e-12);
    const named = spaced(longest, limit);
    const title = (number, component) =>
      `component ${number} (${(100 * component.explained).toFixed(0)}%${component.stable ? "" : ", NOT stable"})`;
    draw("biplot-chart", [{
      type: "scatter", mode: "markers+text", x: longest.map((a) => a.x), y: longest.map((a) => a.y),
      marker: { color: colour("estimate"), size: 7 },
      text: longest.map((a) => (named.has(a) ? label(a.name) : "")),
      textposition: longest.map((a) => (a.y >= 0 ? "top center" : "bottom center")),
      hovertext: longest.map((a) => label(a.name)), hoverinfo: "text", showlegend: false, cliponaxis: false,
    }], {
      height: 380,
      shapes: longest.map((a) => ({ type: "line", x0: 0, y0: 0, x1: a.x, y1: a.y, line: { color: colour("estimate"), width: 1.4 } })),
      xaxis: { title: { text: title(1, first) }, range: [-limit, limit] },
      yaxis: { title: { text: title(2, second) }, range: [-limit, limit] },
    }, "Loadings of the columns on the first two components; the table below lists them.");
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

  dpgram.charts = { coefficients, heatMap, scree, biplot, clear };
})(globalThis.dpgram ??= {});
