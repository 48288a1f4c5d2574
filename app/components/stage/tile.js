// A head as one image.

import { clamp } from "./camera.js";

/** The pixels of a head, one for each cell; masked ones have none. */
function image(state, camera, part, tile) {
  const key = `${part.kind} ${tile}`;
  if (camera.images.has(key)) return camera.images.get(key);
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [part.columns, part.rows];
  const pen = sheet.getContext("2d"), data = pen.createImageData(part.columns, part.rows);
  const pixels = new Uint32Array(data.data.buffer);
  for (let row = 0; row < part.rows; row++)
    for (let column = 0; column < part.columns; column++)
      if (!state.isMasked(part, tile, row, column))
        pixels[row * part.columns + column] = camera.pixels[Math.round(255 * clamp(state.weight(part, tile, row, column)))];
  pen.putImageData(data, 0, 0);
  camera.images.set(key, sheet);
  return sheet;
}

/** A head in a box; `where` is null where it is seen elsewhere whether it is off. */
export function drawTile(state, camera, { part, tile, where }, { x, y, w, h }, alpha = 1, radius = 3) {
  const { cx, colours } = camera, isOff = where && state.isOff(where);
  cx.save();
  cx.globalAlpha = alpha * (isOff ? 0.35 : 1);
  cx.beginPath();
  cx.roundRect(x, y, w, h, radius);
  cx.clip();
  cx.fillStyle = colours.paper;
  cx.fillRect(x, y, w, h);
  cx.fillStyle = camera.hatch();
  cx.fillRect(x, y, w, h);
  cx.fillStyle = colours.flat; // no mask: a question covers it
  for (const { tile: of, first, count } of part.veil) if (of === tile) cx.fillRect(x, y + (first * h) / part.rows, w, (count * h) / part.rows);
  cx.imageSmoothingEnabled = part.columns > w || part.rows > h;
  cx.drawImage(image(state, camera, part, tile), x, y, w, h);
  cx.restore();
  if (!isOff) return;
  cx.save();
  cx.globalAlpha = alpha;
  cx.strokeStyle = colours.done;
  cx.lineWidth = 2;
  cx.beginPath();
  cx.moveTo(x, y);
  cx.lineTo(x + w, y + h);
  cx.stroke();
  cx.restore();
}
