// What is asked and what was answered: the state of the page, apart from where it is shown.
import { momentsOf, memory } from "../arithmetic/moments.js";
import { buildDesign, possibleFeatures } from "../arithmetic/design.js";
import { regress, defaultPenalty } from "../arithmetic/regression.js";
import { infer, quality } from "../arithmetic/inference.js";
import { fromAddress, toAddress } from "./address.js";

const KEPT = 50;  // answers that are kept, so that going back costs nothing

// `changed` is called after every change of the state.
function openSession(facts, address) {
  const moments = momentsOf(facts);
  const session = { facts, moments, state: fromAddress(moments, address), once: memory(), changed: () => {} };
  let [known, count] = [memory(), 0];
  const remembered = (key, compute) => {
    if ((count += 1) > KEPT) [known, count] = [memory(), 1];
    return known(JSON.stringify(key), compute);
  };

  session.remembered = remembered;
  session.change = (fields) => {
    Object.assign(session.state, fields);
    session.changed();
  };
  session.address = () => toAddress(moments, session.state);
  session.targetName = () => moments.columns[session.state.target].name;

  // In the order of the schema, as Python would list them.
  session.features = () => {
    const possible = new Set(possibleFeatures(moments, session.state.target).map((column) => column.name));
    return moments.declared.map((column) => column.name).filter((name) => session.state.chosen.has(name) && possible.has(name));
  };
  session.design = () => {
    const { target, references } = session.state;
    const on = session.features();
    return remembered(["design", target, on, references], () => buildDesign(moments, target, on, references));
  };
  // The slider is in powers of ten around the size of the noise; far left there is no penalty at all. In the middle
  // the penalty is left to the fit, which gives it the shape of the noise.
  session.penalty = () => {
    if (session.state.method !== "ridge" || session.state.lambda === 0) return null;
    const noise = defaultPenalty(moments, session.design()) || 1;
    return session.state.lambda <= -4 ? 0 : noise * 10 ** session.state.lambda;
  };
  // { design, fit, inference, quality, features }, or a Refusal is thrown.
  session.answer = () => {
    const { target, references, method, kind, level } = session.state;
    const features = session.features();
    const penalty = session.penalty();
    return remembered(["answer", target, features, references, method, penalty, kind, level], () => {
      const design = session.design();
      const fit = regress(moments, design, method, penalty);
      const inference = infer(moments, design, kind, Number(level));
      return { design, fit, inference, quality: quality(moments, design, inference), features };
    });
  };
  return session;
}

// What figures call a term or a column: the schema's label where it says one.
function labelOf(moments, { name, position }) {
  const column = moments.columns[position];
  return column.label === column.name ? name : column.label;
}

export { openSession, labelOf };
