// The weights of all heads, as bytes: nothing here draws or listens.
//
// A part is one kind of attention; its cells are bytes: 0 where the query may not attend, else that of a
// weight. A tile is layer × heads + head.

import { headerOf } from "../shared/packed.js";
import { weightOf } from "../shared/weights.js";

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

/** Whether a row of a tile is covered. */
export const isCovered = ({ veil = [] }, tile, row) =>
  veil.some(({ tile: of, first, count }) => of === tile && row >= first && row < first + count);

/** By how many rows the word that a tile's head follows stands after the one that a row reads: 1 where
 * it follows the word that the row predicts. */
export const shiftOf = ({ query, shifts }, sides, tile) => (hasFollowing(sides[query]) && shifts?.[tile] ? 1 : 0);

/** Whether the rows of a side predict its next tokens, one by one. */
export const hasFollowing = ({ following, every }) => every === 1 && following?.length > 0;

const bytesOf = ({ rows, columns, cells }, tile, row) => {
  const start = (tile * rows + row) * columns;
  return cells.subarray(start, start + columns);
};

/** The weights of a row of a tile. */
export const weightsOf = (part, tile, row) => Float32Array.from(bytesOf(part, tile, row), weightOf);

/** How many keys a row of a tile may attend to. */
export const visibleKeys = (part, tile, row) => bytesOf(part, tile, row).filter(Boolean).length;
