// The pointer in the picture: what lies under it, and what a click does there.

import { addsOf, stepAt } from "./adds.js";
import { answerAt } from "./after.js";
import { tiny } from "./arithmetic.js";
import { EDGE } from "./camera.js";
import { floorsPlace, partAt } from "./floors.js";
import { hintOf } from "./foot.js";
import { headAt, headsPlace } from "./heads.js";
import { lineAt } from "./lying.js";
import { cellAt } from "./matrix.js";
import { neededAt } from "./needs.js";
import { numberAt } from "./number.js";
import { placeAt } from "./positions.js";
import { dotAt, rowAt } from "./pytorch.js";
import { barAt } from "./row.js";
import { HEAD, HEADS, MODEL, NUMBER, PLACES, ROW, WHOLES, WHY } from "./state.js";
import { branchOf, writtenAt } from "./write.js";

const STROKE = 200, CLICK = 4, CLICKED = 0.2; // px up for a whole share; px that are no stroke; what a click adds

function pointAt(stage, { clientX, clientY }) {
  const box = stage.parts.canvas.getBoundingClientRect();
  return [clientX - box.left - EDGE, clientY - box.top - EDGE];
}

/** The heads as they stand where one is; null where single ones are seen, or none. */
export function tilesOf(stage) {
  const { state, camera } = stage;
  if (state.depth === HEADS) return headsPlace(state, camera).tiles;
  return state.isFigure ? floorsPlace(state, camera).tiles : null;
}

/** Another part under the pointer, which is kept as `name` of `owner`. */
function pointTo(stage, owner, name, found) {
  if (JSON.stringify(found) === JSON.stringify(owner[name])) return;
  owner[name] = found;
  stage.draw();
}

/** A word, a part of a logit, a product, a head of the line of differences, or a head or part of the figure. */
export function point(stage, event) {
  const { state, camera, parts: { canvas, legend: { firstChild: hint } } } = stage, at = event && pointAt(stage, event);
  const offer = (opens) => (canvas.style.cursor = opens ? "pointer" : "");
  if (!state.isSeen) return;
  if (state.isWriting) return void offer(at && writtenAt(state, camera, ...at));
  if (state.isAdding) {
    const found = at ? stepAt(state, camera, ...at) : null;
    offer(found !== null && addsOf(state).steps[found].head);
    return pointTo(stage, state, "step", found);
  }
  if (state.depth === NUMBER) {
    const found = at && state.number !== WHY ? numberAt(state, camera, ...at) : null;
    offer(found !== null);
    return pointTo(stage, state, "pointedTerm", found);
  }
  if (state.isBeside) {
    const dot = at ? dotAt(state, camera, ...at) : null;
    offer(dot);
    hint.textContent = dot ? `${state.name(dot.tile)}: ${dot.value ? tiny(dot.value) : 0}` : hintOf(stage);
    return;
  }
  const tiles = tilesOf(stage);
  if (!tiles) return;
  const found = at && headAt(tiles, ...at);
  tellPart(stage, at && !found ? at : null);
  offer(found || (at && partUnder(stage, at)?.[1] === "start"));
  pointTo(stage, stage, "pointed", found);
}

/** A stroke in the covered row makes a guess: upwards a share grows; a click adds some. */
export function stroke(stage, down) {
  const { state, camera, parts: { canvas } } = stage, cell = state.isGuessed() && state.depth === HEAD && !state.view ? cellAt(state, camera, ...pointAt(stage, down)) : null;
  stage.isStroke = cell?.row === state.row() && cell.key >= 0;
  if (!stage.isStroke) return;
  const { weights, weigh } = state.guess, up = (event) => down.clientY - event.clientY, before = weights[cell.key];
  canvas.setPointerCapture(down.pointerId);
  canvas.onpointermove = (event) => weigh(cell.key, before + up(event) / STROKE);
  canvas.onpointerup = canvas.onpointercancel = (event) => {
    if (Math.abs(up(event)) < CLICK) weigh(cell.key, before + CLICKED);
    [canvas.onpointermove, canvas.onpointerup, canvas.onpointercancel] = [(other) => point(stage, other), null, null];
  };
}

export function click(stage, event) {
  const { state, camera } = stage;
  if (!state.isSeen || stage.isStroke) return;
  const [x, y] = pointAt(stage, event), tiles = tilesOf(stage);
  if (state.isWriting) {
    const { at, ...other } = writtenAt(state, camera, x, y) ?? {};
    stage.play(false);
    if (at !== undefined) [state.at, state.other] = [at, null];
    else state.other = Object.keys(other).length ? other : null;
    const beginning = branchOf(state);
    return beginning === null ? stage.selectedWord() : stage.branch(beginning);
  }
  if (tiles) {
    const found = headAt(tiles, x, y);
    const [side, name] = (!found && partUnder(stage, [x, y])) || [];
    if (name === "start" && state.wholes.includes(WHOLES[PLACES])) {
      [state.token, state.side] = [null, side];
      return stage.see(state.wholes.indexOf(WHOLES[PLACES]));
    }
    if (!found) return tellPart(stage, [x, y]);
    stage.choose(found);
    if (state.look.lesson?.heads) return stage.answer([found.kind, found.layer, found.head]);
    return stage.go(HEAD);
  }
  if (state.depth === MODEL) return clickView(stage, x, y);
  if (state.depth === HEAD && (state.view === 0 || state.isBeside)) {
    const dot = state.isBeside ? dotAt(state, camera, x, y) : null;
    if (dot) return stage.choose(dot.tile);
    const cell = state.isBeside && !state.isAlone ? rowAt(state, camera, x, y) : cellAt(state, camera, x, y);
    if (!cell) return;
    if (cell.row === null) return stage.touch(state.part().key, cell.key * state.sides()[1].every);
    const { kind, layer, head } = state.tile, asked = state.look.veil.find((veil) => veil.what === "row" && veil.place === cell.row * state.sides()[0].every
      && veil.kind === kind && veil.layer === layer && veil.head === head);
    if (asked && cell.key >= 0 && stage.answerBy(state.part().key, cell.key * state.sides()[1].every)) return;
    const isSame = state.row() === cell.row && (cell.key < 0 || state.key === cell.key);
    if (isSame) return stage.go(ROW);
    state.chooseRow(cell.row);
    state.key = cell.key;
    return stage.selected();
  }
  if (state.isAdding) {
    state.step = stepAt(state, camera, x, y);
    return void stage.toHead();
  }
  if (state.depth === NUMBER && state.number === WHY) return;
  if (state.depth === NUMBER) {
    const found = numberAt(state, camera, x, y);
    if (found !== null) state.term = found;
    return stage.selected();
  }
  const cell = cellAt(state, camera, x, y), bar = state.depth === ROW && x > 0 ? (camera.isNarrow ? lineAt(state, camera, y) : barAt(state, camera, x, y)) : null;
  if (cell?.row !== null && cell?.key === -1) state.chooseRow(cell.row);
  else if (bar === null) return;
  else if (state.key === bar) return stage.go(NUMBER);
  else state.key = bar;
  stage.selected();
}

/** The part of the figure at a point, which is no head. */
function partUnder(stage, at) {
  const { state, camera } = stage;
  return at && state.isFigure ? partAt(floorsPlace(state, camera), camera, ...at) : null;
}

/** What the part of the figure at a point does, in place of the hint; the server says so once. */
async function tellPart(stage, at) {
  const { run, parts: { legend: { firstChild: hint } } } = stage, part = partUnder(stage, at), key = String(part);
  if (stage.toldPart === key) return;
  stage.toldPart = key;
  const found = part && (await stage.engine.ask({ what: "about", of: run.id }).catch(() => null));
  if (stage.toldPart !== key) return;
  hint.textContent = (part && found?.[part[0]]?.[part[1]]) || hintOf(stage);
}

/** In a view of the model: another row of the predictions, or a word for acts. */
function clickView(stage, x, y) {
  const { state, camera } = stage, found = state.answered(state.question());
  if (!found) return;
  if (state.isPlaces) {
    const { index, dimension } = placeAt(state, camera, found, x, y) ?? {};
    if (index === undefined) return;
    state.dimension = index === state.spot().index && dimension === state.dimension ? null : dimension;
    state.token = null;
    state.chooseSpot(state.spot().side, index);
    return stage.selected();
  }
  if (state.seen === 1) {
    const row = answerAt(state, camera, found, x, y);
    if (row !== null) state.chooseAnswer(row);
    return stage.selected();
  }
  const token = neededAt(state, camera, found, x, y);
  if (token) stage.touch(token.side, token.index);
}
