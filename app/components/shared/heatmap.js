// Matrices as cells in colour, with their numbers where there is room, and the cell that is under the
// pointer.

import MASKED from "../../masked.json" with { type: "json" };
import { inkOn } from "./colours.js";
import { element } from "./dom.js";
import { short } from "./numbers.js";

/** Gives a canvas so many pixels of the page, as sharp as the screen; its context, which counts in
 * the page's. */
export function sized(canvas, width, height) {
  const sharp = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(sharp, sharp);
  return context;
}

/** Cells {left, top, across, down, rows, columns} as rectangles of `colour(value)`, where `numbers`
 * with their numbers, as `text`. What is no number stays blank. */
export function drawCells(context, cells, values, colour, numbers, text = short) {
  const { left, top, across, down, rows, columns } = cells;
  const gap = across > 8 && down > 8 ? 1 : 0;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const value = values[row * columns + column];
      if (!Number.isFinite(value)) continue;
      const shown = colour(value);
      const [red, green, blue] = shown;
      context.fillStyle = `rgb(${red},${green},${blue})`;
      const [x, y] = [left + column * across, top + row * down];
      // Cells narrower than a pixel must not let the page shine through between them.
      context.fillRect(x, y, Math.max(across - gap, 1), Math.max(down - gap, 1));
      if (!numbers) continue;
      context.fillStyle = inkOn(shown);
      context.fillText(text(value), x + across / 2, y + down / 2);
    }
}

/** Which of the cells {left, top, across, down, rows, columns} a point is in: [row, column], or
 * null beside them. */
export function cellUnder(x, y, { left, top, across, down, rows, columns }) {
  const [row, column] = [Math.floor((y - top) / down), Math.floor((x - left) / across)];
  return row >= 0 && row < rows && column >= 0 && column < columns ? [row, column] : null;
}

/** Where on an element the pointer is. */
export function pointIn(node, { clientX, clientY }) {
  const box = node.getBoundingClientRect();
  return [clientX - box.left, clientY - box.top];
}

/** Text that is read from below. */
export function writeTurned(context, text, x, y, widest) {
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  context.fillText(text, 0, 0, widest);
  context.restore();
}

/** Fills what is masked: thin lines in an ink, on nothing. */
export function hatching(ink) {
  const { spacing, width, opacity } = MASKED;
  const canvas = element("canvas", { width: spacing, height: spacing });
  const context = canvas.getContext("2d");
  context.strokeStyle = ink;
  context.lineWidth = width;
  context.globalAlpha = opacity;
  for (const shift of [-spacing, 0, spacing]) {
    context.moveTo(shift, spacing);
    context.lineTo(shift + spacing, 0);
  }
  context.stroke();
  return context.createPattern(canvas, "repeat");
}
