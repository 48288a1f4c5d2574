// The stage in a page of its own: weights, and some scores and vectors, stand in the page, and nothing
// computes others.

import { schemeOf } from "../shared/colours.js";
import { element } from "../shared/dom.js";
import { answersOf } from "../shared/packed.js";
import { Stage } from "../stage/stage.js";

const { unpacked } = globalThis; // of the page: from the text of an element, deflated
const root = document.documentElement;
const frame = window.frameElement; // in a notebook; null where this is a page of its own, or in a sandbox
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** The engine that answers from the page: see stage/engine.js. */
class RecordedEngine {
  hasPages = false;
  place = {};
  led = 0; // how often it was led
  onKept = () => {};

  constructor(run, { look, said, depth }, answers) {
    Object.assign(this, { run, look, said, depth });
    this.answers = new Map(answers.map(({ of, found }) => [this.keyOf(of), found]));
  }

  keyOf({ what, kind, layer, head }) {
    return `${what} ${kind} ${layer} ${head}`;
  }

  heard(listener) {
    this.tell = listener;
  }

  /** Tells what there is, once the stage stands in its place. */
  open() {
    for (const name of ["run", "look", "said"]) if (this[name]) this.tell({ [name]: this[name] });
  }

  choose() {}

  act() {}

  ask(what) {
    const found = this.answers.get(this.keyOf(what));
    return Promise.resolve(found ? { mask: found.weights, ...found } : { isMissing: true }); // softmax gives more than 0
  }

  keep(place) {
    this.place = place;
    this.onKept();
  }

  asked() {
    return { depth: this.depth };
  }

  /** Selects a head, and a row and a column, each −1 for none; the depth stays. */
  lead(focus, cell) {
    this.led += 1;
    this.tell({ look: { ...this.look, focus, cell: { ...cell, led: this.led }, place: [this.led, { ...this.place, cell: null }] } });
  }
}

/** A notebook has a theme of its own: where its letters are light, it is dark. */
function schemeOfPage(theme) {
  if (theme !== "auto") return theme;
  if (!frame) return systemIsDark.matches ? "dark" : "light";
  return schemeOf(getComputedStyle(frame.parentElement).color);
}

const [run, data] = (await Promise.all(["run", "data"].map(unpacked))).map((buffer) => new Uint8Array(buffer));
const [given, answers] = answersOf(data);
const paint = () => (root.style.colorScheme = schemeOfPage(given.theme));
document.head.append(element("style", {}, given.style));
paint();
systemIsDark.addEventListener("change", paint);
const engine = new RecordedEngine(run, given, answers), stage = new Stage(engine);
document.querySelector("main").replaceChildren(stage.root);
engine.open();
if (frame) { // for a widget, which hears of selections
  Object.assign(frame, { engine, stage });
  frame.dispatchEvent(new Event("drawn"));
}
