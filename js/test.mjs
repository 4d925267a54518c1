// Every number of the conformance vectors, to eight digits: node test.mjs VECTORS FACTS, where FACTS holds what
// release.to_javascript writes of each. With WRONG set, a reader that leaves a step out, which must fail.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { read, Refusal, Release } from "./dpgram.js";

const [vectors, folder] = process.argv.slice(2);
const DIGITS = 1e-8;
const WRONG = {
  "noise ignored": (facts) => ({
    ...facts,
    noise: { ...facts.noise, diagonal_sd: 0, offdiagonal_sd: 0, expected_norms: facts.noise.expected_norms.map(() => 0) },
  }),
  "sums of levels not used": (facts) => ({ ...facts, known_sums: [] }),
  "clip ignored": (facts) => ({ ...facts, sampling_factor: 1 }),
};
const change = WRONG[process.env.WRONG] ?? ((facts) => facts);

let compared = 0;
let largest = 0;
const problems = [];

function same(place, found, wanted, size = Math.abs(wanted)) {
  compared += 1;
  if (wanted === null || typeof wanted === "string") {
    const ends = { Inf: Infinity, "-Inf": -Infinity };
    if (found !== (wanted === null ? null : ends[wanted])) problems.push(`${place}: ${found} for ${wanted}`);
    return;
  }
  const apart = Math.abs(found - wanted) / Math.max(size, 1e-300);
  largest = Math.max(largest, apart);
  if (!(apart <= DIGITS)) problems.push(`${place}: ${found} for ${wanted}`);
}

function compareQuestion(place, release, question) {
  const { target, on, intercept, kind, level, reference } = question;
  let fit;
  try {
    fit = release.regress(target, on, { intercept, kind, level, reference });
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    if (question.refused === undefined) problems.push(`${place}: refused: ${problem.message}`);
    return;
  }
  if (question.refused !== undefined) {
    problems.push(`${place}: not refused`);
    return;
  }
  if (fit.names.join() !== question.names.join()) problems.push(`${place}: ${fit.names} for ${question.names}`);
  const most = Math.max(...question.fitted.map(Math.abs));
  fit.fitted.forEach((x, i) => same(`${place} fitted`, x, question.fitted[i], Math.max(Math.abs(question.fitted[i]), 1e-6 * most)));
  same(`${place} effective`, fit.effectiveParameters, question.effective_parameters);
  if ((fit.refusal === null) !== (question.refusal === null)) problems.push(`${place}: refusal ${fit.refusal}`);
  const people = question.fitted_predictions.map((_, i) =>
    Object.fromEntries(Object.entries(question.new_rows).map(([name, values]) => [name, values[i]])),
  );
  const predicted = people.map((person) => fit.predict(person));
  predicted.forEach((one, i) => same(`${place} predicted`, one.fitted, question.fitted_predictions[i]));
  if (question.refusal !== null) return;
  if (fit.robust !== (question.unequal_variance !== null)) problems.push(`${place}: robust`);
  fit.coefficients.forEach((one, i) => {
    const error = question.std_errors[i] ?? 0;
    same(`${place} estimate`, one.estimate, question.estimate[i]);
    same(`${place} error`, one.error, question.std_errors[i]);
    same(`${place} low`, one.low, question.low[i], Math.max(Math.abs(question.low[i]), error));
    same(`${place} high`, one.high, question.high[i], Math.max(Math.abs(question.high[i]), error));
    same(`${place} p`, one.p, question.p_values[i]);
  });
  fit.covariance.forEach((row, i) =>
    row.forEach((x, j) => {
      const wanted = question.covariance_of_estimates[i][j];
      if (wanted !== null) same(`${place} covariance`, x, wanted, question.std_errors[i] * question.std_errors[j]);
    }),
  );
  if (typeof question.r_squared === "number") same(`${place} R²`, fit.rSquared.estimate, question.r_squared);
  else if (fit.rSquared.refused === undefined) problems.push(`${place}: R² not refused`);
  same(`${place} s²`, fit.residualVariance.estimate, question.residual_variance);
  predicted.forEach((one, i) => {
    const { mean, mean_interval: interval, observation_interval: observation } = question.predictions;
    same(`${place} mean`, one.mean, mean[i]);
    [one.low, one.high].forEach((x, j) => same(`${place} interval`, x, interval[i][j]));
    [one.newLow, one.newHigh].forEach((x, j) => same(`${place} observation`, x, observation[i][j]));
  });
  for (const [name, [statistic, p]] of Object.entries(question.tests.columns ?? {})) {
    const test = fit.test(name);
    same(`${place} test of ${name}`, test.statistic, statistic);
    same(`${place} p of ${name}`, test.p, p);
  }
}

for (const file of readdirSync(vectors).filter((name) => name.endsWith(".expected.json")).sort()) {
  const wanted = JSON.parse(readFileSync(join(vectors, file), "utf-8"));
  const kind = file.replace(".expected.json", "");
  const facts = JSON.parse(readFileSync(join(folder, `${kind}.json`), "utf-8"));
  const release = new Release(change(facts));
  if (wanted.rows !== null) same(`${kind} rows`, release.rows, wanted.rows);
  same(`${kind} noise`, facts.noise.offdiagonal_sd, wanted.noise.offdiagonal_sd);
  wanted.questions.forEach((question, i) => compareQuestion(`${kind} ${i}`, release, question));
}
const [plain, adaptive] = ["plain", "adaptive"].map((kind) => read(readFileSync(join(folder, `${kind}.json`), "utf-8")));
if (plain.columns.length !== 12) problems.push("read");
if (plain.counted !== "noisy" || !adaptive.counted.includes("in weight: long rows count less")) problems.push("counted");
for (const [what, ask] of [["correlations", (release) => release.correlation()], ["components", (release) => release.components()]]) {
  if (!ask(adaptive).cautions[0]?.includes(`${what} are those of bounded influence`)) problems.push(`${what} without a caution`);
  if (ask(plain).cautions.length > 0) problems.push(`${what} of a plain release with a caution`);
}
console.log(JSON.stringify({ compared, largest, problems: problems.slice(0, 20), count: problems.length }));
process.exit(problems.length ? 1 : 0);
