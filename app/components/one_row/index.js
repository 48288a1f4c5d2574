// One row of a head, alive: five stops from its scores to its output. Stop, row and √d are in the
// address, and only there: a step takes no run of the script, and a run changes none of them.

import { OTHERS } from "../shared/arrows.js";
import { element, onRecolour, outwards, painted, roomBelow } from "../shared/dom.js";
import { keyOf } from "../shared/keys.js";
import { percent } from "../shared/numbers.js";
import { places } from "../shared/places.js";
import { one, power, rowOf, share, STOPS, two, unpack } from "./arithmetic.js";
import { layout, MOST_BARS, Picture } from "./picture.js";
import { Rows } from "./rows.js";
import { finding } from "./words.js";

const MOVE = 650; // ms from stop to stop
const LOOK = 900; // ms at each stop, while it plays
const LEAST = [17, 24]; // in letters: the least height of bars, and where the matrix stands above them
const FOOT = 0.9; // in letters: below the picture
const SIDE = { formula: "F", code: "C", numbers: "N" }; // parts of the column beside, and their keys
const TITLES = { formula: "Formula", code: "Code", numbers: "Numbers" };
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const ease = (t) => (t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);
const token = ([text, isToken]) => (isToken ? element("b", {}, text) : text);

const stopNames = (head, isScaled) => {
  const root = `÷ √${head.width || "d"}`;
  return ["q · k", isScaled ? root : element("s", {}, root), "exp", "÷ sum", "mix of the values"];
};

class OneRow {
  constructor(head, root) {
    this.head = head;
    this.path = location.pathname;
    this.stops = head.weights_alone ? ["weights"] : STOPS;
    this.said = element("p", { class: "finding", "aria-live": "polite" });
    this.tabs = STOPS.map((stop) => {
      const tab = element("button", { type: "button", role: "tab", id: `stop-${stop}`, "aria-controls": "bars" });
      tab.disabled = !this.stops.includes(stop);
      tab.onclick = () => this.go({ stop });
      return tab;
    });
    this.rail = element("i");
    const track = element("div", { class: "track" }, element("div", { class: "rail" }, this.rail),
      element("div", { class: "stops", role: "tablist", "aria-label": "Stop" }, ...this.tabs));
    this.picture = new Picture(head);
    this.caption = element("p", { class: "caption" });
    this.panel = element("div", { role: "tabpanel", id: "bars" }, this.picture.node);
    this.rows = new Rows(head, this.allWeights(true), (row) => this.go({ row }));
    this.play = element("button", { type: "button", class: "play" });
    this.play.onclick = () => this.playing(!this.timer);
    this.switch = element("button", { type: "button", role: "switch", class: "switch" }, element("i"),
      ` divide by √${head.width}`);
    this.switch.onclick = () => this.go({ isScaled: !this.now.isScaled });
    this.openers = Object.entries(SIDE).map(([part, key]) => {
      const button = element("button", { type: "button", "aria-controls": part }, TITLES[part], " ", element("kbd", {}, key));
      button.onclick = () => this.open(part);
      return button;
    });
    const by = (step, name, sign) => {
      const button = element("button", { type: "button", "aria-label": name }, sign);
      button.onclick = () => this.go({ row: this.now.row + step });
      return button;
    };
    this.named = element("span");
    this.notes = element("div", { class: "notes" });
    this.stepper = element("div", { class: "stepper" }, by(-1, "Row before", "‹"), this.named, by(1, "Next row", "›"));
    this.left = element("div", { class: "left" },
      element("div", { class: "acts" }, ...(head.weights_alone ? [] : [this.play, this.switch])),
      this.stepper, this.rows.node, this.notes,
      element("p", { class: "hint" }, ...this.hints()),
      element("div", { class: "openers" }, ...(head.weights_alone ? this.openers.slice(2) : this.openers)));
    this.side = element("aside", { class: "side", "aria-label": "Formula, code and numbers" });
    this.frame = element("div", { class: "frame" }, this.said,
      element("div", { class: "body" }, this.left,
        element("div", { class: "middle" }, track, this.caption, this.panel), this.side));
    root.querySelector(".frame")?.remove(); // the style beside it stays
    root.append(this.frame);
    this.frame.style.setProperty("--hl-focus", head.focus);
    this.observer = new ResizeObserver(() => this.fit());
    for (const node of [this.panel, ...outwards(this.frame)]) this.observer.observe(node);
    onRecolour(this.frame, () => this.fit(true));
  }

  hints() {
    const key = (text) => element("kbd", {}, text);
    const row = [key("↑"), " ", key("↓"), " row"];
    if (this.head.weights_alone) return row;
    return [key("←"), " ", key("→"), " stop  ", ...row, element("br"), key("D"), " √d on and off  ",
      key("space"), " play"];
  }

  /** The weights of all rows, NaN where masked. */
  allWeights(isScaled) {
    const { head } = this;
    const columns = head.keys.length;
    const all = new Float32Array(head.mask.length).fill(NaN);
    head.rows.forEach((_, row) => {
      const { weights, allowed } = rowOf(head, row, isScaled);
      for (const key of allowed) all[row * columns + key] = weights[key];
    });
    return all;
  }

  /** What the address asks for, or else how the picture opens. */
  asked() {
    const asked = new URLSearchParams(location.search);
    const row = Number.parseInt(asked.get("follow"), 10) - 1;
    const isRow = row >= 0 && row < this.head.rows.length;
    return { row: isRow ? row : this.head.opening, isChosen: isRow,
      stop: this.stops.includes(asked.get("stop")) ? asked.get("stop") : this.stops[0],
      isScaled: !asked.getAll("without").includes("scaling") };
  }

  /** Shows what the address asks for by now, on this page. */
  follow(isNew = false) {
    const asked = this.asked();
    if (location.pathname !== this.path || (!isNew && JSON.stringify(asked) === JSON.stringify(this.now))) return;
    this.now = asked;
    if (isNew) this.playing(false);
    this.show(!isNew);
    if (isNew) this.fit();
  }

  /** Puts stop, row and √d into the address, where nobody asks the server. */
  tell() {
    const { row, stop, isScaled, isChosen } = this.now;
    const to = new URL(location.href);
    const asked = to.searchParams;
    const others = asked.getAll("without").filter((part) => part !== "scaling");
    asked.delete("without");
    for (const part of isScaled ? others : ["scaling", ...others]) asked.append("without", part);
    if (isChosen) asked.set("follow", `${row + 1} ${this.head.rows[row]}`);
    if (stop === STOPS[0] || this.head.weights_alone) asked.delete("stop");
    else asked.set("stop", stop);
    history.replaceState(history.state, "", to);
  }

  /** Another stop or row, or √d on or off: what is given. Whoever does so ends the playing. */
  go(change, { plays = false } = {}) {
    const row = Math.min(this.head.rows.length - 1, Math.max(0, change.row ?? this.now.row));
    const isChosen = this.now.isChosen || "row" in change;
    const now = { ...this.now, ...change, row, isChosen };
    if (["row", "stop", "isScaled", "isChosen"].every((part) => now[part] === this.now[part])) return;
    if (!plays) this.playing(false);
    this.now = now;
    this.tell();
    this.show(true);
  }

  step(by, how) {
    const stop = this.stops[this.stops.indexOf(this.now.stop) + by];
    if (stop) this.go({ stop }, how);
  }

  playing(on) {
    clearTimeout(this.timer);
    this.timer = null;
    const plays = on && !this.head.weights_alone;
    this.play.classList.toggle("on", plays);
    this.play.setAttribute("aria-label", plays ? "Pause" : "Play");
    this.play.title = plays ? "Pause (space)" : "Play (space)";
    if (!plays) return;
    const next = () => {
      this.timer = setTimeout(() => {
        this.step(1, { plays: true });
        if (this.now.stop === this.stops.at(-1) || !this.frame.isConnected) this.playing(false);
        else next();
      }, MOVE + LOOK);
    };
    if (this.now.stop === this.stops.at(-1)) this.go({ stop: this.stops[0] }, { plays: true });
    next();
  }

  open(part) {
    this.opened = this.opened === part ? null : part;
    this.drawSide();
  }

  /** All that a stop, a row or √d changes. */
  show(moves) {
    const { head } = this;
    const { row, stop, isScaled, isChosen } = this.now;
    this.row = rowOf(head, row, isScaled);
    this.other = head.weights_alone ? this.row : rowOf(head, row, !isScaled);
    this.said.replaceChildren(...finding(head, row, stop, isScaled, this.row, this.other).map(token));
    const at = STOPS.indexOf(stop);
    stopNames(head, isScaled).forEach((name, i) => {
      this.tabs[i].replaceChildren(element("span", {}, name));
      this.tabs[i].className = i < at ? "past" : "";
      this.tabs[i].setAttribute("aria-selected", String(i === at));
      this.tabs[i].tabIndex = i === at ? 0 : -1;
    });
    this.rail.style.width = `${25 * at}%`;
    this.panel.setAttribute("aria-labelledby", `stop-${stop}`);
    this.picture.svg.setAttribute("aria-label", `One bar for each of ${head.keys.length} keys, see Numbers`);
    this.switch.setAttribute("aria-checked", String(isScaled));
    this.named.textContent = head.rows[row];
    const passed = !isChosen && head.passed_over >= 0
      ? [`“${head.rows[head.passed_over]}”, the row that Attention marks, gives nearly all its weight to one ` +
        "key. This row is more divided."] : [];
    const differs = head.differing.includes(row)
      ? ["Here the model’s own weights are others than this softmax gives. See All steps."] : [];
    this.notes.replaceChildren(...[...head.notes, ...passed, ...differs].map((text) => element("p", {}, text)));
    this.caption.textContent = this.legend();
    if (this.isScaledDrawn !== isScaled) {
      this.isScaledDrawn = isScaled;
      this.rows.weights = this.allWeights(isScaled);
      if (this.rows.height) this.rows.draw(this.rows.height, row);
    } else if (this.rows.height) this.rows.mark(row);
    this.drawSide();
    this.draw(moves);
  }

  legend() {
    const { head, now: { stop, isScaled }, row } = this;
    const bars = stop === "output" ? [] : ["colour: the final weight, dark 0% to yellow 100%"];
    if (row.best.length > MOST_BARS) bars.push(`the ${MOST_BARS} keys with the largest weights`);
    else if (head.keys.length > MOST_BARS) bars.push("masked keys have no bar");
    else if (row.best.length < head.keys.length) bars.push("hatched: masked");
    if (stop === "scaled") bars.push(isScaled ? "dotted: before dividing" : `dotted: divided by √${head.width}`);
    if (stop === "exp" && row.best.length) bars.push(`sum ${power(row.logSum)}`);
    if (stop === "weights" && !isScaled) bars.push(`dotted: with √${head.width}`);
    if (stop === "output")
      bars.push(`${head.width} numbers of each value, faded by its weight`, "red: negative", "blue: positive");
    return bars.join(" · ");
  }

  /** Takes the height that the window leaves. */
  fit(isNew = false) {
    if (!this.frame.isConnected) return this.observer.disconnect(); // others stand in its place
    if (!this.frame.clientWidth) return; // hidden
    const letter = parseFloat(getComputedStyle(this.frame).fontSize);
    const isStacked = getComputedStyle(this.rows.node).display === "none";
    const least = LEAST[Number(isStacked)] * letter;
    const height = Math.max(least, roomBelow(this.panel) - FOOT * letter);
    const shown = [this.frame.clientWidth, this.panel.clientWidth, Math.round(height), letter].join();
    if (!isNew && shown === this.shown) return;
    Object.assign(this, { shown, height });
    const tall = height + this.panel.offsetTop - this.side.offsetTop;
    this.frame.style.setProperty("--tall", isStacked ? "none" : `${tall}px`);
    if (!isStacked) {
      const room = height + this.panel.getBoundingClientRect().top - this.rows.node.getBoundingClientRect().top;
      this.rows.draw(Math.max(6 * letter, room - this.belowRows()), this.now.row);
    }
    this.draw(false);
  }

  /** The height of what stands below the matrix. */
  belowRows() {
    const next = [...this.left.children].slice([...this.left.children].indexOf(this.rows.node) + 1);
    const letter = parseFloat(getComputedStyle(this.frame).fontSize);
    return next.reduce((sum, node) => sum + node.offsetHeight, 0) + letter * 1.6;
  }

  draw(moves) {
    if (!this.height) return;
    const { now: { stop, isScaled }, row, other } = this;
    cancelAnimationFrame(this.frameAsked);
    if (!row.isFinite) {
      this.drawn = null;
      this.picture.svg.replaceChildren();
      return;
    }
    const room = this.picture.room(this.height);
    const to = layout(this.head, stop, isScaled, row, other, room);
    const from = this.drawn;
    const isAlike = from && from.keys.join() === to.keys.join() && from.width === to.width;
    this.drawn = to;
    if (!moves || !isAlike || isStill()) {
      this.picture.paint(to, row);
      painted("row", stop);
      return;
    }
    const begun = performance.now();
    const move = (time) => {
      const part = Math.min(1, Math.max(0, (time - begun) / MOVE));
      this.picture.paint(to, row, from, ease(part));
      if (part < 1) this.frameAsked = requestAnimationFrame(move);
      else painted("row", stop);
    };
    this.frameAsked = requestAnimationFrame(move);
  }

  // Beside the picture: formula, code and numbers

  drawSide() {
    const parts = this.head.weights_alone ? ["numbers"] : Object.keys(SIDE);
    this.openers.forEach((button) =>
      button.setAttribute("aria-expanded", String(button.getAttribute("aria-controls") === this.opened)));
    this.side.classList.toggle("opened", Boolean(this.opened));
    this.side.replaceChildren(...parts.map((part) => element("section",
      { id: part, class: part === this.opened ? "opened" : "" },
      element("h2", {}, TITLES[part]), this[part]())));
  }

  formula() {
    const at = STOPS.indexOf(this.now.stop);
    const part = (text, ...stops) => element("span", { class: stops.includes(at) ? "on" : "" }, text);
    const root = this.now.isScaled ? [part(" / √d", 1)] : [];
    return element("p", { class: "formula" }, part("softmax", 2, 3), "( ", part("q·k", 0), element("sup", {}, "T"),
      ...root, " ) ", part("· V", 4));
  }

  code() {
    const at = STOPS.indexOf(this.now.stop);
    const parts = this.head.code.map((code) => code.split(/\n(?=# \w+\.\w+$)/m));
    return element("pre", { tabindex: "0" }, ...[...new Set(parts.flat())].map((text) =>
      element("span", { class: parts[at].includes(text) ? "on" : "" }, `${text}\n`)));
  }

  numbers() {
    const { head, row, now } = this;
    const at = STOPS.indexOf(now.stop);
    const columns = head.weights_alone ? [["weight", (key) => percent(row.weights[key], 1), 3]] : [
      ["q·k", (key) => one(row.raw[key]), 0],
      [now.isScaled ? `÷ √${head.width}` : "not divided", (key) => two(row.scaled[key]), 1],
      ["exp", (key) => power(row.scaled[key]), 2],
      ["weight", (key) => share(row.weights[key]), 3],
    ];
    const cell = (text, stop, tag = "td") =>
      element(tag, { class: stop === at || (at === 4 && stop === 3) ? "on" : "", ...(tag === "th" && { scope: "col" }) }, text);
    const sum = !head.weights_alone && row.best.length
      ? [element("tr", { class: "sum" }, element("th", { scope: "row" }, "sum"), element("td"), element("td"),
        cell(power(row.logSum), 2), cell("100%", 3))] : [];
    return element("table", {},
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "key"),
        ...columns.map(([name, , stop]) => cell(name, stop, "th")))),
      element("tbody", {}, ...head.keys.map((name, key) =>
        element("tr", { class: key === row.best[0] ? "best" : "" }, element("th", { scope: "row", dir: "auto" }, name),
          ...columns.map(([, write, stop]) => cell(row.allowed.has(key) ? write(key) : "masked", stop)))), ...sum));
  }

  hear(event) {
    const [at] = event.composedPath();
    const own = this.frame.contains(at);
    if (event.altKey || event.ctrlKey || event.metaKey || (!own && at.closest?.(OTHERS))) return false;
    if (event.key === " " && at.closest?.("button, summary, a, input") && !at.closest("[role=tab]")) return false;
    const act = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      ArrowUp: () => this.go({ row: this.now.row - 1 }),
      ArrowDown: () => this.go({ row: this.now.row + 1 }),
      d: () => this.head.weights_alone || this.go({ isScaled: !this.now.isScaled }),
      " ": () => this.playing(!this.timer),
      Escape: this.opened && (() => this.open(this.opened)),
      ...Object.fromEntries(Object.entries(SIDE).map(([part, key]) => [key.toLowerCase(), () => this.open(part)])),
    }[keyOf(event).length === 1 ? keyOf(event).toLowerCase() : event.key];
    if (!act) return false;
    if (event.shiftKey && event.key.startsWith("Arrow")) return false;
    if (event.key.startsWith("Arrow") && at.closest?.("pre, .side")) return false; // it scrolls
    act();
    if (event.key.startsWith("Arrow") && at.closest?.("[role=tab]")) this.tabs[STOPS.indexOf(this.now.stop)].focus();
    return true;
  }
}

const shown = new WeakMap(); // where → {data, picture}
let listener = null;
let follower = null;
const listen = (picture) => {
  document.removeEventListener("keydown", listener, true);
  window.removeEventListener("popstate", follower);
  follower = picture && (() => picture.follow()); // a link to another stop changes none of the data
  if (follower) window.addEventListener("popstate", follower);
  listener = picture && ((event) => {
    if (!picture.hear(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  if (listener) document.addEventListener("keydown", listener, true);
};
const enter = places(() => listen(null));

export default function ({ data, parentElement }) {
  const before = shown.get(parentElement);
  let picture = before?.picture;
  const isNew = before?.data !== data;
  if (isNew) {
    picture?.observer.disconnect();
    picture?.playing(false);
    picture = new OneRow(unpack(data), parentElement);
    shown.set(parentElement, { data, picture });
  }
  if (!isNew) picture.tell(); // the server wrote the address without it
  picture.follow(isNew);
  return enter(parentElement, () => listen(picture));
}
