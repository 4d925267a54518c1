// Marginal effects: how much the target changes with each column at a point, as in analysis/contrasts.py.
import { dot, apply } from "./algebra.js";
import { Refusal } from "./moments.js";
import { INTERCEPT } from "./design.js";

// One entry for each column, judged like a coefficient. `at` says a number or a level by declared column; what it
// does not say is at its mean. Levels are told against their reference level.
function marginalEffects(moments, design, inference, at = {}) {
  const terms = design.terms.map((term) => ({ ...term, monomial: monomialOf(moments, design, term) }));
  const about = terms.filter(({ monomial }) => monomial === null).map((term) => term.name);
  if (about.length) throw new Refusal(`No marginal effects: ${about.join(", ")} is told about the middle of its range only.`);
  const point = pointOf(moments, terms, at);
  const references = new Set(design.references.map(({ name, level }) => `${name}=${level}`));
  const names = [...new Set(terms.flatMap(({ monomial }) => monomial))].filter((name) => !references.has(name));
  return names.map((name) => {
    const own = moments.columns.find((column) => column.name === name);
    const reference = `${own.source}=${design.references.find((each) => each.name === own.source)?.level}`;
    const against = own.level !== null && references.has(reference) ? reference : null;
    const weights = Float64Array.from(terms, ({ monomial }) =>
      slope(monomial, name, point) - (against === null ? 0 : slope(monomial, against, point)));
    return inference.judge(name, inference.combined(weights));
  });
}

// Names of the encoded columns whose product a term is; null where it is none.
function monomialOf(moments, design, { name, position }) {
  if (name === INTERCEPT && design.intercept) return [];
  const column = moments.columns[position];
  if (column.monomial.length) return column.monomial;
  return column.kind === "product" || column.kind === "legendre" ? null : [column.name];
}

function slope(monomial, column, point) {
  const power = monomial.filter((name) => name === column).length;
  if (power === 0) return 0;
  const others = monomial.filter((name) => name !== column).reduce((all, name) => all * point[name], 1);
  return power * (power > 1 ? point[column] ** (power - 1) : 1) * others;
}

// A value for each column that is in a product or a power.
function pointOf(moments, terms, at) {
  const needed = new Set(terms.filter(({ monomial }) => monomial.length > 1).flatMap(({ monomial }) => monomial));
  return Object.fromEntries([...needed].map((name) => {
    const position = moments.columns.findIndex((column) => column.name === name);
    const { source, level } = moments.columns[position];
    if (!Object.hasOwn(at, source)) return [name, meanOf(moments, position)];
    return [name, level === null ? Number(at[source]) : Number(at[source] === level)];
  }));
}

// The noisy mean of an encoded column in original units.
function meanOf(moments, position) {
  if (moments.constantVector === null || !(moments.rows > 0)) throw new Refusal("The means of this release are unknown.");
  const vector = new Float64Array(moments.width);
  for (const [place, value] of moments.columns[position].parts) vector[place] = value;
  return dot(moments.project(vector), apply(moments.gram, moments.project(moments.constantVector))) / moments.rows;
}

export { marginalEffects, meanOf };
