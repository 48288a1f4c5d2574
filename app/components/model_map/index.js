// The model as the paper's figure 1: the input at the bottom, the output at the top, stacks beside
// each other, and an arrow from what a stack gives to every attention elsewhere that attends to it.
// What changes glides from its old place to the new one.

import { element } from "../shared/dom.js";
import { shape } from "../shared/svg.js";

// In units of the picture, which is then made as large as there is room.
const LETTER = 14.5;
const SMALL = 13;
const BOX = 21; // height of a box of one line
const LINE = 16; // of each further one
const PAD = 8;
const AIRIEST = 3.5; // times the length of an arrow, where there is height for it
const WIDEST = 330; // a box
const LEAST = 212; // a box narrower than that gives the margins up
const MARGIN = 66; // for a stack's name and N ×
const RESIDUAL = 22; // from a box to the arrow around it
const CHANNEL = 50; // between two stacks
const SUM = 7; // radius of ⊕
const ROW = 20; // of tokens
const LETTERS = 14; // Q, K and V beside their arrows
const FORK = 46; // from the stem to its outer tines
const BEFORE = 236; // the part that a block replaces, beside it
const ASIDE_BEFORE = 24; // from the frame to it

const GLIDE = 650; // ms

const SMALLEST = 0.75; // px per unit; the frame scrolls before letters get smaller
const LARGEST = 2;
const LOWEST = 280; // px; in a lower window the page scrolls
const BAR = 16; // px of a scroll bar

const ruler = element("canvas").getContext("2d");
const widths = new Map(); // font and words → pixels

class Figure {
  constructor(root) {
    this.root = root;
    this.items = []; // the blocks
    this.svg = shape("svg", { role: "group", "aria-label": "The model" });
    this.legend = element("p", { class: "legend" });
    this.frame = element("div", { class: "frame" }, this.legend, this.svg);
    root.querySelector(".frame")?.remove(); // the style beside it stays
    root.append(this.frame);
    const host = root.getRootNode().host ?? root;
    this.page = host.closest(".stMain");
    // What stands above the figure may come after it.
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.frame);
    const above = host.closest(".stMainBlockContainer");
    if (above) this.observer.observe(above);
    window.addEventListener("resize", (this.refit = () => this.fit()));
    document.fonts.ready.then(() => {
      widths.clear();
      this.draw();
    });
  }

  /** Another model. */
  update(model) {
    const before = this.stacks && this.now();
    Object.assign(this, model);
    this.legend.replaceChildren(...this.means.map(([example, words]) =>
      element("span", {}, element("b", {}, example), `: ${words}`)));
    this.draw();
    if (before && !isStill()) this.glide(before);
  }

  end() {
    this.observer.disconnect();
    window.removeEventListener("resize", this.refit);
  }

  // What is drawn, from the bottom up; y falls, as the screen has it

  draw() {
    if (!this.stacks) return;
    this.family = getComputedStyle(this.frame).fontFamily;
    [this.width, this.highest] = this.room();
    this.layout(this.width);
    // Made smaller to fit the height, it leaves room at its sides: for wider boxes. Or there is
    // height left: for longer arrows.
    const scale = this.scale();
    const left = this.highest / scale - this.size[1];
    if (scale < 1 && scale * this.size[0] < this.width) this.layout(this.width / scale);
    else if (left > 0 && this.wide) {
      const { arrows } = this.columns.reduce((a, b) => (a.top < b.top ? a : b));
      this.layout(this.width, Math.min(1 + left / arrows, AIRIEST));
    }
    const [width, height] = this.size;
    this.svg.setAttribute("viewBox", `0 ${2 - height} ${width} ${height}`);
    this.svg.style.width = `${Math.floor(this.scale() * width)}px`;
    this.svg.style.height = `${Math.floor(this.scale() * height)}px`;
    const above = this.svg.getBoundingClientRect().top - this.frame.getBoundingClientRect().top + this.frame.scrollTop;
    this.frame.style.maxHeight = this.wide ? `${this.highest + above}px` : "";
    this.svg.replaceChildren(shape("g", { class: "lines" }, ...this.lines), ...this.nodes);
  }

  /** Everything, in a width. */
  layout(width, air = 1) {
    const count = this.stacks.length;
    this.air = air;
    const room = (margin) => (width - (count - 1) * CHANNEL) / count - margin - RESIDUAL - 14;
    this.wide = room(MARGIN) >= LEAST;
    const replaces = this.stacks.flatMap(blocksOf).some(({ was }) => was);
    this.replaced = replaces && room(MARGIN + ASIDE_BEFORE + BEFORE) >= LEAST ? ASIDE_BEFORE + BEFORE : 0;
    width -= this.replaced;
    this.margin = this.wide ? MARGIN : 0;
    this.box = this.wide ? Math.min(room(MARGIN), WIDEST) : Math.max(room(0) / 0.85, 140);
    this.lines = [];
    this.nodes = [];
    this.items = [];
    this.bridges = [];
    let start = 0;
    this.columns = this.stacks.map((stack, i) => {
      const column = this.column(stack, i, start);
      if (blocksOf(stack).every(gone)) {
        this.lines = [shape("g", { class: "gone" }, ...this.lines)];
        this.nodes = [shape("g", { class: "gone" }, ...this.nodes)];
      }
      start += this.margin + this.box + RESIDUAL + 14 + CHANNEL;
      return column;
    });
    for (const bridge of this.bridges) this.bridge(bridge, this.columns);
    const top = Math.min(...this.columns.map(({ top }) => top)) - 2;
    this.size = [start - CHANNEL + this.replaced, 2 - top];
  }

  column(stack, index, start) {
    const mirrored = index > 0; // residual arrows and N × stand outside, arrows across between
    const { box } = this;
    const left = start + (mirrored ? 8 : this.margin + 6 + RESIDUAL);
    const at = {
      index, mirrored, box, middle: left + box / 2,
      frame: mirrored ? start : start + this.margin,
      frameWidth: box + RESIDUAL + 14,
      arrows: 0, // their length in all
    };
    let y = this.tokens(stack.input, at, -ROW, "input");
    y = this.arrow(at, y, 8);
    const [embedding, position] = stack.before;
    y = this.block(embedding, at, y);
    if (position) y = this.positions(position, at, y); // rotary positions are no part of it
    at.embedded = y - 3;
    y = this.stem(at, y, 6);
    stack.frames.forEach((frame, i) => {
      if (i) y = this.arrow(at, y, 9);
      y = this.layer(frame, at, y, i ? "" : stack.title);
    });
    for (const block of stack.after) {
      y = this.block(block, at, this.arrow(at, y, 9));
    }
    at.given = y - 5;
    for (const block of stack.answers) {
      const touching = block.part.endsWith("softmax");
      y = this.block(block, at, touching ? this.stem(at, y, 3) : this.arrow(at, y, 10));
    }
    at.top = y - (stack.answers.length ? 0 : 8);
    return at;
  }

  /** The sum of the embeddings and the positional encoding, which comes from outside. */
  positions(block, at, y) {
    const end = at.middle + (at.mirrored ? 1 : -1) * (SUM + 14);
    const far = at.box / 2 + RESIDUAL + 6 + this.margin;
    const outer = at.middle + (at.mirrored ? far : -far);
    const [left, width] = [Math.min(end, outer), Math.abs(end - outer)];
    const height = this.height(block, width);
    const gap = Math.max(6, height / 2 - SUM + 3);
    const middle = y - gap - SUM;
    this.stem(at, y, gap);
    this.sum(at.middle, middle, gone(block));
    this.boxed(block, left, middle - height / 2, width, height, at);
    const edge = at.middle + (at.mirrored ? 1 : -1) * SUM;
    this.path(`M${end},${middle} H${edge}`, gone(block));
    this.tip(edge, middle, at.mirrored ? "left" : "right", gone(block));
    return this.stem(at, middle - SUM, gap - 4);
  }

  /** A layer in its frame. */
  layer({ title, blocks }, at, bottom, name) {
    let y = this.stem(at, bottom, 3);
    for (let i = 0; i < blocks.length; ) {
      const unit = blocks.filter(({ sublayer }) => sublayer === blocks[i].sublayer);
      y = unit.at(-1).part === "add_norm" ? this.postNorm(unit, at, y) : this.preNorm(unit, at, y);
      i += unit.length;
    }
    if (!this.wide) y = this.stem(at, y, ROW);
    const top = this.stem(at, y, 6);
    const box = { x: at.frame, y: top, width: at.frameWidth, height: bottom - top, rx: 9 };
    this.lines.unshift(shape("rect", { ...box, class: "layer" }));
    this.name([name, title].filter(Boolean), at, top, bottom);
    return top;
  }

  /** What a frame is, beside it or, without margins, at its top. */
  name(words, at, top, bottom) {
    const middle = at.mirrored ? at.frame + at.frameWidth + this.margin / 2 : this.margin / 2;
    const box = this.wide
      ? { x: middle - 30, y: (top + bottom) / 2 - 13 * words.length, width: 60,
        height: 26 * words.length }
      : { x: at.frame + 4, y: top + 3, width: at.frameWidth - 8, height: ROW };
    const lines = this.wide ? words : [words.join(" ")];
    const [x, anchor] = this.wide ? [middle, "middle"] : [box.x + 4, "start"];
    const texts = lines.map((line, i) => {
      const many = line.endsWith("×");
      return this.text(line, x, box.y + (this.wide ? 18 : 15) + 26 * i,
        many && this.wide ? 21 : LETTER, anchor, many ? "strong" : "");
    });
    this.nodes.push(shape("g", { class: "name" }, ...texts));
  }

  /** Sublayer, then the sum and its norm in one box, as in the paper. */
  postNorm([sublayer, norm], at, y) {
    const start = y - 4;
    y = this.queries(sublayer, at, y, 15, 6);
    y = this.block(sublayer, at, y);
    y = this.stem(at, y, 3);
    const top = this.block(norm, at, y);
    const [middle, edge] = [(y + top) / 2, this.edge(at, at.mirrored)];
    this.residual(at, start, middle, edge, sublayer);
    return top;
  }

  /** Norm, then the sublayer, then the sum. */
  preNorm([norm, sublayer], at, y) {
    const start = y - 3;
    y = this.block(norm, at, this.arrow(at, y, 9));
    y = this.queries(sublayer, at, y, 7, 3);
    y = this.block(sublayer, at, y);
    const middle = this.stem(at, y, 4) - SUM;
    this.sum(at.middle, middle);
    if (norm.was?.at_sum) this.replaces(norm.was, at, middle, at.middle + SUM);
    this.residual(at, start, middle, at.middle + (at.mirrored ? SUM : -SUM), sublayer);
    return middle - SUM;
  }

  /** The stream around a sublayer. */
  residual(at, start, middle, edge, sublayer) {
    const around = this.edge(at, at.mirrored) + (at.mirrored ? 1 : -1) * (RESIDUAL - 8);
    this.path(`M${at.middle},${start} H${around} V${middle} H${edge}`, `residual ${gone(sublayer)}`);
    this.tip(edge, middle, at.mirrored ? "left" : "right");
  }

  /** The right or the left edge of the blocks. */
  edge({ middle, box }, isRight) {
    return middle + ((isRight ? 1 : -1) * box) / 2;
  }

  /** What enters a sublayer from below: queries, keys and values, or the first alone. */
  queries(sublayer, at, y, height, fork) {
    const end = this.arrow(at, y, sublayer.attends ? fork + LETTERS : height);
    const letter = (name, x) => this.lines.push(this.text(name, x + 5, end + 12, SMALL, "start", `qkv ${gone(sublayer)}`));
    if (!sublayer.attends) return end;
    if (sublayer.keys) {
      this.bridges.push({ at, y: end - BOX / 2, sublayer });
      letter("Q", at.middle);
      return end;
    }
    const [left, right] = [at.middle - FORK, at.middle + FORK];
    this.path(`M${left},${end} V${y - fork} H${right} V${end}`);
    for (const [name, x] of [["V", left], ["K", at.middle], ["Q", right]]) {
      this.tip(x, end, "up");
      letter(name, x);
    }
    return end;
  }

  /** Keys and values from another stack. */
  bridge({ at, y, sublayer }, columns) {
    const [name, output] = sublayer.keys;
    const from = columns[this.stacks.findIndex((stack) => stack.name === name)];
    const onwards = from.index < at.index;
    // Each source has its own line between the stacks.
    const across = (onwards ? at : from).frame - CHANNEL * (onwards ? 0.62 : 0.38);
    const edge = this.edge(at, !onwards);
    const out = output ? `M${from.middle},${from.given + 5} V${from.given}` :
      `M${from.middle},${from.embedded}`;
    this.path(`${out} H${across} V${y} H${edge}`, `bridge ${gone(sublayer)}`);
    this.tip(edge, y, onwards ? "right" : "left", gone(sublayer));
    this.lines.push(this.text("K, V", edge + (onwards ? -12 : 12), y - 5, SMALL,
      onwards ? "end" : "start", `qkv ${gone(sublayer)}`));
  }

  /** A row of tokens behind the name of the text, as many as there is room for. */
  tokens([name, tokens], at, top, kind) {
    const [start, end] = [at.frame, at.frame + at.frameWidth];
    const baseline = top + 14.5;
    const parts = [this.text(name, start, baseline, LETTER, "start", "strong")];
    let x = start + this.measure(name, LETTER, 600) + 8;
    for (let i = 0; i < tokens.length; i++) {
      const width = this.measure(tokens[i], SMALL, 400) + 8;
      const last = i === tokens.length - 1;
      if (x + width > end - (last ? 0 : 16)) {
        parts.push(this.text("…", x, baseline, LETTER, "start", ""));
        break;
      }
      parts.push(shape("rect", { x, y: top + 1, width, height: ROW - 2, rx: 4 }),
        this.text(tokens[i], x + 4, baseline - 0.5, SMALL, "start", ""));
      x += width + 3;
    }
    this.nodes.push(shape("g", { class: kind, role: "img",
      "aria-label": `${name}: ${tokens.join(" ")}` }, ...parts));
    return top;
  }

  block(block, at, y) {
    const height = this.height(block, at.box);
    this.boxed(block, at.middle - at.box / 2, y - height, at.box, height, at);
    return y - height;
  }

  height(block, width) {
    return BOX + (this.wrapped(block, width).length - 1) * LINE;
  }

  /** The lines of a box: name and numbers beside each other, else the words of the name as they
   * fit, then the numbers. */
  wrapped(block, width) {
    const { numbers, name } = block;
    const room = width - 2 * PAD;
    if (this.measure(name, LETTER, 600) + 12 + this.measure(numbers, SMALL, 400) <= room)
      return [[name, numbers]];
    const lines = [];
    for (const word of name.split(" ")) {
      const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
      if (lines.length && this.measure(longer, LETTER, 600) <= room) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return [...lines.map((line) => [line, ""]), ["", numbers]];
  }

  boxed(block, x, y, width, height, at) {
    const node = this.drawBox(block, { role: "img", "data-part": block.id, class: block.mark,
      "aria-label": block.label, style: `--kind: ${block.colour}` }, x, y, width, height);
    this.items.push({ node, column: at.index, y: y + height / 2 });
    if (block.was && !block.was.at_sum) this.replaces(block.was, at, y + height / 2, x + width);
  }

  /** What stood in the place of a block, beside the only stack. */
  replaces(was, at, middle, edge) {
    if (!this.replaced) return;
    const [x, height] = [at.frame + at.frameWidth + ASIDE_BEFORE, this.height(was, BEFORE)];
    this.drawBox(was, { role: "img", class: "was", "aria-label": `Before: ${was.name}, ${was.numbers}` },
      x, middle - height / 2, BEFORE, height);
    this.path(`M${x},${middle} H${edge}`, "turn");
    this.tip(edge, middle, "left");
  }

  drawBox(words, attributes, x, y, width, height) {
    const texts = this.wrapped(words, width).flatMap(([name, numbers], i) => {
      const baseline = y + 15.5 + i * LINE;
      return [
        name && this.text(name, x + PAD, baseline, LETTER, "start", "strong"),
        numbers && this.text(numbers, name ? x + width - PAD : x + PAD, baseline - 0.5, SMALL,
          name ? "end" : "start", "", width - 2 * PAD),
      ].filter(Boolean);
    });
    const node = shape("g", attributes, shape("rect", { x, y, width, height, rx: 5 }), ...texts);
    this.nodes.push(node);
    return node;
  }

  text(words, x, y, size, anchor, kind, widest = Infinity) {
    const long = this.measure(words, size, kind ? 600 : 400) > widest;
    const squeezed = long ? { textLength: widest, lengthAdjust: "spacingAndGlyphs" } : {};
    return shape("text", { x, y, "font-size": size, "text-anchor": anchor, class: kind,
      ...squeezed }, words);
  }

  measure(words, size, weight) {
    const font = `${weight} ${size}px ${this.family}`;
    const key = `${font} ${words}`;
    if (!widths.has(key)) {
      ruler.font = font;
      widths.set(key, ruler.measureText(words).width);
    }
    return widths.get(key);
  }

  // What moves

  /** Where the blocks are, in pixels of the frame. */
  now() {
    return new Map(this.items.map(({ node }) => [node.dataset.part, this.rect(node)]));
  }

  rect(node) {
    const [{ left, top, width, height }, frame] = [node.firstChild, this.frame].map((one) => one.getBoundingClientRect());
    return { left: left - frame.left, top: top - frame.top, width, height };
  }

  /** Blocks glide from where they were, and what is new appears. */
  glide(places) {
    const [timing, scale] = [{ duration: GLIDE, easing: "ease" }, this.scale()];
    for (const { node } of this.items) {
      const [from, to] = [places.get(node.dataset.part), this.rect(node)];
      const [x, y] = from ? [(from.left - to.left) / scale, (from.top - to.top) / scale] : [];
      node.animate(from
        ? [{ transform: `translate(${x}px, ${y}px) scale(${from.width / to.width}, ${from.height / to.height})` },
          { transform: "none" }]
        : [{ opacity: 0 }, {}], timing);
    }
    const late = [{ opacity: 0 }, { opacity: 0, offset: 0.6 }, {}];
    for (const node of this.svg.querySelectorAll(".lines, .was")) node.animate(late, timing);
  }

  path(d, kind = "") {
    this.lines.push(shape("path", { d, class: kind }));
  }

  stem(at, y, length) {
    this.path(`M${at.middle},${y} v${-length}`);
    return y - length;
  }

  arrow(at, y, length) {
    at.arrows += length;
    this.tip(at.middle, y - this.air * length, "up");
    return this.stem(at, y, this.air * length);
  }

  tip(x, y, towards, kind = "") {
    const d = { up: "l-3.5,5 h7 z", left: "l5,-3.5 v7 z", right: "l-5,-3.5 v7 z" }[towards];
    this.path(`M${x},${y} ${d}`, `tip ${kind}`);
  }

  /** ⊕ */
  sum(x, y, kind = "") {
    this.lines.push(shape("circle", { cx: x, cy: y, r: SUM, class: kind }));
    this.path(`M${x - SUM},${y} h${2 * SUM} M${x},${y - SUM} v${2 * SUM}`, kind);
  }

  // Where it stands

  /** Width and height that there are, whether or not a scroll bar is there now. */
  room() {
    const above = this.svg.getBoundingClientRect().top + this.frame.scrollTop + (this.page?.scrollTop ?? 0);
    const below = Math.floor(Math.max(window.innerHeight - above - 6, LOWEST));
    return [Math.max(this.frame.offsetWidth - BAR, 100), below];
  }

  /** Pixels per unit: all of it in the window, unless it is on a phone. */
  scale() {
    const [width, height] = this.size;
    const across = Math.min(this.width / width, LARGEST);
    if (!this.wide) return across;
    return Math.max(Math.min(across, this.highest / height), Math.min(SMALLEST, across));
  }

  fit() {
    if (!this.frame.isConnected) return this.end(); // another page is shown
    if (this.room().some((size, i) => size !== [this.width, this.highest][i])) this.draw();
  }
}

const blocksOf = ({ before, frames, after, answers }) =>
  [before, ...frames.map(({ blocks }) => blocks), after, answers].flat();
const gone = ({ mark }) => (mark === "gone" ? mark : ""); // a class
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const figures = new WeakMap(); // where → figure

export default function ({ data, parentElement }) {
  const content = JSON.stringify(data);
  let figure = figures.get(parentElement);
  if (figure?.content === content) return;
  if (!figure) figures.set(parentElement, (figure = new Figure(parentElement)));
  figure.content = content;
  figure.update(data);
}
