// What is said of a text that the model wrote, step by step (app/views/generate.py).

import { byteOf } from "../components/shared/weights.js";
import { partAt } from "./cache.js";
import { logSum } from "./packing.js";

const SHOWN = 10; // most probable tokens

/** Records the vectors that enter the first layer of a stack and that leave each: {depths, remove}. */
export function depthsOf(model, stack) {
  const { layers } = partAt(model, stack);
  const depths = [];
  const first = (x) => { depths.push(x); };
  const after = (x) => { depths.push(x); };
  layers[0].before.push(first);
  for (const layer of layers) layer.after.push(after);
  return { depths, remove: () => {
    layers[0].before.splice(layers[0].before.indexOf(first), 1);
    for (const layer of layers) layer.after.splice(layer.after.indexOf(after), 1);
  } };
}

/** For each step {best, rest, chosen, lens} as walk.js takes them. Row `first` of the
 * logits predicts the first token of `path`; `depths` are logits after each depth; `preceding`: the token
 * before each of `path`. */
export function stepsOf(logits, depths, first, path, preceding, labelOf) {
  const rows = ({ data, width }, i) => {
    const row = data.subarray((first + i) * width, (first + i + 1) * width);
    const total = logSum(row);
    return row.map((logit) => Math.exp(logit - total));
  };
  return path.map((chosen, i) => {
    const shares = rows(logits, i);
    const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, SHOWN);
    const best = [...new Set([...order, chosen])].map((id) => [id, labelOf(id, preceding[i]), shares[id], shares[id]]);
    const lens = depths.map((depth) => {
      const stopped = rows(depth, i);
      const id = stopped.indexOf(Math.max(...stopped));
      return [labelOf(id, preceding[i]), stopped[id]];
    });
    return { best, rest: Math.max(0, 1 - best.reduce((sum, [, , share]) => sum + share, 0)), chosen, lens };
  });
}

/** What the heads of a kind attend to at each step; without steps where its queries are another text.
 * `keys`: labels; `alone`: they are one text with what is written behind it. */
export function rowsOf(sites, weights, { keys, first, count, isPredicted, alone, name }) {
  const [{ query_side, key_side }] = sites;
  const layers = sites.map((site) => weights[site.name]);
  const at = (layer, head, row) => {
    const { shape: [, , queries, width], data } = layer;
    const start = (head * queries + row) * width;
    return Array.from(data.subarray(start, start + width), byteOf);
  };
  const steps = isPredicted(query_side) ? Array.from({ length: count }, (_, step) => layers.map((layer) =>
    Array.from({ length: layer.shape[1] }, (_, head) => at(layer, head, first + step)))) : [];
  const places = keys.map((_, i) => {
    if (!isPredicted(key_side) || (alone && i <= first)) return i;
    return i > first ? first - i : null;
  });
  return { kind: sites[0].kind, name, numbers: sites.map(({ layer }) => layer + 1), keys, places,
    weights: steps };
}

/** The candidates of a beam search, each with its text so far and the place of the one that it
 * continues among the candidates of the step before. `first`: the token before the
 * first candidates. */
export function beamsOf(steps, first, labelOf, textOf) {
  const all = steps.flat().filter(({ ended }) => ended);
  const best = Math.max(...all.map(({ score }) => score));
  let kept = [[null, []]];
  return steps.map((step) => {
    const following = [];
    const cells = step.map(({ parent, token, score, row, ended }, place) => {
      const [from, before] = kept[parent];
      const path = [...before, token];
      if (row >= 0) following[row] = [place, path];
      return { label: labelOf(token, before.at(-1) ?? first), score, fate: ended ? "ended" : row < 0 ? "left-out" : "grew",
        path: textOf(path), parent: from, winner: ended && score === best };
    });
    kept = following;
    return cells;
  });
}
