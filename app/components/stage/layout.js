// Where the matrix of a head stands, and the bars of one of its rows.

const MOST = 24; // bars; of more keys those with the largest weights
const SIDE = 8.5; // small letters: the column at the right of the bars, of the sum and the output

/** Where the matrix stands: its box, and `each`, [width, height] of a cell. Labels stand at its left and
 * above it, slanting where they are wide. */
export function matrixPlace(state, camera) {
  const { W, H, s, m, isNarrow } = camera, part = state.part();
  const wide = (words) => words.reduce((most, word) => Math.max(most, camera.width(word, m, 650)), 0);
  const left = Math.min(0.3 * W, Math.ceil(wide(state.rowNames())) + s * (isNarrow ? 0.6 : 1.1));
  const longest = Math.min(0.3 * H, wide(state.keyNames())), isTilted = longest > (W - left) / part.columns - 4;
  const top = isTilted ? longest * 0.9 + 10 : m * 1.75;
  const box = { x: left, y: top, w: W - left, h: H - top };
  return { ...box, isTilted, each: [box.w / part.columns, box.h / part.rows] };
}

/** The columns that have a bar, in the order of the text. */
export function shownColumns(state) {
  const weights = state.weights(), all = weights.map((_, at) => at);
  if (all.length <= MOST) return all;
  const best = new Set(all.toSorted((a, b) => weights[b] - weights[a]).slice(0, MOST - 1));
  best.add(state.column());
  return all.filter((at) => best.has(at));
}

/** Where the bars stand: the columns that have one, the width of each, and the room for their names
 * `below` them, which slant where they are wide. */
export function rowPlace(state, camera) {
  const place = matrixPlace(state, camera), columns = shownColumns(state), { W, s, isNarrow } = camera;
  const x = isNarrow ? 0 : place.x, room = W - x - (isNarrow ? 0 : s * SIDE), each = room / columns.length;
  const names = state.keyNames(), longest = Math.max(...columns.map((at) => camera.width(names[at], camera.m, 650)));
  const isTilted = longest > each - 4, below = isTilted ? longest * 0.85 + 8 : camera.m * 1.6;
  return { ...place, x, w: room, columns, each, isTilted, below };
}
