// What every depth draws with: colours, rectangles, text, and time.

import { inkOn, pixelColours, schemeOf, stopsOf } from "../shared/colours.js";
import { percent } from "../shared/numbers.js";

// Of the paper, in light and in dark: each colour has one meaning.
const INKS = {
  light: { paper: "#fcfbf8", ink: "#1b1d22", soft: "#5d6068", pale: "#696c75", selected: "#c2410c", frame: "#d9480f",
    done: "#0b56a8", lost: "#b4232a", hatch: "#b9b5aa", line: "#e4e1d9", flat: "#d5d2c8",
    thread: "#d3cfc3", keys: "#e0a030", keysText: "#8a5a00", forward: "#d3e8e4", forwardText: "#1f5551" },
  dark: { paper: "#121417", ink: "#eceae4", soft: "#a9abb2", pale: "#8b8e96", selected: "#ff8a4c", frame: "#ff8a4c",
    done: "#7db7ff", lost: "#ff7b7b", hatch: "#5a5e68", line: "#2b2e34", flat: "#3a3e46",
    thread: "#454a53", keys: "#c49240", keysText: "#d9ab5c", forward: "#24383a", forwardText: "#a9cfcb" },
};
export const EDGE = 6; // px by which the canvas is larger than the stage: frames at its edge are not cut

export const lerp = (a, b, u) => a + (b - a) * u;
export const between = (a, b, u) =>
  ({ x: lerp(a.x, b.x, u), y: lerp(a.y, b.y, u), w: lerp(a.w, b.w, u), h: lerp(a.h, b.h, u) });
export const clamp = (x) => Math.max(0, Math.min(1, x));
export const ease = (u) => (u < 0.5 ? 4 * u ** 3 : 1 - (2 - 2 * u) ** 3 / 2);
/** A weight that softmax gave: never 0. */
export const written = (weight) => (weight > 0 ? percent(weight) : "<1%");
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Camera {
  frame = 0;
  images = new Map(); // tile → its pixels

  constructor(canvas) {
    this.canvas = canvas;
    this.cx = canvas.getContext("2d");
  }

  /** Takes its size from its place, letters [small, middle, large] in px, and the colours of a page
   * whose text has the colour `ink`. */
  size(letters, ink, palette) {
    const box = this.canvas.parentElement.getBoundingClientRect(), density = Math.max(1, devicePixelRatio || 1);
    [this.W, this.H] = [box.width, box.height];
    [this.s, this.m, this.l] = letters;
    this.isNarrow = innerWidth <= 640;
    this.canvas.width = (this.W + 2 * EDGE) * density;
    this.canvas.height = (this.H + 2 * EDGE) * density;
    this.cx.setTransform(density, 0, 0, density, EDGE * density, EDGE * density);
    this.colours = INKS[schemeOf(ink)];
    this.pixels = pixelColours(stopsOf(palette, ink));
    this.hatching = null;
    this.images.clear();
  }

  clear() {
    this.cx.clearRect(-EDGE, -EDGE, this.W + 2 * EDGE, this.H + 2 * EDGE);
  }

  rgb(weight) {
    const pixel = this.pixels[Math.round(255 * clamp(weight))];
    return [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  }

  colour(weight) {
    return `rgb(${this.rgb(weight)})`;
  }

  /** The letters that can be read on a weight. */
  inkOn(weight) {
    return inkOn(this.rgb(weight));
  }

  font(px, weight = 400) {
    this.cx.font = `${weight} ${px}px "Source Sans", system-ui, sans-serif`;
  }

  width(text, px, weight) {
    this.font(px, weight);
    return this.cx.measureText(text).width;
  }

  text(text, x, y, { px = this.s, weight = 400, colour = this.colours.ink, align = "left", alpha = 1, most } = {}) {
    if (alpha <= 0) return;
    const { cx } = this;
    cx.globalAlpha = alpha;
    this.font(px, weight);
    cx.fillStyle = colour;
    cx.textAlign = align;
    cx.textBaseline = "middle";
    cx.fillText(text, x, y, most);
    cx.globalAlpha = 1;
  }

  fill({ x, y, w, h }, colour, alpha = 1, radius = 3) {
    const { cx } = this;
    cx.globalAlpha = alpha;
    cx.fillStyle = colour;
    cx.beginPath();
    cx.roundRect(x, y, Math.max(0, w), Math.max(0, h), Math.max(0, Math.min(radius, w / 2, h / 2)));
    cx.fill();
    cx.globalAlpha = 1;
  }

  /** A frame around what is selected. */
  box({ x, y, w, h }, alpha = 1, pad = 3, line = 2.5) {
    if (alpha <= 0) return;
    const { cx } = this;
    cx.save();
    cx.globalAlpha = alpha;
    cx.strokeStyle = this.colours.frame;
    cx.lineWidth = line;
    cx.beginPath();
    cx.roundRect(x - pad, y - pad, w + 2 * pad, h + 2 * pad, 5);
    cx.stroke();
    cx.restore();
  }

  dotted({ x, y, w, h }, alpha) {
    const { cx } = this;
    cx.save();
    cx.globalAlpha = alpha;
    cx.strokeStyle = this.colours.pale;
    cx.setLineDash([3, 3]);
    cx.strokeRect(x, y, w, h);
    cx.restore();
  }

  hatch() {
    if (this.hatching) return this.hatching;
    const tile = document.createElement("canvas"), density = Math.max(1, devicePixelRatio || 1);
    tile.width = tile.height = 6 * density;
    const pen = tile.getContext("2d");
    pen.scale(density, density);
    pen.strokeStyle = this.colours.hatch;
    pen.beginPath();
    for (const from of [-6, 0, 6]) {
      pen.moveTo(from, 6);
      pen.lineTo(from + 6, 0);
    }
    pen.stroke();
    this.hatching = this.cx.createPattern(tile, "repeat");
    this.hatching.setTransform(new DOMMatrix().scale(1 / density));
    return this.hatching;
  }

  /** Calls draw(u), u from 0 to 1, over so many ms; then `end`. */
  move(ms, draw, end = () => {}) {
    cancelAnimationFrame(this.frame);
    const long = isStill() ? 0 : ms, start = performance.now();
    const step = (now) => {
      const u = long ? clamp((now - start) / long) : 1;
      draw(u);
      if (u < 1) this.frame = requestAnimationFrame(step);
      else end();
    };
    if (long) this.frame = requestAnimationFrame(step);
    else step(start);
  }
}
