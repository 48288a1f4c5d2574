// Vectors in the plane, as arrows from zero whose thickness is their weight, and the numbers beside
// them: a dictionary whose vectors are dragged.

import { element } from "../shared/dom.js";
import { minus, percent, tenths } from "../shared/numbers.js";
import { shape } from "../shared/svg.js";

const STEP = 0.1; // vectors are dragged from tenth to tenth, so that the digits shown are all there are
const REACH = 10; // the largest number a dragged vector may hold
const REST = 150; // ms without a key before the server, or a screen reader, hears of it

const pair = ([x, y]) => `(${tenths(x)}, ${tenths(y)})`;

/** Scores q·k, the same divided, weights, and the values so weighted: a soft dictionary. */
export function lookUp(query, keys, values, divisor) {
  const scores = keys.map((key) => query[0] * key[0] + query[1] * key[1]);
  const scaled = scores.map((score) => score / divisor);
  const largest = Math.max(...scaled);
  const parts = scaled.map((score) => Math.exp(score - largest));
  const total = parts.reduce((sum, part) => sum + part, 0);
  const weights = parts.map((part) => part / total);
  const answer = weights.reduce((sum, weight, i) => sum + weight * values[i], 0);
  return { scores, scaled, weights, answer };
}

/** A number to so many digits, with all of them in its `value`; a tiny one as m · 10ⁿ. */
function number(value, digits) {
  const data = element("data", { value });
  if (value && Math.abs(value) < 0.5 * 10 ** -digits) {
    const [mantissa, exponent] = value.toExponential(1).split("e");
    data.append(minus(mantissa), " · 10", element("sup", {}, minus(exponent)));
  } else data.append(minus(value.toFixed(digits)));
  return data;
}

function table(caption, head, rows) {
  return element("table", {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...head.map((name) =>
      element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...rows.map(({ cells: [first, ...cells], share }) => {
      const row = element("tr", {}, element("th", { scope: "row", dir: "auto" }, first),
        ...cells.map((cell) => element("td", {}, cell)));
      if (share !== undefined) row.style.setProperty("--share", `${100 * share}%`);
      return row;
    })));
}

/** An arrow as one outline, so that a thick one ends in a point all the same. */
function arrow([x, y], [toX, toY], thick) {
  const length = Math.hypot(toX - x, toY - y);
  if (length < 9) return `M${toX - 5} ${toY}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z`; // no room: a dot
  const [across, down] = [(toX - x) / length, (toY - y) / length];
  const point = (along, aside) =>
    `${x + across * along - down * aside} ${y + down * along + across * aside}`;
  const head = Math.min(length, 9 + 1.4 * thick);
  const [half, wide] = [thick / 2, 4 + 1.1 * thick];
  return `M${[point(0, half), point(length - head, half), point(length - head, wide),
    point(length, 0), point(length - head, -wide), point(length - head, -half), point(0, -half)]
    .join("L")}Z`;
}

/** The plane itself: zero, lines with their numbers, and one scale for both directions. */
class Sheet {
  constructor(attributes) {
    this.grid = shape("g", { class: "grid", "aria-hidden": "true" });
    this.drawing = shape("g");
    this.labels = shape("g", { class: "labels", "aria-hidden": "true" });
    this.svg = shape("svg", attributes, this.grid, this.drawing, this.labels);
    this.brush = document.createElement("canvas").getContext("2d"); // measures letters
  }

  /** Shows at least the box [left, right, bottom, top] in so many pixels. */
  fit([left, right, bottom, top], width, height) {
    const style = getComputedStyle(this.svg);
    this.font = parseFloat(style.fontSize);
    this.brush.font = `600 ${this.font}px ${style.fontFamily}`;
    Object.assign(this, { width, height });
    this.unit = Math.min(width / (right - left), height / (top - bottom));
    this.zero = [(width - this.unit * (left + right)) / 2, (height + this.unit * (bottom + top)) / 2];
    for (const [name, value] of Object.entries({ width, height })) this.svg.setAttribute(name, value);
    this.grid.replaceChildren(...this.lines());
  }

  at([x, y]) {
    return [this.zero[0] + this.unit * x, this.zero[1] - this.unit * y];
  }

  from({ clientX, clientY }) {
    const box = this.svg.getBoundingClientRect();
    return [(clientX - box.left - this.zero[0]) / this.unit,
      (this.zero[1] - clientY + box.top) / this.unit];
  }

  lines() {
    const rough = (4 * this.font) / this.unit;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((times) => times * power >= rough) * power;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const drawn = [];
    for (const [i, room] of [[0, this.width], [1, this.height]]) {
      const most = Math.ceil(room / this.unit / step);
      for (let n = -most; n <= most; n++) {
        const place = Math.round(this.at([n * step, n * step])[i]) + 0.5;
        if (place < 0 || place > room) continue;
        const line = i ? `M0 ${place}H${this.width}` : `M${place} 0V${this.height}`;
        drawn.push(shape("path", { d: line, class: n ? "" : "axis" }));
        if (!n || place < 2 * this.font || place > room - 2 * this.font) continue;
        const [x, y] = this.at([0, 0]);
        const where = i ? { x: x - 0.3 * this.font, y: place + 0.35 * this.font, "text-anchor": "end" }
          : { x: place, y: y + 1.1 * this.font, "text-anchor": "middle" };
        drawn.push(shape("text", where, minus((n * step).toFixed(digits))));
      }
    }
    return drawn;
  }

  /** Writes labels {at, text, gap, class} where they hide neither each other nor the `taken`
   * places; the first ones first. One that fits nowhere is left out unless `must` be. */
  write(labels, taken = []) {
    const boxes = [...taken];
    const overlap = (a, b) => Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) *
      Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
    const written = [];
    for (const { at, text, gap, must, ...attributes } of labels) {
      const [x, y] = this.at(at);
      const [wide, high] = [this.brush.measureText(text).width + 4, 1.15 * this.font];
      const [east, south] = [x >= this.zero[0] ? 1 : -1, y > this.zero[1] ? 1 : -1];
      // Outwards first: the arrow comes from zero.
      const ways = [[east, 0], [east, south], [0, south], [east, -south], [-east, south],
        [0, -south], [-east, 0], [-east, -south]];
      let best = null;
      for (const [right, down] of ways) {
        const middle = x + right * (gap + wide / 2) * (down ? 0.8 : 1);
        const centre = y + down * (gap + high / 2) * (right ? 0.9 : 1);
        const box = [middle - wide / 2, centre - high / 2, middle + wide / 2, centre + high / 2];
        const outside = wide * high - overlap(box, [0, 0, this.width, this.height]);
        const cost = 10 * outside + boxes.reduce((sum, other) => sum + overlap(box, other), 0);
        if (!best || cost < best.cost - 0.01) best = { cost, box };
        if (cost < 0.01) break;
      }
      if (best.cost > 0.01 && !must) continue;
      // Off the page nothing can be read.
      const shift = Math.min(0, this.width - best.box[2]) || Math.max(0, -best.box[0]);
      const [left, top, right, bottom] = best.box;
      boxes.push([left + shift, top, right + shift, bottom]);
      written.push(shape("text", {
        x: (left + right) / 2 + shift, y: (top + bottom) / 2 + 0.34 * this.font,
        "text-anchor": "middle", ...attributes,
      }, text));
    }
    this.labels.replaceChildren(...written);
  }
}

/** What both pictures are: a frame with the plane on one side and the numbers on the other. */
class Picture {
  constructor(root, attributes) {
    this.sheet = new Sheet(attributes);
    this.side = element("div", { class: "side" }, this.sheet.svg);
    this.numbers = element("div", { class: "numbers" });
    this.live = element("p", { class: "live", role: "status" });
    this.frame = element("div", { class: "frame" }, this.side, this.numbers, this.live);
    root.append(this.frame);
    new ResizeObserver(() => {
      if (Math.abs(this.side.clientWidth - this.width) > 1) this.draw();
    }).observe(this.frame);
  }

  /** The room there is for the plane, in pixels. */
  room() {
    this.width = this.side.clientWidth;
    this.font = parseFloat(getComputedStyle(this.frame).fontSize);
    return [this.width, Math.min(this.width, 34 * this.font, Math.max(22 * this.font, 0.8 * innerHeight))];
  }

  say(text) {
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => (this.live.textContent = text), 2 * REST);
  }
}

/** The dictionary that answers by similarity. The first vector is the query. */
class LookUp extends Picture {
  constructor(root) {
    super(root, { role: "group", "aria-label": "Vectors in the plane, from minus 10 to 10" });
    this.line = shape("svg", { class: "line", "aria-hidden": "true" });
    this.answer = element("p", { class: "answer" });
    const reset = element("button", { type: "button" }, "Reset vectors");
    reset.onclick = () => this.reset();
    this.side.append(element("p", { class: "hint" },
      "Drag an arrow by its tip, or select it with Tab and move it with the arrow keys " +
      "(with Shift: steps of 0.1)."), reset);
    this.table = element("div");
    this.sum = element("p");
    this.numbers.append(this.table, this.answer, this.line, this.sum);
  }

  show(data) {
    const first = !this.data;
    this.data = data;
    this.frame.style.setProperty("--hl-focus", data.colour);
    if (first) this.reset();
    else this.draw();
  }

  reset() {
    this.vectors = this.data.vectors.map(({ name, at }) => ({ name, at: [...at] }));
    this.handles = this.vectors.map((vector, i) => this.handle(vector, i));
    // The query last: it lies on top.
    this.sheet.drawing.replaceChildren(...this.handles.map(({ group }) => group).reverse());
    this.draw();
    this.say(this.sentence());
  }

  handle(vector, i) {
    const body = shape("path");
    const grip = shape("circle", { class: "grip" });
    const group = shape("g", {
      class: i ? "vector" : "vector query", tabindex: 0, role: "slider",
      "aria-roledescription": "vector", "aria-label": `${i ? "Key" : "Query"} ${vector.name}`,
      "aria-valuemin": -REACH, "aria-valuemax": REACH,
    }, body, grip);
    // A finger on a tip drags it; elsewhere it scrolls the page. (touch-action is not heeded here.)
    group.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    group.onpointerdown = (event) => {
      if (event.button) return;
      group.setPointerCapture(event.pointerId);
      group.focus({ preventScroll: true });
      // The tip stays under the pointer as it was taken, it does not jump to it.
      const [x, y] = this.sheet.from(event);
      this.offset = [vector.at[0] - x, vector.at[1] - y];
      event.preventDefault();
    };
    group.onpointermove = (event) => {
      if (!group.hasPointerCapture(event.pointerId)) return;
      const [x, y] = this.sheet.from(event);
      this.move(vector, [x + this.offset[0], y + this.offset[1]]);
    };
    group.onkeydown = (event) => {
      const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      const way = ways[event.key];
      if (!way) return;
      const step = event.shiftKey ? STEP : 1;
      this.move(vector, vector.at.map((number, i) => number + step * way[i]));
      event.preventDefault();
    };
    return { group, body, grip };
  }

  move(vector, to) {
    vector.at = to.map((number) =>
      Math.min(REACH, Math.max(-REACH, Math.round(number / STEP) / (1 / STEP))));
    this.draw();
    this.say(this.sentence());
    clearTimeout(this.resting);
    if (this.data.hears)
      this.resting = setTimeout(() => this.reportQuery(this.vectors[0].at), REST);
  }

  draw() {
    const { data, vectors, sheet } = this;
    if (!vectors || !this.side.clientWidth) return;
    const [width, height] = this.room();
    const edge = REACH * 1.06;
    sheet.fit([-edge, edge, -edge, edge], Math.min(width, height), Math.min(width, height));
    const [query, ...keys] = vectors.map(({ at }) => at);
    this.result = lookUp(query, keys, data.values, data.divisor);
    const { weights } = this.result;
    vectors.forEach(({ at }, i) => {
      const { group, body, grip } = this.handles[i];
      const tip = sheet.at(at);
      const thick = (i ? 0.15 + 0.7 * weights[i - 1] : 0.3) * this.font;
      body.setAttribute("d", arrow(sheet.zero, tip, thick));
      for (const [name, value] of Object.entries({ cx: tip[0], cy: tip[1], r: 1.3 * this.font }))
        grip.setAttribute(name, value);
      group.setAttribute("aria-valuenow", at[0]);
      group.setAttribute("aria-valuetext", pair(at) + (i ? `, weight ${percent(weights[i - 1], 1)}` : ""));
    });
    sheet.write(vectors.map(({ name, at }) =>
      ({ at, text: name, gap: 0.6 * this.font, must: true })));
    this.tell();
    this.drawLine();
  }

  tell() {
    const { data, result } = this;
    const [query, ...keys] = this.vectors;
    const scaled = data.divisor !== 1;
    const head = ["word", "key", "q·k", ...(scaled ? [data.divided] : []), "weight", "value"];
    this.table.replaceChildren(table(
      element("span", {}, "q: ", element("b", {}, query.name), ` = ${pair(query.at)}`),
      head,
      keys.map(({ name, at }, i) => ({
        share: result.weights[i],
        cells: [name, pair(at), number(result.scores[i], 2),
          ...(scaled ? [number(result.scaled[i], 4)] : []),
          number(result.weights[i], 4), tenths(data.values[i])],
      }))));
    const sum = keys.flatMap((_, i) => {
      const value = data.values[i];
      return [i ? " + " : "", number(result.weights[i], 4), " · ",
        value < 0 ? `(${tenths(value)})` : tenths(value)];
    });
    this.answer.replaceChildren("Answer: ", element("b", {}, number(result.answer, 4)));
    this.sum.replaceChildren("= ", ...sum);
  }

  /** The values on a line, as large as their weights, and the answer among them. */
  drawLine() {
    const { font, data } = this;
    const width = Math.min(this.numbers.clientWidth, 34 * font);
    const [low, high] = [Math.min(...data.values, 0), Math.max(...data.values, 0)];
    const edge = 1.6 * font;
    const place = (value) => edge + ((value - low) / (high - low)) * (width - 2 * edge);
    const y = 2.6 * font;
    this.line.setAttribute("width", width);
    this.line.setAttribute("height", 5 * font);
    const x = place(this.result.answer);
    this.line.replaceChildren(
      shape("path", { class: "axis", d: `M0 ${y}H${width}M${place(0)} ${y - 0.3 * font}v${0.6 * font}` }),
      ...data.values.flatMap((value, i) => [
        shape("circle", { class: "value", cx: place(value), cy: y,
          r: (0.2 + 0.7 * Math.sqrt(this.result.weights[i])) * font }),
        shape("text", { x: place(value), y: y + 2 * font, "text-anchor": "middle" }, tenths(value)),
      ]),
      shape("path", { class: "here", d: `M${x} ${y - 0.2 * font}l${-0.5 * font} ${-0.9 * font}h${font}Z` }),
      shape("text", { class: "here", x: Math.min(width - 3 * font, Math.max(3 * font, x)), y: font,
        "text-anchor": "middle" }, `answer ${minus(this.result.answer.toFixed(2))}`),
    );
  }

  sentence() {
    const [query, ...keys] = this.vectors;
    const parts = keys.map(({ name }, i) => `${name} ${percent(this.result.weights[i], 1)}`);
    return `${query.name} ${pair(query.at)}: ${parts.join(", ")}. ` +
      `Answer ${minus(this.result.answer.toFixed(2))}.`;
  }
}

/** One picture a place on the page, which outlives the runs of the script. */
export default function ({ data, parentElement, setTriggerValue }) {
  const picture = (parentElement.picture ??= new LookUp(parentElement));
  picture.reportQuery = (query) => setTriggerValue("query", query);
  picture.show(data);
}
