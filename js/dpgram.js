/**
 * Regressions, correlations and principal components from a differentially private release.
 *
 * The arithmetic is that of the explorer's page, from the very same files: `arithmetic/` is put beside this module
 * when the package is built (`make js`). A release comes as the JSON that `release.to_javascript(path)` in Python,
 * or `dpgram export release.dpgram.json -o release.json`, writes.
 *
 * @module dpgram
 */
import { associationCautions, components, correlation } from "./arithmetic/covariance.js";
import { buildDesign, calledAs, readColumns } from "./arithmetic/design.js";
import { infer, jointTest, quality } from "./arithmetic/inference.js";
import { momentsOf, Refusal } from "./arithmetic/moments.js";
import { predict } from "./arithmetic/prediction.js";
import { regress } from "./arithmetic/regression.js";

const DAY = 86_400_000;

/** A private release, and the questions to ask it. Every answer is post-processing: it costs no privacy. */
class Release {
  #moments;

  /** @param {object} facts what Python wrote, parsed. */
  constructor(facts) {
    this.#moments = momentsOf(facts);
  }

  /** The noisy number of rows in the matrix; null where nothing tells it. `counted` says what it is. */
  get rows() {
    return this.#moments.rows;
  }

  /** What `rows` is, in words: where long rows count less, it is their weight. */
  get counted() {
    return this.#moments.facts.counted.words;
  }

  /** Names of the declared columns, as features are asked for. */
  get columns() {
    return this.#moments.declared.map((column) => column.name);
  }

  /** Names of what can be predicted: numbers, truth values, and single levels such as `smoker=yes`. */
  get targets() {
    return this.#moments.columns.filter((column) => column.kind !== "constant").map((column) => column.name);
  }

  /** The noise of the matrix in encoded units; `added` is false where the error depends on the table. */
  get noise() {
    const { diagonalSd, offdiagonalSd, added } = this.#moments.noise;
    return { diagonalSd, offdiagonalSd, added };
  }

  /**
   * Fit `target` on the columns `on`, in original units; `intercept` is true where the release has a constant column.
   * Throws a `Refusal` where there is no such regression; `refusal` of the result says where there are no intervals.
   */
  regress(target, on, { method = "auto", alpha = null, intercept, kind = "population", level = 0.95, reference = {} } = {}) {
    const moments = this.#moments;
    if (intercept && !moments.hasConstant) {
      throw new Refusal("This release has no constant column, so no intercept can be fitted.");
    }
    const names = on.map((name) => this.#declared(name));
    const repeated = names.find((name, i) => names.indexOf(name) < i);
    if (repeated !== undefined) throw new Refusal(`The feature ${repeated} is named twice.`);
    const position = this.#position(target);
    if (names.includes(moments.columns[position].source)) {
      throw new Refusal(`${target} cannot be explained by itself.`);
    }
    for (const [name, wanted] of Object.entries(reference)) this.#checkLevel(name, wanted);
    const free = moments.hasConstant && intercept === false;
    // Without an intercept columns are taken as they are where the constant carries their centres, else about these.
    const design = buildDesign(free ? { ...moments, hasConstant: false } : moments, position, names, reference);
    if (free) design.base = 0;
    const fit = regress(moments, design, method, alpha);
    const inference = infer(moments, design, kind, level);
    const parts = { design, fit, inference, quality: quality(moments, design, inference) };
    return new Regression(moments, parts, free ? { ...design, intercept: true } : design);
  }

  /** Correlations of all columns but products and powers, with intervals; NaN where the noise hides a column. */
  correlation({ kind = "population", level = 0.95 } = {}) {
    const moments = this.#moments;
    const read = readColumns(moments);
    const places = read.map(({ position }) => position);
    const cautions = associationCautions(moments, "correlations", places, kind);
    const whole = correlation(moments, kind, level);
    const part = (cells) => places.map((i) => places.map((j) => cells[i - 1][j - 1]));
    const [estimate, low, high] = [whole.estimate, whole.low, whole.high].map(part);
    return { names: read.map(({ name }) => name), estimate, low, high, cautions };
  }

  /** Principal components of the columns `on` (by default all but products and powers), the largest variance first. */
  components(on = this.#read, { standardise = false } = {}) {
    const places = on.flatMap((name) => this.#moments.declared.find((column) => column.name === this.#declared(name)).positions);
    const cautions = associationCautions(this.#moments, "components", places);
    return { ...components(this.#moments, places, standardise), cautions };
  }

  // Names of the declared columns that are read from the table.
  get #read() {
    return this.#moments.declared.filter((column) => column.factors.length === 0).map((column) => column.name);
  }

  // A declared column by its name, or by that of the product or power it stands for: age:bmi, age^2.
  #declared(name) {
    const { declared, columns } = this.#moments;
    if (declared.some((column) => column.name === name)) return name;
    const stands = columns.find((column) => column.original_name === name && column.monomial.length > 0);
    if (stands === undefined) throw new Refusal(`There is no column ${name}.`);
    return stands.source;
  }

  #position(name) {
    const { columns } = this.#moments;
    const found = columns.findIndex(
      (column) => column.kind !== "constant" && (column.name === name || (column.monomial.length > 0 && column.original_name === name)),
    );
    if (found < 0) throw new Refusal(`${name} is no number, truth value or level of this release.`);
    return found;
  }

  #checkLevel(name, wanted) {
    const group = this.#moments.declared.find((column) => column.name === name && column.group);
    if (!group?.positions.some((i) => this.#moments.columns[i].level === wanted)) {
      throw new Refusal(`${name} has no level ${wanted}.`);
    }
  }
}

/** A fitted regression. `coefficients` are un-shrunken, to reason with; `fitted` predicts best. */
class Regression {
  #moments;
  #parts;
  #asRead;

  /** @param {object} asRead the design for new rows: whether their columns are taken about their centres. */
  constructor(moments, parts, asRead) {
    this.#moments = moments;
    this.#parts = parts;
    this.#asRead = asRead;
  }

  get names() {
    return this.#parts.design.names;
  }

  /** The coefficients of the method, shrunken as far as the noise demands. */
  get fitted() {
    return Array.from(this.#parts.fit.values);
  }

  /** How many coefficients the noise leaves to be fitted; null for other methods than `auto`. */
  get effectiveParameters() {
    return this.#parts.fit.effective;
  }

  /** Un-shrunken: { name, estimate, error, low, high, p }, null where the noise leaves no number. */
  get coefficients() {
    return this.#parts.inference.coefficients.map(({ name, estimate, error, low, high, p }) => ({ name, estimate, error, low, high, p }));
  }

  /** Why there are no intervals at all; null where there are. */
  get refusal() {
    return this.#parts.inference.refusal;
  }

  /** n − k for the population; null (the normal law) for the table. */
  get degrees() {
    return this.#parts.inference.degrees;
  }

  /** Whether errors allow for unequal variances: those of a declared model do. */
  get robust() {
    return this.#parts.inference.unequalVariance !== null;
  }

  /** What the intervals are for, in words. */
  get meaning() {
    return this.#parts.inference.meaning;
  }

  get cautions() {
    return [...this.#parts.fit.cautions, ...this.#parts.inference.cautions];
  }

  /** { estimate, error, low, high }, or { refused }. */
  get rSquared() {
    return this.#parts.quality.rSquared;
  }

  /** { estimate }, or { refused }. */
  get residualVariance() {
    return this.#parts.quality.residualVariance;
  }

  /** The covariance of the un-shrunken coefficients, row by row. */
  get covariance() {
    const size = this.names.length;
    const { cells } = this.#parts.inference.covarianceOf(this.names.map((_, i) => i));
    return this.names.map((_, i) => Array.from(cells.subarray(i * size, (i + 1) * size)));
  }

  /** Test that all coefficients of these columns are zero: { statistic, numerator, denominator, p } or { refused }. */
  test(...columns) {
    const { design, inference } = this.#parts;
    const places = design.terms
      .map((term, i) => ({ i, source: this.#moments.columns[term.position].source, name: term.name }))
      .filter(({ source, name }) => [source, name, calledAs(this.#moments, source)].some((each) => columns.includes(each)))
      .map(({ i }) => i);
    return jointTest(inference, design.names, places);
  }

  /**
   * For one person, { column: value }: numbers, levels, dates as Date or ISO text.
   * { fitted, mean, low, high, newLow, newHigh }, or { fitted, refused }.
   */
  predict(person) {
    const read = {};
    for (const column of this.#moments.declared) {
      if (column.name in person) read[column.name] = valueOf(column, person[column.name]);
    }
    return predict(this.#moments, { ...this.#parts, design: this.#asRead }, read);
  }
}

function valueOf(column, given) {
  if (column.dates && typeof given !== "number") return new Date(given).getTime() / DAY;
  if (column.kind !== "ordinal" || typeof given === "number") return given;
  const chosen = column.choices.findIndex((choice) => choice.includes(given));
  if (chosen < 0) throw new Refusal(`${column.name} has no level ${given}.`);
  return chosen;
}

/** The release in this JSON text. */
function read(text) {
  return new Release(JSON.parse(text));
}

export { read, Refusal, Regression, Release };
