// A text as a model writes it, one token at a time.

import { fill, ramp, stopsOf } from "../components/shared/colours.js";
import { asOneStop, element, onRecolour, outwards, painted, roomBelow } from "../components/shared/dom.js";
import { minus, percent } from "../components/shared/numbers.js";
import { shape } from "../components/shared/svg.js";
import { weightOf } from "../components/shared/weights.js";

const PAUSE = 1100; // ms for a look at each step
const FATES = { grew: "kept", ended: "finished", "left-out": "dropped" };
const [LEAST, MOST] = [0.6, 1.4]; // of the page's letters: how far those of heads and bars may be off
const MARGIN = 8; // px
const FILLED = 0.005; // words with a smaller weight stay bare
const MANY_LAYERS = 12; // more than these stand closely, so that all are in view

/** Small ones to one digit, so that they differ. */
const probability = (share) => percent(share, share < 0.1 ? 1 : 0);

/** What stays when the server sends other data: where one is, and whether it plays. */
const state = { step: 0, timer: 0, of: "" };

export class Walk {
  constructor(root, data, tell) {
    this.root = root;
    this.data = data;
    this.tell = tell;
    const of = JSON.stringify(data.text);
    if (of !== state.of) [state.of, state.step] = [of, 0]; // of another text
    this.build();
    this.go(state.step);
    if (!state.timer) return;
    clearTimeout(state.timer); // that of the picture before, which is gone
    state.timer = 0;
    if (state.step < data.steps.length - 1) this.toggle();
  }

  build() {
    const { data } = this;
    const button = (label, title, onclick) => {
      const made = element("button", { type: "button", title, "aria-label": title }, label);
      made.onclick = onclick;
      return made;
    };
    this.play = button("▶", "Play", () => this.toggle());
    this.finding = element("p", { class: "finding", role: "status" });
    const controls = element("div", { class: "controls" },
      button("◀", "Previous token (←)", () => this.walk(-1)), this.play,
      button("▶❘", "Next token (→)", () => this.walk(1)));
    this.text = element("p", { class: "tokens source" }, element("b", {}, data.title),
      ...data.text.map((label) => element("span", { dir: "auto" }, label)));
    this.written = element("p", { class: "tokens written" }, element("b", {}, "Output"),
      ...data.written.map((label, step) => {
        const token = element("span", { dir: "auto", "data-step": step }, label);
        token.onclick = () => this.go(step);
        return token;
      }));
    this.heads = element("div", { class: "heads", role: "group", "aria-label": "Heads" });
    this.bars = element("div", { class: "bars", role: "group", "aria-label": "Next tokens" });
    this.lens = element("div", { class: "lens" });
    this.beams = this.search();
    const left = element("div", { class: "left" }, this.heads, this.lens);
    const right = element("div", { class: "right" }, this.bars);
    this.both = element("div", { class: "both" }, left, right);
    const frame = element("div", { class: "frame", tabindex: "0", role: "application",
      "aria-label": "The output token by token. Arrow keys step, the space bar plays." },
    this.finding, controls, this.text, this.written, this.beams, this.both);
    frame.onkeydown = (event) => this.key(event);
    const focused = this.root.activeElement ?? this.root.contains(document.activeElement);
    this.root.querySelector(".frame")?.remove();
    this.root.append(frame);
    if (focused) frame.focus({ preventScroll: true });
    frame.style.setProperty("--hl-focus", data.colour);
    this.frame = frame;
    const observer = new ResizeObserver(() => {
      if (frame.isConnected) this.fit();
      else observer.disconnect(); // others stand in its place
    });
    for (const node of outwards(frame)) observer.observe(node); // the bar may grow
    onRecolour(frame, () => this.showHeads());
  }

  /** Letters of heads and bars that end where the window does, small or large; in a narrow one all
   * is scrolled. */
  fit() {
    const { both } = this;
    const room = roomBelow(both) - MARGIN;
    both.style.fontSize = "";
    if (matchMedia("(max-width: 639px)").matches) return;
    const share = Math.min(MOST, Math.max(LEAST, room / both.scrollHeight));
    both.style.fontSize = `${share}em`;
    // Larger letters may not fit side by side.
    if (share > 1 && both.scrollHeight > room) both.style.fontSize = "";
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest(".columns")) return; // the beams scroll by them
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) this.walk(by);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.data.steps.length - 1);
    else if (event.key === " " && event.target === this.frame) this.toggle();
    else return;
    event.preventDefault();
  }

  walk(by) {
    this.pause();
    this.go(state.step + by);
  }

  toggle() {
    if (state.timer) return this.pause();
    const next = () => {
      if (!this.frame.isConnected || state.step >= this.data.steps.length - 1) return this.pause();
      this.go(state.step + 1);
      state.timer = setTimeout(next, PAUSE);
    };
    if (state.step >= this.data.steps.length - 1) this.go(0);
    state.timer = setTimeout(next, PAUSE);
    this.name("❚❚", "Pause");
  }

  pause() {
    clearTimeout(state.timer);
    state.timer = 0;
    this.name("▶", "Play");
  }

  /** What the button that plays shows and says. */
  name(sign, title) {
    this.play.textContent = sign;
    this.play.title = title;
    this.play.setAttribute("aria-label", title);
  }

  go(step) {
    const { steps, written } = this.data;
    if (!steps.length) return;
    state.step = Math.min(Math.max(step, 0), steps.length - 1);
    this.finding.textContent = this.sentence(state.step);
    [...this.written.querySelectorAll("span")].forEach((token, i) => {
      token.classList.toggle("now", i === state.step);
      token.classList.toggle("later", i > state.step);
    });
    const gone = [this.bars, this.heads].some((box) => box.matches(":focus-within"));
    this.showBars(steps[state.step], written[state.step]);
    this.showHeads();
    this.showLens(steps[state.step]);
    if (gone) this.frame.focus({ preventScroll: true }); // with the button that had the keyboard
    requestAnimationFrame(() => painted("generate", state.step));
  }

  /** Who wrote the token of a step, and how certain the model is of it and elsewhere, unless a
   * probability is no number. */
  sentence(step) {
    const { steps, written, writer, given } = this.data;
    const shares = steps.map(({ best, chosen }) => best.find(([id]) => id === chosen)[2]);
    const other = steps[step].best.find(([id]) => id !== steps[step].chosen);
    const where = `Token ${step + 1} of ${steps.length}: `;
    const who = where + (step < given ? `you chose “${written[step]}”.`
      : `model ${writer} writes “${written[step]}”.`);
    if (!shares.every(Number.isFinite) || !other) return who;
    const own = shares.slice(given);
    const least = given + own.indexOf(Math.min(...own));
    const place = `of ${step === least ? "this one" : `token ${least + 1}, “${written[least]}”`}`;
    const model = given ? "Of the tokens that it chose itself, the model" : "The model";
    return `${who} Its probability is ${probability(shares[step])}; the best alternative, “${other[1]}”, has ` +
      `${probability(other[2])}.${own.length ? ` ${model} is least certain ${place}.` : ""}`;
  }

  showBars({ best, rest, chosen }, label) {
    const largest = Math.max(...best.map(([, , share]) => share), rest);
    const bar = (id, text, share, drawn) => {
      const row = element(id === null ? "div" : "button",
        id === null ? { class: "bar rest" } : { class: "bar", type: "button" },
        element("span", { dir: "auto" }, text),
        element("span", { class: "length", style: `--share: ${(100 * share) / largest}%; ` +
          `--drawn: ${drawn === share ? 0 : (100 * drawn) / Math.max(largest, drawn)}%` }),
        element("span", {}, probability(share)));
      row.classList.toggle("chosen", id === chosen);
      if (id !== null && id !== chosen) {
        row.title = `Continue with “${text}” instead`;
        row.onclick = () => {
          this.pause();
          this.tell("choose", [state.step, id]);
        };
      }
      return row;
    };
    this.bars.replaceChildren(
      element("h3", {}, `Next token: “${label}”`),
      ...best.map(([id, text, share, drawn]) => bar(id, text, share, drawn)),
      bar(null, "all others", rest, rest));
    asOneStop(this.bars, [...this.bars.querySelectorAll("button")]);
  }

  showHeads() {
    const { rows, focus } = this.data;
    const weights = rows.weights[state.step];
    const colour = ramp(stopsOf(this.data.palette, getComputedStyle(this.frame).color));
    const [text, written] = [this.text, this.written].map((box) => box.querySelectorAll("span"));
    for (const token of [...text, ...written]) {
      fill(token);
      token.removeAttribute("title");
    }
    if (!weights) {
      this.heads.replaceChildren(element("p", {}, `${rows.name} reads the source before the first ` +
        "token is written, so it is the same at every step."));
      return;
    }
    weights[focus.layer]?.[focus.head]?.forEach((byte, i) => {
      const place = rows.places[i];
      const token = place === null ? null : place < 0 ? written[-place - 1] : text[place];
      if (!token) return;
      if (weightOf(byte) >= FILLED) fill(token, colour(weightOf(byte)));
      token.title = `The selected head attends to it: ${percent(weightOf(byte))}`;
    });
    const strip = (values, layer, head) => {
      const cells = values.map((byte, i) => element("i", { title: `${rows.keys[i]} ${percent(weightOf(byte))}`,
        style: `background: rgb(${colour(weightOf(byte)).map(Math.round).join(" ")})` }));
      const name = `layer ${rows.numbers[layer]} head ${head + 1}`;
      const box = element("button", { class: "strip", type: "button", title: name, "aria-label": name },
        ...cells);
      box.classList.toggle("chosen", layer === focus.layer && head === focus.head);
      box.onclick = () => this.tell("focus", [layer, head]);
      return box;
    };
    this.heads.classList.toggle("many", weights.length > MANY_LAYERS);
    this.heads.replaceChildren(
      element("h3", {}, `${rows.name}: what each head attends to at this token`),
      element("div", { class: "layer numbers", "aria-hidden": "true" }, element("span", {}, "head"),
        ...(weights[0] ?? []).map((_, head) => element("b", {}, head + 1))),
      ...weights.map((heads, layer) => element("div", { class: "layer" },
        element("span", {}, `layer ${rows.numbers[layer]}`),
        ...heads.map((values, head) => strip(values, layer, head)))));
    const strips = [...this.heads.querySelectorAll("button")];
    asOneStop(this.heads, strips, weights[0]?.length, this.heads.querySelector(".chosen") ?? strips[0]);
  }

  showLens({ lens }) {
    this.lens.replaceChildren(
      element("h3", {}, "Prediction after each layer"),
      ...lens.map(([label, share], depth) => element("div", { class: "bar" },
        element("span", {}, depth ? `layer ${depth}` : "embedding"),
        element("span", { class: "length", style: `--share: ${100 * share}%; --drawn: 0%` }),
        element("span", { dir: "auto" }, `${label} ${probability(share)}`))));
  }

  /** A beam search, a column a step, with lines from what was continued. */
  search() {
    const { beams } = this.data;
    const box = element("div", { class: "beams" });
    if (!beams.length) return box;
    const best = winning(beams);
    this.cells = beams.map((step, i) => step.map(({ label, score, fate, path }, place) => {
      const written = minus(score.toFixed(2));
      const cell = element("span", { class: fate, title: `${path}: score ${written}, ${FATES[fate]}`,
        dir: "auto" }, `${label} `, element("small", {}, written));
      cell.classList.toggle("winner", best[i] === place);
      return cell;
    }));
    const columns = this.cells.map((cells, i) => element("div", { class: "column" },
      element("b", {}, i + 1), ...cells));
    this.ties = shape("svg", { class: "ties", "aria-hidden": "true" });
    const search = element("div", { class: "columns", tabindex: "0", role: "region", "aria-label": "Beams" },
      this.ties, ...columns);
    new ResizeObserver(() => this.tie(best)).observe(search);
    box.append(element("h3", {}, "Beams: kept, finished and dropped candidates, each with its score"), search);
    return box;
  }

  /** A line to each candidate from the one that it continues. */
  tie(best) {
    const { ties, cells } = this;
    const columns = ties.parentElement;
    ties.style.width = ties.style.height = 0; // else the lines of before count
    const [width, height] = [columns.scrollWidth, columns.scrollHeight];
    ties.style.width = `${width}px`;
    ties.style.height = `${height}px`;
    const middle = (cell) => cell.offsetTop + cell.offsetHeight / 2;
    ties.replaceChildren(...this.data.beams.flatMap((step, i) => step.flatMap(({ parent, fate }, place) => {
      if (parent === null) return [];
      const [from, to] = [cells[i - 1][parent], cells[i][place]];
      const [start, end] = [from.offsetLeft + from.offsetWidth, to.offsetLeft];
      const half = (start + end) / 2;
      const line = shape("path", { class: fate, d: `M ${start} ${middle(from)} ` +
        `C ${half} ${middle(from)}, ${half} ${middle(to)}, ${end} ${middle(to)}` });
      line.classList.toggle("winner", best[i] === place && best[i - 1] === parent);
      return [line];
    })));
  }
}

/** The place of the best hypothesis' candidate in each step, from the step where it ended. */
function winning(beams) {
  const places = beams.map(() => null);
  for (let step = beams.length - 1, at = null; step >= 0; step--) {
    if (at === null) at = beams[step].findIndex(({ winner }) => winner);
    if (at < 0) at = null;
    places[step] = at;
    if (at !== null) at = beams[step][at].parent;
  }
  return places;
}
