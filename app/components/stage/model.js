// Depth 1: the model, in one of its views; and the way from there to its heads.

import { between, clamp, ease } from "./camera.js";
import { drawAfter } from "./after.js";
import { floorsPlace } from "./floors.js";
import { drawHeads, drawNamed, headsPlace } from "./heads.js";
import { drawFigure, drawMaps } from "./maps.js";
import { drawNeeds } from "./needs.js";
import { drawPaths } from "./paths.js";
import { drawPlaces } from "./positions.js";
import { INPUT, PATHS, PLACES } from "./state.js";

const WAIT = 0.45; // of the way, until the tile that is furthest to the right leaves

/** Tiles on their way from the figure to where the heads stand, z from 0 to 1. */
function flying(state, camera, z, heads) {
  const key = JSON.stringify, after = new Map(heads.tiles.map(({ where, box }) => [key(where), box]));
  return floorsPlace(state, camera).tiles.map((each) => {
    const to = after.get(key(each.where)), wait = (WAIT * to.x) / camera.W;
    return Object.assign(each, { box: between(each.box, to, ease(clamp((z - wait) / (1 - WAIT)))) });
  });
}

/** z from 0, the model, to 1, its heads; `view`: [from, to, how far], of WHOLES. */
export function drawModel(state, camera, z, [from, to, u], pointed) {
  const near = (at) => (at === to ? u : at === from ? 1 - u : 0), alpha = clamp(1 - 2.6 * z);
  const heads = z ? headsPlace(state, camera) : null;
  drawMaps(state, camera, { z, next: heads && flying(state, camera, z, heads), maps: near(0), pointed });
  if (heads) drawNamed(state, camera, heads, clamp(2.6 * z - 1.6));
  drawAfter(state, camera, state.answered({ what: "after" }), near(1) * alpha);
  drawNeeds(state, camera, state.answered(state.needed()), near(2) * alpha);
  for (const view of [PLACES, INPUT]) drawPlaces(state, camera, state.answered(state.placesOf()), near(view) * alpha, view === INPUT);
  if (near(PATHS)) drawPaths(state, camera, state.answered(state.pathsOf()), near(PATHS) * alpha, pointed);
}

/** z from 0, the figure, to 1, where the selected head fills the stage. */
export function drawDive(state, camera, z) {
  const place = floorsPlace(state, camera);
  drawHeads(state, camera, z, place, null, (alpha) => drawFigure(state, camera, place, alpha));
}
