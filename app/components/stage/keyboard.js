// The keyboard: the arrows, from part to part of what is seen, and a letter for each act.

import { keyOf } from "../shared/keys.js";
import { addsOf } from "./adds.js";
import { stepsOf } from "./arithmetic.js";
import { headBeside } from "./heads.js";
import { termOf, wayOf } from "./number.js";
import { tilesOf } from "./pointer.js";
import { stepNumber } from "./positions.js";
import { DEPTHS, HEAD, MODEL, NUMBER, ROW, WHY } from "./state.js";
import { branchOf, stepWritten } from "./write.js";

/** Keys while what the model writes is shown. */
function keyWrite(stage, key, [dx, dy], isFree) {
  const { state } = stage, beginning = key === "Enter" && isFree ? branchOf(state) : null;
  if (beginning !== null) return (stage.branch(beginning), true);
  if (key === "Escape" && !state.other) return (stage.openWrite(-1), true);
  if (key === " " && isFree && !state.write) return (stage.play(!stage.playing), true);
  if (DEPTHS[Number(key) - 1]) return (stage.go(Number(key) - 1), true);
  if (key === "Escape") state.other = null;
  else if ((dx || dy) && isFree) {
    stage.play(false);
    stepWritten(state, dx, dy);
  } else return false;
  stage.selectedWord();
  return true;
}

export function hearKey(stage, event) {
  const { state } = stage, { shiftKey } = event, key = keyOf(event), [from] = event.composedPath();
  if (!stage.root.getClientRects().length) return false; // on another page
  if (key === "Escape" && stage.fold()) return true;
  if (!state.isSeen || state.page || from.matches?.("input:not([type=range]), select, textarea")) return false;
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [0, 0];
  const isFree = !from.closest?.("button, a, input") || from === stage.parts.canvas;
  // In the plan for a class they are the remote's, but in the picture itself.
  const isOurs = from === stage.parts.canvas || !globalThis.headlight?.remote;
  if (dx && from.matches?.(".w, .views button, .rail button")) return (focusBeside(stage, from, dx), true);
  if (state.isWriting) return isOurs && keyWrite(stage, key, [dx, dy], isFree);
  if (key === " " && isFree && state.look.write) return (stage.openWrite(0), true);
  if (dx || dy) return (isFree || from.matches?.(".views button, .rail button")) && isOurs && (step(stage, dx, dy, shiftKey), true);
  if (key === "Enter") return isFree && ((state.isAdding && stage.toHead()) || stage.go(state.depth + 1), true);
  if (key === "Escape") return back(stage);
  if (DEPTHS[Number(key) - 1]) return (stage.go(Number(key) - 1), true);
  if (key === "b" && state.run.former) return (stage.blend(0), true);
  if (key === "y" && state.depth >= HEAD && state.deepest === NUMBER && state.numbers.length > WHY) return (openWhy(stage), true);
  if (key === "d" && state.depth >= ROW && !state.isBare) return (stage.scale(), true);
  const act = state.acts().find((one) => one.key === key.toLowerCase());
  if (act) stage.act(act.act);
  return Boolean(act);
}

function openWhy(stage) {
  if (stage.state.depth === NUMBER) stage.see(WHY);
  else stage.state.number = WHY;
  stage.go(NUMBER);
}

/** A text is one stop of the Tab key, and so are depths and views; the arrows go from one to the next. */
function focusBeside(stage, from, by) {
  const all = [...(from.matches(".w") ? stage.parts.words.querySelectorAll("button.w:not([hidden])") : from.parentElement.querySelectorAll("button"))];
  all[all.indexOf(from) + by]?.focus();
}

function back(stage) {
  const { state } = stage;
  if (state.isPlaces && state.dimension !== null) state.dimension = null;
  else if (state.token) state.token = null;
  else if (state.key >= 0 && state.depth < NUMBER) state.key = -1;
  else if (globalThis.headlight?.remote) return (globalThis.headlight.remote.leave(), true); // to the plan for a class
  else if (state.depth > state.shallowest) return (stage.go(state.depth - 1), true);
  else if (state.look.projector) return (stage.engine.choose({ projector: false }), true);
  else return false;
  stage.selected();
  return true;
}

/** The product beside the selected one, as they stand. */
function stepTerm(stage, by) {
  const { state } = stage, way = wayOf(state);
  if (!way) return;
  const steps = stepsOf(way.terms, state.number === 1), at = steps[termOf(state, way)].at + by;
  [state.pointedTerm, state.term] = [null, steps.findIndex((step) => step.at === Math.max(0, Math.min(steps.length - 1, at)))];
  stage.selected();
}

/** An arrow key: another head, row, cell or stop. */
function step(stage, dx, dy, isCell) {
  const { state } = stage, part = state.part(), tiles = tilesOf(stage);
  if (tiles) {
    const found = headBeside(state, tiles, [dx, dy]);
    if (found) stage.choose(found);
    return;
  }
  if (state.isPlaces) {
    const { side, index } = state.spot();
    if (dx) stepNumber(state, dx);
    state.token = null;
    state.chooseSpot(side, index + dy);
    return stage.selected();
  }
  if (state.depth === MODEL) {
    state.chooseAnswer(state.answerRow() + (dx || dy));
    return stage.selected();
  }
  if (state.depth === ROW && dx && !isCell) return stage.see(Math.max(0, Math.min(state.stops.length - 1, state.stopped + dx)));
  if (state.isAdding && dx) {
    const count = addsOf(state)?.steps.length ?? 0;
    state.step = Math.max(0, Math.min(count - 1, (state.step ?? addsOf(state)?.own ?? 0) + dx));
    return stage.selected();
  }
  if (state.depth === NUMBER && state.number !== WHY && dx && !isCell) return stepTerm(stage, dx);
  const column = state.column(), { key } = state;
  if (dy) {
    state.chooseRow(state.row() + dy);
    state.key = key;
  } else {
    state.chooseRow(state.row());
    state.key = Math.max(0, Math.min(part.columns - 1, key < 0 ? column : key + dx));
  }
  stage.selected();
}
