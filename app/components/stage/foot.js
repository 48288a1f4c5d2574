// What stands beneath the picture: the tools of the selected head, a hint, and what the colours mean.

import { stopsOf } from "../shared/colours.js";
import { shape } from "../shared/svg.js";
import { actButton } from "./button.js";
import { numberSaid, placesScale } from "./positions.js";
import { SPREAD } from "./row.js";
import { HEAD, MIX, MODEL, NUMBER, ORDERS, PATHS, PYTORCH, ROW, WHY } from "./state.js";
import { foundOf } from "./write.js";

const HINTS = [
  ["Click a head to enlarge it.", "Click a column, or press ← →: another word.", "Click a word to hide it. ← →: what another word needs.", "Click a head to enlarge it.",
    ...Array(2).fill("Click a number to read it, a word for its place. ↑ ↓: another place.")],
  "Click a head to enlarge it.", "Click a row to select it, again to see how its weights arise.", "Click a bar to select it, again to see its numbers. ↑ ↓: another row.",
  "← →: another product. With Shift: another key. ↑ ↓: another query."];
const TOUCHED = [["Tap a head.", "Tap a row.", "Tap a word to hide it.", "Tap a head.", "Tap a number.", "Tap a number."], "Tap a head.", "Tap a row twice to open it.", "Tap a bar twice to open it.", "Tap a product."]; // the same on a phone
const BARE = { [HEAD]: "Select a row, and again: its weights as bars.", [ROW]: "↑ ↓: another row." }; // where only weights are known
const WRITTEN = ["← →: another word. Click another token or text to go on from it. Space: play.", "← →: another column.", "↑ ↓: another text. Blue: not in the greedy text."];
const TAPPED = ["Tap another token or text.", "Tap a column.", "Blue: not in the greedy text."]; // the same on a phone
const POWER = "M8 1.5v6M4.2 4a5.6 5.6 0 1 0 7.6 0"; // the sign of a switch
// What the picture's rows, colours and signs mean, depth by depth.
const MEANINGS = [sumsOf, redsOf, axesOf, (state) => (state.isAdding ? "blue: adds · red: subtracts · lighter: no head" : ""),
  (state) => (state.number === WHY ? "blue: for this key · red: against it" : "blue: adds · red: subtracts")];

/** Beside what they act on: the head's switch in the corner of its matrix, the mask in its hatch. */
export function drawTools(stage) {
  const { state, parts: { tools } } = stage;
  const { mask } = state.masks, isHere = state.depth === HEAD && !state.isWriting && state.view < 2;
  const wanted = isHere ? state.acts().filter(({ key }) => key === "o" || (key === "k" && mask)) : [];
  const drawn = JSON.stringify([wanted, stage.run.id]);
  if (tools.drawn === drawn) return; // one that is pointed at stays
  tools.drawn = drawn;
  tools.replaceChildren(...wanted.map(({ key, name, act, isDone }) => {
    if (key === "k") return actButton(stage, act, isDone, { class: "tool", title: "The causal mask (K)" }, mask);
    const sign = shape("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, shape("path", { d: POWER }));
    return actButton(stage, act, isDone, { class: "tool", title: `Switch ${state.name()} ${name} (O)` }, sign, ` switch ${name} ${state.name()}`);
  }));
}

/** What can be done in the picture, and what its rows, colours and signs mean. */
export function drawLegend(stage) {
  const { state } = stage, [hint, axes, scale] = stage.parts.legend.children;
  const isMix = state.depth === ROW && state.stopped === MIX, [name, from, colours, to] = scale.childNodes;
  scale.hidden = state.isWriting || (state.depth === MODEL && state.seen >= PATHS) || state.isAdding || (state.depth === ROW && state.stopped < 2);
  name.textContent = isMix ? "value" : state.depth === MODEL && state.seen === 1 ? "probability" : "attention";
  [from.textContent, to.textContent] = isMix ? [`−${SPREAD}`, `${SPREAD}`] : ["0%", "100%"];
  if (state.ink) colours.style.background = `linear-gradient(to right, ${stopsOf(isMix ? state.look.differences : state.look.palette, state.ink).join()})`;
  hint.textContent = hintOf(stage);
  stage.toldPart = "null";
  axes.textContent = state.isWriting ? "" : MEANINGS[state.depth](state);
}

/** What the rows are, and the columns. */
function axesOf(state) {
  const part = state.part(), [rows, columns] = state.view % PYTORCH ? ["below", "above"] : ["rows", "columns"];
  const words = state.rowsAre(), of = `${part.query}${words ? `, ${words}` : ""}`;
  const isMasked = !(state.view % PYTORCH) && state.hasMask;
  return `${rows}: ${of} · ${columns}: ${part.key}${isMasked ? " · hatched: masked" : ""}`;
}

/** What red means in an order of the heads. */
function redsOf(state) {
  const { order, told } = state, found = told[ORDERS[order]];
  if (order === 2) return found ? "red: less probable without it, blue: more" : "";
  return found?.heads?.some(({ missed }) => missed) ? "red: needed, whatever takes its place" : "";
}

/** What a sign of the figure means; whose words the grid has. */
function sumsOf(state) {
  const { seen, look: { towers } } = state;
  if (seen === PATHS) return "blue: carries the difference · red: works against it · thicker: more";
  if (seen === 1) return "ink: from here on its final answer";
  if (state.isPlaces) return placesScale(state);
  return seen ? "" : towers?.at(-1).sums ?? "";
}

export function hintOf(stage) {
  const { state, camera: { isNarrow } } = stage, { depth, seen } = state, hints = isNarrow ? TOUCHED : HINTS;
  if (state.isWriting) {
    const isDashed = state.write === 1 && foundOf(state)?.is_same === false;
    return `${(isNarrow ? TAPPED : WRITTEN)[state.write]}${isDashed ? " Dashed: greedy decoding." : ""}`;
  }
  if (depth === NUMBER && state.number === WHY) return isNarrow ? "" : "← →: another key. ↑ ↓: another query.";
  if (state.isAdding) return isNarrow ? "Tap a head." : "Click a step to select its head. ↑ ↓: another row. Shift and ← →: another step.";
  if (state.isBeside) return state.isAlone ? "" : isNarrow ? "Tap a row or a dot." : "Click a row to select it, the dot of another head to see that one.";
  if (depth === HEAD && state.view) return "";
  if (depth === HEAD && state.key >= 0 && !isNarrow) return "Click the cell again to see how its weight arises. Heads says which head links the two most.";
  if (depth !== MODEL) return (state.isBare && BARE[depth]) || hints[depth];
  if (state.isPlaces) return numberSaid(state, isNarrow) || `${isNarrow ? `${placesScale(state).replace(/ · the.*/, "")}. ` : ""}${hints[MODEL][seen]}`;
  return seen && stage.run.answers.rows.length === 1 ? "" : hints[MODEL][seen];
}
