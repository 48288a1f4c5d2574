// The weights of the grid and where they stand: nothing here draws or listens.
//
// A part is one kind of attention; its cells are bytes: 0 where the query may not attend, else that
// of a weight, or, where the part is `signed`, 128 + 127 × the difference of two weights as a share
// of the largest, which `signed` is.
// A place is where a tile stands on the screen, a tile is layer × heads + head.

import { headerOf } from "../shared/packed.js";
import { weightOf } from "../shared/weights.js";

/** What a byte of a part stands for: a weight, or a difference of weights. */
export const valueOf = ({ signed }, byte) =>
  (signed ? byte && (signed * (byte - 128)) / 127 : weightOf(byte));

/** The bytes of pack() in packing.py; behind them, there may be those of the weights before a change:
 * `former`. */
export function unpack(bytes) {
  const [header, first] = headerOf(bytes);
  let start = first;
  for (const part of header.parts) {
    const size = part.layers * part.heads * part.rows * part.columns;
    part.cells = bytes.subarray(start, start + size);
    start += size;
    part.all = part.cells; // part.cells are those that may be seen
    part.signed = header.signed;
    part.down = { [part.query]: 0 }; // side → its first row
    part.across = { [part.key]: 0 }; // side → its first column
  }
  if (start < bytes.length) {
    header.former = unpack(bytes.subarray(start));
    header.id += header.former.id;
  }
  return header;
}

/** Covers what a question of a lesson asks for: the row of a head; or all of a head whose column is
 * asked for, since a row adds up to 1. A covered cell has no weight, here or in any mean. */
export function cover(parts, sides, veil) {
  for (const part of parts) {
    const { kind, rows, columns, heads, all } = part;
    part.veil = veil.filter(({ what, kind: of }) => of === kind && ["row", "column"].includes(what))
      .map(({ what, layer, head, place }) => {
        const row = Math.floor(place / sides[part.query].every);
        const [first, count] = what === "row" ? [row, 1] : [0, rows];
        return { tile: layer * heads + head, first, count };
      });
    part.cells = part.veil.length ? all.slice() : all;
    for (const { tile, first, count } of part.veil)
      part.cells.fill(0, (tile * rows + first) * columns, (tile * rows + first + count) * columns);
  }
}

/** Whether a row of one of some tiles is covered. */
export const isCovered = ({ veil = [] }, tiles, row) => veil.some(({ tile, first, count }) =>
  tiles.includes(tile) && row >= first && row < first + count);

/** All texts in one square, along both sides: each kind of attention is a block of it, and a layer
 * of the square holds those that stand in it. Null where the kinds do not fit together. */
export function joint(parts, sides) {
  const size = {};
  for (const part of parts) Object.assign(size, { [part.query]: part.rows, [part.key]: part.columns });
  const names = Object.keys(sides).filter((name) => size[name]);
  const places = new Set(parts.map((part) => `${part.query} ${part.key}`));
  const { heads } = parts[0];
  if (names.length < 2 || places.size < parts.length || parts.some((part) => part.heads !== heads))
    return null;
  const offsets = {};
  let length = 0;
  for (const name of names) {
    offsets[name] = length;
    length += size[name];
  }
  const numbers = [...new Set(parts.flatMap((part) => part.numbers))].sort((a, b) => a - b);
  const cells = new Uint8Array(numbers.length * heads * length * length);
  for (const part of parts) {
    const [top, left] = [offsets[part.query], offsets[part.key]];
    for (let layer = 0; layer < part.layers; layer++)
      for (let head = 0; head < heads; head++) {
        const tile = numbers.indexOf(part.numbers[layer]) * heads + head;
        for (let row = 0; row < part.rows; row++) {
          const from = ((layer * heads + head) * part.rows + row) * part.columns;
          const to = (tile * length + top + row) * length + left;
          cells.set(part.cells.subarray(from, from + part.columns), to);
        }
      }
  }
  const titles = names.map((name, i) => (i ? sides[name].name.toLowerCase() : sides[name].name));
  return {
    kind: "joint", name: `${titles.join(" and ")} in one square`, layers: numbers.length, heads,
    numbers, rows: length, columns: length, cells, down: offsets, across: offsets,
    signed: parts[0].signed,
    blocks: Object.fromEntries(parts.map((part) => [part.kind, part])),
  };
}

/** Whether heads of a kind stand in a part. */
export const holds = (part, kind) => part.kind === kind || Boolean(part.blocks?.[kind]);

/** The row of a part that a head of one of its kinds stands in, and the other way round: -1 where
 * that kind has no such layer. */
export const rowOf = (part, { kind, layer }) =>
  part.blocks ? part.numbers.indexOf(part.blocks[kind].numbers[layer]) : layer;
export const layerOf = (part, block, row) =>
  part.blocks ? block.numbers.indexOf(part.numbers[row]) : row;

/** Where in the order, if there is one, a tile stands, and the tile that stands at a place. */
export const placeOf = (order, tile) => (order ? order.tiles.indexOf(tile) : tile);
export const tileAt = (order, place) => (order ? order.tiles[place] : place);

/** A cell by its place in a part; null where the joint square is empty. */
export function cellOf(part, sides, tile, row, column) {
  const sideAt = (offsets, at) =>
    Object.entries(offsets).findLast(([, first]) => first <= at)[0];
  const [query, key] = [sideAt(part.down, row), sideAt(part.across, column)];
  const block = part.blocks
    ? Object.values(part.blocks).find((p) => query in p.down && key in p.across)
    : part;
  if (!block) return null;
  const [layer, head] = [layerOf(part, block, Math.floor(tile / part.heads)), tile % part.heads];
  if (layer < 0) return null;
  return {
    tile: { kind: block.kind, layer, head },
    row: { side: query, index: (row - part.down[query]) * sides[query].every },
    column: { side: key, index: (column - part.across[key]) * sides[key].every },
  };
}

/** The head beside one, as the `sections` {part, order} show them; over the edge of a part lies the
 * next. Null where there is none. */
export function neighbour(sections, focus, [down, right]) {
  let at = sections.findIndex(({ part }) => holds(part, focus.kind));
  if (at < 0) return null;
  let { part, order } = sections[at];
  const place = placeOf(order, rowOf(part, focus) * part.heads + focus.head);
  let [row, column] = [Math.floor(place / part.heads) + down, (place % part.heads) + right];
  const over = column < 0 || row < 0 ? -1 : column >= part.heads || row >= part.layers ? 1 : 0;
  if (over) {
    at += over;
    if (!sections[at]) return null;
    ({ part, order } = sections[at]);
    const last = part.layers - 1;
    if (right) [row, column] = [Math.min(row, last), over < 0 ? part.heads - 1 : 0];
    else [row, column] = [over < 0 ? last : 0, Math.min(column, part.heads - 1)];
  }
  const tile = tileAt(order, row * part.heads + column);
  const kind = part.blocks ? focus.kind : part.kind;
  const block = part.blocks?.[kind] ?? part;
  const layer = layerOf(part, block, Math.floor(tile / part.heads));
  return layer < 0 ? null : { kind, layer, head: tile % part.heads };
}

/** By how many rows the word that a tile's head follows stands after the one that a row reads: 1 where
 * it follows the word that the row predicts. Heads of a mean may follow different ones: 0. */
export const shiftOf = ({ query, shifts }, sides, tiles) =>
  (tiles.length === 1 && hasFollowing(sides[query]) && shifts?.[tiles[0]] ? 1 : 0);

/** Whether the rows of a side predict its next tokens, one by one. */
export const hasFollowing = ({ following, every }) => every === 1 && following?.length > 0;

/** The tiles that are averaged over: the head in focus, its layer, its place in all, or all. */
export function averaged({ layers, heads }, { focus, average }) {
  const tiles = [];
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads; head++) {
      const among = layer === focus.layer || average === "layers" || average === "both";
      if (among && (head === focus.head || average === "heads" || average === "both"))
        tiles.push(layer * heads + head);
    }
  return tiles;
}

/** Weights of the queries at some places of a part, their mean, or with `asQuery` false of the
 * keys, their sum; mean over tiles. Either is at most 1. */
export function meanWeights(part, tiles, places, asQuery) {
  const { rows, columns, cells } = part;
  const sum = new Float32Array(asQuery ? columns : rows);
  for (const tile of tiles)
    for (const at of places)
      for (let i = 0; i < sum.length; i++)
        sum[i] += valueOf(part,
          cells[tile * rows * columns + (asQuery ? at * columns + i : i * columns + at)]);
  const count = tiles.length * (asQuery ? places.length : 1);
  return sum.map((weight) => weight / count);
}

/** Where tokens stand among the rows or columns of a side, those of other sides left out. */
export const placesOf = (tokens, side, sides) => [...new Set(tokens
  .filter((token) => token.side === side)
  .map((token) => Math.floor(token.index / sides[side].every)))];

/** The tokens at whose rows a head of a part follows some tokens; see `shiftOf`. */
export const rowsOf = (tokens, part, shift) => tokens
  .map((token) => (token.side === part.query ? { ...token, index: token.index - shift } : token))
  .filter(({ index }) => index >= 0);

/** What is selected after a click on a token: `tokens`, and behind a second click `to`, what they
 * are linked to. With `extend` the token joins the last of the two; one that is selected leaves. */
export function select(selected, token, extend) {
  const isSame = ({ side, index }) => side === token.side && index === token.index;
  const { tokens = [], to = [] } = selected ?? {};
  if ([...tokens, ...to].some(isSame)) {
    const [first, second] = [tokens, to].map((some) => some.filter((one) => !isSame(one)));
    if (!first.length && !second.length) return null;
    return first.length ? { tokens: first, to: second } : { tokens: second, to: [] };
  }
  if (extend && to.length) return { tokens, to: [...to, token] };
  if (extend) return { tokens: [...tokens, token], to };
  return tokens.length && !to.length ? { tokens, to: [token] } : { tokens: [token], to: [] };
}

/** The heads with the most weight between two groups of tokens, in either direction: the keys of a
 * group count together, and of its queries the mean. `shift` is that of a part's tiles. */
export function links(parts, sides, { tokens, to }, shift, most) {
  const found = [];
  for (const part of parts)
    for (const [queries, keys] of [[tokens, to], [to, tokens]]) {
      const columns = placesOf(keys, part.key, sides);
      for (let tile = 0; columns.length && tile < part.layers * part.heads; tile++) {
        const rows = placesOf(rowsOf(queries, part, shift(part, [tile])), part.query, sides);
        if (!rows.length) continue;
        const weights = meanWeights(part, [tile], rows, true);
        const weight = columns.reduce((sum, column) => sum + weights[column], 0);
        const [layer, head] = [Math.floor(tile / part.heads), tile % part.heads];
        if (weight > 0) found.push({ kind: part.kind, layer, head, queries, keys, weight });
      }
    }
  return found.sort((a, b) => b.weight - a.weight).slice(0, most);
}

/** Whether a filter leaves a tile of a part out; of the joint square, with all its blocks. */
export function isFaded(part, faded, tile) {
  const [row, head] = [Math.floor(tile / part.heads), tile % part.heads];
  return Object.entries(part.blocks ?? { [part.kind]: part }).every(([kind, block]) => {
    const layer = layerOf(part, block, row);
    return layer < 0 || Boolean(faded?.[kind]?.includes(layer * part.heads + head));
  });
}

/** How many keys a row of a head may attend to. */
export function visibleKeys({ rows, columns, cells, heads }, { layer, head }, row) {
  const start = ((layer * heads + head) * rows + row) * columns;
  return cells.subarray(start, start + columns).filter(Boolean).length;
}

/** The weights of a row as they are shown, from 0 to 1: on a scale, those under `least` as none; a
 * difference as it is, none in the middle. */
export function scaled(weights, { scale, least }, signed) {
  if (signed) return weights.map((difference) => (1 + difference / signed) / 2);
  const top = scale === "per row" ? Math.max(...weights) || 1 : 1;
  const shown = scale === "square root" ? Math.sqrt : (weight) => weight / top;
  return weights.map((weight) => (weight < least ? 0 : shown(weight)));
}

/** How many rows and columns of a part a pixel stands for, where its tile has so many pixels. */
export const merged = ({ rows, columns }, width, height) =>
  [rows / height, columns / width].map((cells) => Math.max(1, Math.floor(cells)));

/** All cells of a part as pixels, row by row, heads beside and layers below each other. `colours`
 * are 256; weights under `least` are shown as none. A pixel stands for `down` × `across` cells: it
 * has the colour of their mean, or none if most are masked. */
export function paintTiles(pixels, part, look, colours, [down, across] = [1, 1]) {
  const { layers, heads, rows, columns, cells, signed } = part;
  const { scale, least } = signed ? { scale: "linear", least: 0 } : look;
  const shown = new Float32Array(256); // share of the scale of a byte
  for (let byte = 1; byte < 256; byte++) {
    const each = scale === "per row" ? "linear" : scale;
    shown[byte] = Math.min(1, scaled([valueOf(part, byte)], { scale: each, least }, signed)[0]);
  }
  const table = Uint32Array.from(shown, (share, byte) => (byte ? colours[Math.round(255 * share)] : 0));
  const [tall, wide] = [Math.ceil(rows / down), Math.ceil(columns / across)];
  const isPerRow = scale === "per row";
  const [sums, counts] = [new Float32Array(wide), new Uint16Array(wide)];
  let from = 0;
  for (let tile = 0; tile < layers * heads; tile++) {
    const start = (Math.floor(tile / heads) * tall * heads + (tile % heads)) * wide;
    for (let row = 0; row < rows; row++, from += columns) {
      const to = start + Math.floor(row / down) * heads * wide;
      let unit = 1;
      if (isPerRow) {
        let top = 2;
        for (let i = 0; i < columns; i++) top = Math.max(top, cells[from + i]);
        unit = weightOf(top);
      }
      if (down * across === 1) {
        for (let i = 0; i < columns; i++) {
          const byte = cells[from + i];
          pixels[to + i] = isPerRow && byte ? colours[Math.round((255 * shown[byte]) / unit)]
            : table[byte];
        }
        continue;
      }
      for (let at = 0, i = from; at < wide; at++) {
        const end = Math.min(i + across, from + columns);
        let [sum, count] = [0, 0];
        for (; i < end; i++) {
          const byte = cells[i];
          sum += shown[byte];
          if (byte) count++;
        }
        sums[at] += sum / unit;
        counts[at] += count;
      }
      if ((row + 1) % down && row + 1 < rows) continue;
      const height = (row % down) + 1;
      for (let at = 0; at < wide; at++) {
        const area = height * Math.min(across, columns - at * across);
        if (2 * counts[at] >= area) pixels[to + at] = colours[Math.round((255 * sums[at]) / counts[at])];
      }
      sums.fill(0);
      counts.fill(0);
    }
  }
}
