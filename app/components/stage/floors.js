// Where everything of the model stands, drawn as the paper draws it: a tower for each text, a floor for
// each layer, the thread of the residual stream around what adds to it. Texts go downwards.
//
// Places are computed along a floor, `u`, and from floor to floor, `v`. Floors are rows; of a tall model,
// and of a small one on a narrow screen, they are columns: then u is y, and v is x.

const MANY = 8; // heads below each other, from which on they stand in pairs on a narrow screen
const FLOORS = 6; // layers, from which on those of a single tower stand beside each other

/** The towers: {side, start, end, sums, floors}, where a floor has {parts: what attends, each null or
 * {part, layer}, others: names}. Of a model that is known by its weights alone, only what attends. */
export function towersOf({ run: { parts }, look: { towers } }) {
  const of = (kind, number) => {
    const part = parts.find((one) => one.kind === kind), layer = part?.numbers.indexOf(number) ?? -1;
    return layer < 0 ? null : { part, layer };
  };
  const known = towers ?? [...new Set(parts.map(({ query }) => query))].map((side) => {
    const own = parts.filter(({ query }) => query === side), count = Math.max(...own.flatMap(({ numbers }) => numbers));
    const kinds = (at) => own.filter(({ numbers }) => numbers.includes(at + 1)).map(({ kind }) => kind);
    return { side, start: "", end: "", sums: "", layers: Array.from({ length: count }, (_, at) => kinds(at)) };
  });
  return known.map((tower) => {
    const { side, start, end, sums } = tower;
    return { side, start, end, sums, floors: tower.layers.map((names, at) => ({
      parts: names.map((name) => of(name, at + 1)).filter(Boolean),
      others: names.filter((name) => !parts.some(({ kind }) => kind === name)),
    })) };
  });
}

/** Where all stands: `tiles` as headsPlace has them; of each tower its `slots`, from left to right
 * {parts or names, u, size, boxes}, between `from` and `to`; and on each floor the stream and, below it, the
 * `middle` where its boxes begin. */
export function floorsPlace(state, camera) {
  const { W, H, s, isNarrow } = camera, { parts } = state.run, towers = towersOf(state), count = Math.max(1, ...towers.map(({ floors }) => floors.length));
  const isTurned = isNarrow ? count <= FLOORS : towers.length === 1 && count > FLOORS;
  const [U, V] = isTurned ? [H, W] : [W, H], isBelow = isTurned && isNarrow; // titles stand above each group
  const pad = s * (isNarrow ? 0.6 : 0.9), gap = s * (isNarrow ? 0.45 : 1), forward = s * (isNarrow ? 0.9 : 1.7);
  const bus = s * (isNarrow ? 0.9 : 1.7), apart = isBelow ? s * 0.5 : s * 1.8, title = isBelow ? s * 1.6 : 0;
  const [first, last] = isTurned ? [isNarrow ? s * 0.3 : s * 3.6, s * 2] : [s * (isNarrow ? 1.4 : 2.2), 0];
  const [top, foot] = isTurned ? [isNarrow ? pad : s * 6.6, s * 0.5] : [s * (isNarrow ? 3.4 : 4.7), s * 2.6];
  const many = parts.reduce((sum, { heads }) => sum + heads, 0) > MANY;
  const across = (heads) => (isBelow && many && heads > 2 ? 2 : 1);
  const planned = towers.map((tower) => {
    const most = Math.max(...tower.floors.map(({ parts }) => parts.length)), slots = [];
    for (let at = 0; at < most; at++) {
      const some = tower.floors.map(({ parts }) => parts[at] ?? null), found = [...new Set(some.filter(Boolean).map(({ part }) => part))];
      const heads = Math.max(...found.map((part) => part.heads)), lines = across(heads);
      const isCross = found.some((part) => part.key !== part.query), isFirst = !at;
      slots.push({ some, parts: found, heads, lines, rows: Math.ceil(heads / lines), isCross, before: gap + (isCross ? bus : 0) + (isFirst ? 0 : title), after: gap });
    }
    const others = Math.max(...tower.floors.map((floor) => floor.others.length));
    for (let at = 0; at < others; at++) slots.push({ names: tower.floors.map((floor) => floor.others[at]), before: gap, after: gap });
    return Object.assign(tower, { slots });
  });
  const between = (heads) => Math.min(isNarrow ? 2 : 5, (0.12 * U) / (heads || 1));
  const tilesLong = planned.flatMap(({ slots }) => slots).reduce((sum, { rows = 0 }) => sum + rows, 0);
  const closest = between(tilesLong);
  const fixed = planned.flatMap(({ slots }) => slots).reduce((sum, slot) =>
    sum + slot.before + slot.after + (slot.parts ? (slot.rows - 1) * closest : forward), 0);
  const long = Math.max(1, (U - first - last - fixed - (title + 2 * pad) * planned.length - apart * (planned.length - 1)) / tilesLong);
  const floor = (V - top - foot) / count, lane = Math.min(s * (isNarrow ? 1.6 : 2), floor * 0.4), deep = floor - lane; // the thread has the lane between two
  const tiles = [], box = (u, v, du, dv) => (isTurned ? { x: v, y: u, w: dv, h: du } : { x: u, y: v, w: du, h: dv });
  const streams = Array.from({ length: count }, (_, at) => top + at * floor), middle = (at) => streams[at] + 0.36 * lane;
  let u = first;
  const placed = planned.map((tower) => {
    const from = u + title;
    u = from + pad;
    const slots = tower.slots.map((slot) => {
      const at = u + slot.before, size = slot.parts ? slot.rows * (long + closest) - closest : forward;
      u = at + size + slot.after;
      const boxes = tower.floors.map((_, floor) => box(at, middle(floor), size, deep));
      slot.some?.forEach((one, floor) => {
        if (!one) return;
        const { part, layer } = one, wide = (deep - (slot.lines - 1) * closest) / slot.lines;
        for (let head = 0; head < part.heads; head++)
          tiles.push({ part, tile: layer * part.heads + head, where: { kind: part.kind, layer, head },
            box: box(at + Math.floor(head / slot.lines) * (long + closest), middle(floor) + (head % slot.lines) * (wide + closest), long, wide) });
      });
      return Object.assign(slot, { u: at, size, boxes });
    });
    const to = u;
    u += pad + apart;
    return Object.assign(tower, { slots, from, to });
  });
  return { tiles, towers: placed, isTurned, isBelow, U, V, streams, lane, deep, first, top, foot, gap, bus, pad, long, middle };
}


const isIn = ({ x, y, w, h }, left, top) => left >= x && left <= x + w && top >= y && top <= y + h;

/** The part of the figure at a point that has a text of its own, as [side, name]: what is no attention, a
 * title, what comes in or out. Null elsewhere. */
export function partAt(place, camera, x, y) {
  const { towers, isTurned, isBelow, top } = place, { s, W, H } = camera;
  for (const { side, slots } of towers)
    for (const { names, boxes } of slots)
      for (const [floor, name] of names?.entries() ?? []) if (name && isIn(boxes[floor], x, y)) return [side, name];
  if (y > H - s * 1.6 && x > W / 2) return [towers.at(-1).side, "end"];
  if (isBelow || y > s * 2.8) return null;
  for (const { side, from, slots } of towers) {
    const slot = slots.find(({ parts, u, size }) => parts && (isTurned ? x > top : y > s * 1.4 && x >= u && x <= u + size));
    if (slot) return [side, slot.parts[0].kind];
    if (isTurned || (y <= s * 1.4 && x >= from && x <= from + s * 13)) return [side, "start"];
  }
  return null;
}
