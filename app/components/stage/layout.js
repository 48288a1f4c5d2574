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

/** Where query and key stand, number by number: `strips`, the tops of the two, `high` each; the line `said`
 * in which a product is written out; the box of the steps, `tall` from `top` on; and the `foot`, of what
 * becomes of their sum. */
export function numberPlace(state, camera, { length }) {
  const { W, H, s, m, l, isNarrow } = camera, most = 0.16 * W;
  const names = [["query", state.rowNames()[state.row()]], ["key", state.keyNames()[state.column()]]];
  const wide = Math.max(...names.map(([side, word]) => camera.width(`${side} `, m) + Math.min(most, camera.width(word, m, 650))));
  const x = isNarrow ? 0 : wide + s * 0.9, gap = s * 0.7, right = gap + camera.width("−00.0", isNarrow ? m : m * 1.2, 650), w = W - x - right;
  const high = isNarrow ? s * 1.5 : Math.max(s * 2, H * 0.062), title = isNarrow ? m * 1.6 : 0, strips = [title, 2 * title + high + (isNarrow ? 2 : 5)];
  const said = strips[1] + high + m * 1.35, top = said + m * 1.9, foot = H - (isNarrow ? l * 4 : l * 1.65 + m * 1.3);
  return { x, w, gap, high, names, most: isNarrow ? W * 0.7 : most, strips, said, top, tall: foot - (isNarrow ? m : m * 1.5) - top, foot, each: w / length };
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
 * `below` them, which slant where they are wide. On a phone bars are horizontal: see lyingPlace. */
export function rowPlace(state, camera) {
  const place = matrixPlace(state, camera), columns = shownColumns(state), { W, s } = camera;
  const { x } = place, room = W - x - s * SIDE, each = room / columns.length;
  const names = state.keyNames(), longest = Math.max(...columns.map((at) => camera.width(names[at], camera.m, 650)));
  const isTilted = longest > each - 4, below = isTilted ? longest * 0.85 + 8 : camera.m * 1.6;
  return { ...place, x, w: room, columns, each, isTilted, below };
}

/** Where bars lie, one under the other between their names, `x` wide, and their numbers, whose columns end
 * at `ends`; each is `each` high, the first at `top`, and the last is followed by a line for their sum. */
export function lyingPlace(state, camera) {
  const columns = shownColumns(state), names = state.keyNames(), { W, H, m } = camera;
  const x = Math.min(0.28 * W, Math.max(...["output", ...columns.map((at) => names[at])].map((name) => camera.width(name, m, 650)))) + 10;
  const top = m * 1.7, each = Math.min(m * 2.6, (H - top) / (columns.length + 1)), ends = [W - m * 6.4, W - m * 2.9, W];
  return { columns, names, x, top, each, ends };
}
