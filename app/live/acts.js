// What is changed in the model, as the stage shows it and as its acts change it.

import { shortName } from "../components/shared/names.js";
import { VERBS, hidden, paintedCell, parse, toggled, weighed, written, writtenEntry } from "./changes.js";

const MOST_NAMED = 2; // tokens by a chip
const BLUR = { kind: "all", layer: null, head: null, verb: "temperature", value: 4 };

/** The changes of a line; none of one that cannot be read, of which the worker says why. */
export const changesOf = (line) => {
  try {
    return parse(line);
  } catch {
    return [];
  }
};

const concerns = ({ kind, layer }, site) =>
  (kind === "all" || kind === site.kind) && (layer === null || layer === site.layer);

/** Kind → the tiles (layer × heads + head) of heads that are off. */
export function offTiles(changes, { sites }) {
  const off = {};
  for (const change of changes.filter(({ verb }) => verb === "off"))
    for (const site of sites.filter((one) => concerns(change, one)))
      for (let at = 0; at < site.n_heads; at++)
        if (change.head === null || change.head === at) (off[site.kind] ??= []).push(site.layer * site.n_heads + at);
  return off;
}

/** Title of a side → the tokens that are hidden as keys everywhere. */
export function hiddenTokens(changes, { sites, sides }) {
  const hides = changes.filter(({ verb, head }) => verb === "hide" && head === null);
  return Object.fromEntries(sides.map(({ name, title }) => {
    const bySite = sites.filter(({ key_side }) => key_side === name).map((site) =>
      new Set(hides.filter((change) => concerns(change, site)).flatMap(({ tokens }) => tokens)));
    return [title, bySite.length ? [...bySite[0]].filter((token) => bySite.every((some) => some.has(token))) : []];
  }));
}

export const isBlurred = (changes) => changes.some((change) => writtenEntry(change) === writtenEntry(BLUR));

/** The line of changes after an act of the stage (app/shell/edits.py). */
export function edited(changes, { what, side, index, row, column, allow, weight, ...head }, { sites, sides }) {
  const kinds = () => {
    const { name } = sides.find(({ title }) => title === side);
    return [...new Set(sites.filter(({ key_side }) => key_side === name).map(({ kind }) => kind))];
  };
  const { kind, layer, head: at } = head, scope = { kind, layer, head: at };
  return written({
    off: () => toggled(changes, { ...scope, verb: "off" }),
    hide: () => hidden(changes, kinds().map((one) => ({ kind: one, layer: null, head: null })), index),
    paint: () => paintedCell(changes, scope, [row, column], allow),
    weigh: () => weighed(changes, scope, [row, column], weight),
    temperature: () => toggled(changes, BLUR),
  }[what]());
}

/** A name for each act, and the changes that it made: one that hides a token hides it in every part that
 * reads the text (app/shell/acts.py). `verbs`: each in words, as Python has them; `labels`: of each
 * side's tokens, by its title. */
export function actsOf(changes, { sites, sides, verbs }, labels) {
  const sideOf = (kind) => sites.find((site) => site.kind === kind)?.key_side;
  const groups = Map.groupBy(changes, (change) => {
    const { kind, layer, verb } = change, side = layer === null && verb === "hide" && sideOf(kind);
    return side ? `${side} ${VERBS.hide.write(change)}` : writtenEntry(change);
  });
  return [...groups.values()].map((group) => {
    const [change] = group, title = sides.find(({ name }) => name === sideOf(change.kind))?.title;
    const words = inWords(change, verbs, labels[title] ?? []), name = group.length > 1 ? words : `${shortName(change)} ${words}`;
    return [name[0].toUpperCase() + name.slice(1), group];
  });
}

/** A change in a few words, without what it concerns (model/probing/changes.py). */
function inWords(change, verbs, labels) {
  const what = change.verb === "hide" ? tokensOf(change, labels) : VERBS[change.verb].write(change);
  return verbs[change.verb].replace("{}", what).trimEnd();
}

/** The words, with their numbers where the text has them more than once. */
function tokensOf({ tokens }, labels) {
  if (tokens.length > MOST_NAMED) return `${tokens.length} tokens`;
  return tokens.map((token) => {
    const word = token in labels ? `“${labels[token]}”` : "";
    const isOnce = word && labels.indexOf(labels[token]) === labels.lastIndexOf(labels[token]);
    return isOnce ? word : `token ${token + 1} ${word}`.trim();
  }).join(" and ");
}
