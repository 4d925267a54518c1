// The fitted model as a value, and its three forms: JSON, CSV and Python code that needs nothing installed.
import { INTERCEPT } from "./design.js";

function modelOf(moments, { design, fit, inference, quality, features }) {
  const { facts } = moments;
  return {
    format: "dpgram-fit",
    version: 1,
    target: moments.columns[design.target].name,
    features,
    method: fit.method,
    alpha: fit.alpha,
    penalty: fit.penalty,
    effective_parameters: fit.effective,
    rows: moments.rows,
    intervals: {
      level: inference.level, kind: inference.kind, estimand: inference.meaning, assumptions: inference.assumptions,
      refusal: inference.refusal,
    },
    coefficients: design.terms.map((term, k) => ({
      ...termOf(moments, design, term),
      fitted: fit.values[k],
      estimate: inference.coefficients[k].estimate,
      std_error: inference.coefficients[k].error,
      low: inference.coefficients[k].low,
      high: inference.coefficients[k].high,
      p_value: inference.coefficients[k].p,
    })),
    base: design.base,
    within: within(moments.declared.find((column) => column.name === moments.columns[design.target].source)),
    references: design.references,
    rsquared: quality.rSquared,
    residual_variance: quality.residualVariance,
    cautions: [...fit.cautions, ...inference.cautions],
    release: {
      digest: facts.digest,
      epsilon: facts.guarantee.epsilon,
      delta: facts.guarantee.delta,
      adjacency: facts.guarantee.adjacency,
    },
  };
}

// What the coefficient multiplies, in original units.
function termOf(moments, design, term) {
  if (term.name === INTERCEPT && design.intercept) return { name: INTERCEPT, of: { kind: "constant" } };
  const column = moments.columns[term.position];
  const declared = moments.declared.find((other) => other.name === column.source);
  const numberOf = (name) => {
    const own = moments.columns.find((other) => other.name === name);
    const source = moments.declared.find((other) => other.name === own.source);
    if (own.kind === "level") return { column: own.source, reader: source.reader, level: own.level };
    const at = moments.columns[source.positions[0]];
    return { column: name, centre: at.centre, half_width: at.scale, reader: source.reader, within: within(source) };
  };
  if (column.kind === "level") return { name: term.name, of: { kind: "level", column: column.source, reader: declared.reader, level: column.level } };
  if (column.monomial.length) return { name: term.name, of: { kind: "monomial", factors: column.monomial.map(numberOf) } };
  if (column.kind === "product") return { name: term.name, of: { kind: "product", factors: column.factors.map(numberOf) } };
  if (column.kind === "legendre") {
    return { name: term.name, of: { kind: "legendre", degree: column.degree, ...numberOf(declared.factors[0]) } };
  }
  const shift = design.intercept ? 0 : column.centre;
  const of = { kind: "number", column: column.source, shift, reader: declared.reader, within: within(declared) };
  return { name: term.name, of };
}

// Where bounds were learnt, values outside were moved to them before the fit; new ones must be, too.
function within(declared) {
  return declared.learnt ? declared.bounds : null;
}

function asJson(model) {
  return JSON.stringify(model, null, 2) + "\n";
}

const FIELDS = ["fitted", "estimate", "std_error", "low", "high", "p_value"];

function asCsv(model) {
  const lines = [["name", ...FIELDS], ...model.coefficients.map((c) => [c.name, ...FIELDS.map((field) => c[field])])];
  return lines.map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function csvCell(value) {
  if (typeof value !== "string") return value === null ? "" : String(value);
  // A spreadsheet would run a text that begins like a formula.
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// A Python string literal in plain ASCII: nothing invisible, nothing that turns the direction of writing.
function literal(text) {
  const safe = Array.from(text, (character) => {
    const code = character.codePointAt(0);
    if (character === '"' || character === "\\") return `\\${character}`;
    if (code >= 0x20 && code < 0x7f) return character;
    return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
  });
  return `"${safe.join("")}"`;
}

function hex(code, digits) {
  return code.toString(16).padStart(digits, "0");
}

const clamped = (text, bounds) => (bounds ? `min(max(${text}, ${bounds[0]}), ${bounds[1]})` : text);
const cell = (of) => of.reader.join(`row[${literal(of.column)}]`);
const value = (of) => (of.level === undefined ? clamped(cell(of), of.within) : `(${cell(of)} == ${literal(of.level)})`);
const centred = (of) => (of.level === undefined ? `(${value(of)} - ${of.centre})` : value(of));

const TERMS = {
  constant: () => "",
  number: (of) => ` * ${of.shift ? `(${value(of)} - ${of.shift})` : value(of)}`,
  level: (of) => ` * (${cell(of)} == ${literal(of.level)})`,
  monomial: (of) => ` * ${of.factors.map(value).join(" * ")}`,
  product: (of) => ` * ${of.factors.map(centred).join(" * ")}`,
  legendre: (of) => ` * legendre(${of.degree}, ${centred(of)} / ${of.half_width})`,
};

// Written out: noisy counts decide about the default, and another release may have others.
function references(model) {
  const pairs = model.references.map(({ name, level }) => `${literal(name)}: ${literal(level)}`);
  return pairs.length ? `, reference={${pairs.join(", ")}}` : "";
}

function asPython(model) {
  const terms = model.coefficients.map((c) => `        + ${c.fitted}${TERMS[c.of.kind](c.of)}\n`);
  const kinds = new Set(model.coefficients.map((c) => c.of.kind));
  const readers = model.coefficients.flatMap((c) => [c.of, ...(c.of.factors ?? [])]).map((of) => of.reader?.[0] ?? "");
  const reads = (helper) => readers.some((reader) => reader.includes(`${helper}(`));
  const alpha = model.method === "ridge" && model.alpha !== null ? `, alpha=${model.alpha}` : "";
  const intercept = kinds.has("constant") ? "" : ", intercept=False";
  const parts = [
    '"""A linear regression fitted from a differentially private release with dpgram\'s explorer.\n\n' +
      `Release ${model.release.digest}\n` +
      `(epsilon = ${model.release.epsilon}, delta = ${model.release.delta}, ${model.release.adjacency}).\n` +
      '"""\n',
    `TARGET = ${literal(model.target)}\nFEATURES = [${model.features.map(literal).join(", ")}]\n`,
    reads("day") &&
      "def day(value):\n" +
        '    """A date as days since 1970-01-01; a number as it is."""\n' +
        '    return value.toordinal() - 719163 if hasattr(value, "toordinal") else float(value)\n',
    reads("text") &&
      "def text(value):\n" +
        '    """A level as it is written in the schema."""\n' +
        "    return str(value).lower() if isinstance(value, bool) else str(value)\n",
    kinds.has("legendre") &&
      "def legendre(degree, z):\n" +
        '    """The Legendre polynomial P_degree(z)."""\n' +
        "    before, value = 1.0, z\n" +
        "    for k in range(2, degree + 1):\n" +
        "        before, value = value, ((2 * k - 1) * z * value - (k - 1) * before) / k\n" +
        "    return value\n",
    "def predict(row):\n" +
      '    """The expected value of TARGET for one row, a mapping of column names to values."""\n' +
      `    found = (\n        ${model.base}\n${terms.join("")}    )\n` +
      `    return ${clamped("found", model.within)}\n`,
    "def refit(path):\n" +
      '    """The same fit, with intervals, from the release file at `path`; needs dpgram."""\n' +
      "    import dpgram\n\n" +
      "    release = dpgram.load(path)\n" +
      `    return release.regress(TARGET, FEATURES, method="${model.method}"${alpha}${intercept}${references(model)})\n`,
  ];
  return parts.filter(Boolean).join("\n\n");
}

export { modelOf, termOf, asJson, asCsv, asPython, csvCell };
