// The bars of one row at a stop, and halfway between two. Where a bar stands, and how high it is,
// is worked out first; what is between two stops is between the two.

import MASKED from "../../masked.json" with { type: "json" };
import { inkOn, ramp, stopsOf } from "../shared/colours.js";
import { element } from "../shared/dom.js";
import { sized } from "../shared/heatmap.js";
import { shape } from "../shared/svg.js";
import { one, power, share, two } from "./arithmetic.js";

export const MOST_BARS = 40; // of more keys, those with the largest weights have bars
const NARROWEST = 0.002; // of the strip: narrower shares have no ribbon
const FADED = 0.07; // what is left to see of a value without weight
const SMALL = 0.005; // a weight that is written as <1%

/** The keys that have bars, in the order of the text. */
export function shownKeys(head, row) {
  if (head.keys.length <= MOST_BARS) return [...head.keys.keys()];
  return row.best.slice(0, MOST_BARS).sort((a, b) => a - b);
}

/** Where all is drawn. `room`: {width, height, letter, measure}; `now`, `other`: as finding takes
 * them. Heights are of pixels, below zero downwards. */
export function layout(head, stop, isScaled, now, other, room) {
  const keys = shownKeys(head, now);
  const { width, letter, measure } = room;
  const size = Math.min(1.22 * letter, Math.max(0.92 * letter, width / 62));
  const outputWidth = stop === "output" ? Math.max(4.2 * size, 0.11 * width) : 0;
  const across = (width - outputWidth) / keys.length;
  const widest = Math.max(...keys.map((key) => measure(head.keys[key], 1.05 * size)));
  const isTurned = widest > across - 4;
  const words = isTurned ? Math.min(widest, 6.5 * size) + 0.7 * size : 1.9 * size;
  const top = 1.6 * size;
  const tall = Math.max(room.height - top - words, 4 * size);
  const of = (numbers, scale) => keys.map((key) => (now.allowed.has(key) ? numbers[key] * scale : 0));
  const plan = { keys, size, across, outputWidth, isTurned, words, top, ghost: null, stop,
    bar: Math.min(0.62 * across, 3.6 * size), width, height: room.height,
    weights: keys.map((key) => now.weights[key]), isMasked: keys.map((key) => !now.allowed.has(key)) };
  const text = (write, numbers) => keys.map((key) => (now.allowed.has(key) ? write(numbers[key]) : ""));
  if (stop === "scores" || stop === "scaled") {
    const known = keys.filter((key) => now.allowed.has(key)).map((key) => now.raw[key]);
    const [above, below] = [Math.max(0, ...known), Math.max(0, ...known.map((score) => -score))];
    const scale = (tall - 1.3 * size) / (above + below || 1);
    const [before, after] = isScaled ? [now.raw, now.scaled] : [other.scaled, now.raw];
    const isRaw = stop === "scores";
    return { ...plan, base: top + above * scale, heights: of(isRaw ? now.raw : after, scale),
      ghost: isRaw ? null : of(before, scale),
      texts: isRaw ? text(one, now.raw) : text(two, after) };
  }
  const base = stop === "output" ? top + 0.3 * tall : top + tall;
  if (stop === "exp") {
    const largest = now.scaled[now.best[0]] ?? 0;
    const powers = now.scaled.map((score) => Math.exp(score - largest));
    return { ...plan, base, heights: of(powers, 0.97 * tall), texts: text(power, now.scaled) };
  }
  const strip = stop === "weights" ? 1.8 * size : 0;
  const scale = stop === "weights" ? tall - strip - 1.8 * size : 0.3 * tall - 0.2 * size;
  return { ...plan, base, strip, heights: of(now.weights, scale), texts: text(share, now.weights),
    ghost: isScaled || !other.weights ? null : of(other.weights, scale) };
}

export class Picture {
  constructor(head) {
    this.head = head;
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.svg = shape("svg", { role: "img" });
    this.node = element("div", { class: "plot" }, this.canvas, this.svg);
    const pen = document.createElement("canvas").getContext("2d");
    this.measure = (text, size) => {
      pen.font = `${size}px ${this.font}`;
      return pen.measureText(text).width;
    };
  }

  /** The room there is, with the page's letters. */
  room(height) {
    const style = getComputedStyle(this.node);
    [this.font, this.ink] = [style.fontFamily, style.color];
    this.colour = ramp(stopsOf(this.head.palette, this.ink));
    return { width: this.node.clientWidth, height, letter: parseFloat(style.fontSize), measure: this.measure };
  }

  fill(weight) {
    return `rgb(${this.colour(weight).map(Math.round)})`;
  }

  /** Paints a layout, or what is a `part` of the way to it from another one of the same keys. */
  paint(to, row, from = null, part = 1) {
    const between = (a, b) => a + (b - a) * part;
    const at = from ? { ...to, base: between(from.base, to.base), across: between(from.across, to.across),
      bar: between(from.bar, to.bar), heights: to.heights.map((h, i) => between(from.heights[i], h)),
      weights: to.weights.map((w, i) => between(from.weights[i], w)) } : to;
    const { size, keys, base, bar } = at;
    const x = (i) => (i + 0.5) * at.across;
    const heaviest = to.weights.indexOf(Math.max(...to.weights));
    const late = Math.min(1, Math.max(0, (part - 0.55) * 2.3)); // what appears as bars arrive
    const drawn = [this.line(0, keys.length * at.across, base)];
    if (to.strip && late) drawn.push(...this.strip(to, at, late));
    keys.forEach((key, i) => {
      const height = at.heights[i];
      const left = x(i) - bar / 2;
      if (at.isMasked[i]) {
        drawn.push(shape("rect", { x: left, y: at.top, width: bar, height: at.height - at.top - at.words,
          fill: "url(#masked)", class: "masked" }));
        return;
      }
      drawn.push(shape("rect", { class: "bar", x: left, y: Math.min(base, base - height), width: bar,
        height: Math.max(1.5, Math.abs(height)), rx: 2, fill: this.fill(at.weights[i]), "data-key": key }));
      const ghost = to.ghost?.[i];
      if (Math.abs(ghost) > 2 && late)
        drawn.push(shape("rect", { class: "ghost", x: left, y: Math.min(base, base - ghost), width: bar,
          height: Math.abs(ghost), opacity: late }));
    });
    if (late) drawn.push(...this.numbers(to, at, x, heaviest, late));
    drawn.push(...this.words(at, x, heaviest));
    if (to.stop === "output") drawn.push(...this.output(to, at, x, row, part));
    else sized(this.canvas, 1, 1);
    this.svg.replaceChildren(this.pattern(), ...drawn);
    for (const [name, value] of [["width", to.width], ["height", to.height]]) this.svg.setAttribute(name, value);
    this.svg.style.fontSize = `${size}px`;
  }

  line(from, to, y) {
    return shape("line", { class: "base", x1: from, x2: to, y1: y, y2: y });
  }

  pattern() {
    const { spacing, width, opacity } = MASKED;
    return shape("defs", {}, shape("pattern", { id: "masked", width: spacing, height: spacing,
      patternUnits: "userSpaceOnUse" }, shape("path", { d: `M0 ${spacing}L${spacing} 0`,
      stroke: "currentColor", "stroke-width": width, opacity })));
  }

  /** The numbers of the bars; of two that would meet, the one with less weight is left out. */
  numbers(to, at, x, heaviest, opacity) {
    const taken = [];
    const order = [...to.keys.keys()].filter((i) => to.texts[i])
      .sort((a, b) => to.weights[b] - to.weights[a]);
    return order.flatMap((i) => {
      const size = to.size * (i === heaviest ? 1.15 : 0.92);
      const half = this.measure(to.texts[i], size) / 2 + 2;
      const height = at.heights[i];
      const y = height >= 0 ? at.base - Math.max(height, 1.5) - 0.35 * size : at.base - height + 1.02 * size;
      const isMet = taken.some(([left, right, top]) =>
        x(i) + half > left && x(i) - half < right && Math.abs(top - y) < size);
      if (isMet) return [];
      taken.push([x(i) - half, x(i) + half, y]);
      const isFaint = to.stop !== "scores" && to.stop !== "scaled" && to.weights[i] < SMALL && i !== heaviest;
      return [shape("text", { x: x(i), y, "text-anchor": "middle", "font-size": size, opacity,
        class: i === heaviest ? "number best" : isFaint ? "number faint" : "number" }, to.texts[i])];
    });
  }

  words(at, x, heaviest) {
    const { size } = at;
    // Labels stand below the bars; at the last stop, between the bars and the values.
    const top = at.stop === "output" ? at.base : at.height - at.words;
    return at.keys.map((key, i) => {
      const turned = at.isTurned ? { "text-anchor": "end", transform:
        `translate(${x(i) + 0.35 * size} ${top + 0.4 * size}) rotate(-90)` }
        : { x: x(i), y: top + 1.25 * size, "text-anchor": "middle" };
      return shape("text", { "font-size": Math.min(1.05 * size, at.isTurned ? Math.max(0.7 * size, 0.95 * at.across) : 99),
        class: i === heaviest ? "best" : "", ...turned }, this.head.keys[key]);
    });
  }

  /** All weights as one strip of 100%, and a ribbon from each share to its bar. */
  strip(to, at, late) {
    const [left, right] = [at.across / 2 - at.bar / 2, (at.keys.length - 0.5) * at.across + at.bar / 2];
    const drawn = [];
    const { size, strip } = to;
    let from = left;
    const piece = (weight, name, target, height) => {
      const width = weight * (right - left) * late;
      if (weight > NARROWEST && height !== null) {
        const [y, end] = [strip + 2, at.base - height - 1.75 * size];
        const half = Math.min(at.bar, Math.max(3, width)) / 2;
        const middle = (y + end) / 2;
        if (end > y + 8) drawn.push(shape("path", { class: "ribbon", fill: this.fill(weight), opacity: 0.17 * late,
          d: `M${from} ${y}H${from + width - 1}C${from + width - 1} ${middle} ${target + half} ${middle} ${target + half} ${end}` +
            `H${target - half}C${target - half} ${middle} ${from} ${middle} ${from} ${y}Z` }));
      }
      const fill = height === null ? "var(--st-border-color)" : this.fill(weight);
      drawn.push(shape("rect", { class: "share", x: from, y: 0, width: Math.max(0, width - 1), height: strip, fill }));
      const long = `${name} ${share(weight)}`;
      const fits = [long, share(weight)].find((text) => this.measure(text, size) < width - 0.6 * size);
      if (fits) drawn.push(shape("text", { x: from + width / 2, y: 0.67 * strip, "text-anchor": "middle",
        class: "share", fill: height === null ? "currentColor" : inkOn(this.colour(weight)) }, fits));
      from += width;
    };
    to.keys.forEach((key, i) => piece(to.weights[i], this.head.keys[key], (i + 0.5) * at.across, at.heights[i]));
    const rest = 1 - to.weights.reduce((sum, weight) => sum + weight, 0);
    const others = this.head.keys.length - to.keys.length;
    if (others && rest > NARROWEST) piece(rest, `the other ${others}`, 0, null);
    return drawn;
  }

  /** Each value as a column of its numbers, faded by its weight, and their sum, the head's output. */
  output(to, at, x, row, part) {
    const { head } = this;
    const top = at.base + at.words + 0.3 * to.size;
    const tall = to.height - top - 2;
    const down = tall / head.width;
    const context = sized(this.canvas, to.width, to.height);
    let largest = 1e-9;
    for (const value of head.values) largest = Math.max(largest, Math.abs(value));
    const palette = ramp(stopsOf(head.differences, this.ink));
    const column = (values, left, width, opacity) => {
      context.globalAlpha = opacity;
      values.forEach((value, i) => {
        context.fillStyle = `rgb(${palette(0.5 + value / largest / 2).map(Math.round)})`;
        context.fillRect(left, top + i * down, width, Math.max(down - (down > 4 ? 0.7 : 0), 0.5));
      });
    };
    const appear = Math.min(1, 1.5 * part);
    const drawn = at.keys.flatMap((key, i) => {
      if (at.isMasked[i]) return [];
      const fade = FADED + (1 - FADED) * Math.sqrt(to.weights[i]);
      const opacity = 1 + (fade - 1) * Math.max(0, 2 * part - 1);
      const values = head.values.subarray(key * head.width, (key + 1) * head.width);
      column([...values], x(i) - at.bar / 2, at.bar, opacity * appear);
      return [shape("rect", { class: "column", x: x(i) - at.bar / 2 - 0.5, y: top - 0.5, width: at.bar + 1, height: tall + 1 })];
    });
    const late = Math.max(0, 2.5 * (part - 0.6));
    const start = to.keys.length * at.across;
    const [left, width] = [start + 0.36 * to.outputWidth, 0.6 * to.outputWidth];
    if (late) column(row.output, left, width, Math.min(1, late));
    const [middle, beside] = [top + tall / 2 + 0.3 * to.size, start + 0.18 * to.outputWidth];
    return [...drawn,
      shape("rect", { class: "sum", x: left - 1, y: top - 1, width: width + 2, height: tall + 2, opacity: late }),
      shape("text", { x: beside, y: middle, "text-anchor": "middle", "font-size": 1.5 * to.size, opacity: late }, "="),
      shape("text", { class: "best", x: left + width / 2, y: top - 0.5 * to.size, "text-anchor": "middle", opacity: late }, "output")];
  }
}
