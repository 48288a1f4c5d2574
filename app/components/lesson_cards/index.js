// A card a lesson: a covered picture and its question. The first is wide; a click starts its lesson.

import { drawing } from "../shared/covered.js";
import { element, onRecolour, painted, roomBelow } from "../shared/dom.js";
import { Picture, mounted } from "../shared/mounted.js";
import { shape } from "../shared/svg.js";

const AROUND = 2 * Math.PI * 8; // of the ring
const MARGIN = 12; // px at the foot of the window
const LETTERS = [13, 21]; // px, of a picture
const SHORT = /^[^:?]*\??/; // of a title, without what follows its colon
const TWO_ROWS = 900; // px of width from which all shipped lessons stand in two rows

/** How much is answered, or a tick. */
function ring({ answered, questions, right }) {
  const circle = (given) => shape("circle", { cx: 11, cy: 11, r: 8, ...given });
  const parts = right !== null
    ? [circle({ r: 10.5, class: "done" }), shape("path", { class: "tick", d: "M6 11.5l3.5 3.5L16 8" })]
    : [circle({ class: "track" }), circle({ class: "part", transform: "rotate(-90 11 11)",
      "stroke-dasharray": `${(AROUND * answered) / Math.max(1, questions)} ${AROUND}` })];
  return shape("svg", { viewBox: "0 0 22 22", class: "ring", "aria-hidden": "true" }, ...parts);
}

class Cards extends Picture {
  constructor(root) {
    super(root);
    window.addEventListener("resize", () => this.fit());
    document.fonts.ready.then(() => this.fit());
    onRecolour(this.frame, () => this.fit());
  }

  show({ cards, first, palette, focus, below }) {
    Object.assign(this, { palette, below });
    this.frame.style.setProperty("--hl-focus", focus);
    const ordered = [...cards].sort((a, b) => (b.name === first) - (a.name === first));
    this.pictures = ordered.map((card) => [card.picture, element("span", { class: "picture" })]);
    this.frame.replaceChildren(...ordered.map((card, i) => {
      const node = this.card(card, this.pictures[i][1], card.name === first);
      node.onclick = () => this.tell("start", card.name);
      return node;
    }));
    this.fit();
  }

  card(card, picture, isWide) {
    const { number, title, question, minutes, step, steps, right, questions } = card;
    const asked = element("span", { class: "question" }, ...question.map(([words, tag]) =>
      (tag ? element(tag, {}, words) : words)));
    const state = right !== null ? `${right} of ${questions} right` : step ? `step ${step} of ${steps}` : "";
    const named = (name, now) => element("span", { class: "named" }, ring(card), element("span", {}, name),
      element("span", { class: "state" }, now));
    const go = right !== null ? "Take it again" : step ? "Continue" : "Start";
    const words = isWide
      ? [named(`Lesson ${number}`, `${state ? `${state} · ` : ""}${minutes} min`), asked,
        element("span", { class: "title" }, title), element("span", { class: "go" }, go)]
      : [asked, named(`${number}. ${title.match(SHORT)[0]}`, state || `${minutes} min`)];
    return element("button", { type: "button", class: isWide ? "wide" : "" }, picture,
      element("span", { class: "words" }, ...words));
  }

  fit() {
    if (!this.frame.isConnected || !this.pictures) return;
    const { clientWidth } = this.frame;
    const room = Math.floor(roomBelow(this.frame) - MARGIN - this.below);
    this.frame.style.minHeight = clientWidth >= TWO_ROWS ? `${room}px` : "";
    const style = getComputedStyle(this.frame);
    const size = [clientWidth, room, style.fontSize, style.color].join();
    if (this.size === size && this.drawn === this.pictures) return;
    Object.assign(this, { size, drawn: this.pictures });
    this.pictures.forEach(([picture, node]) => {
      node.replaceChildren();
      const { paddingLeft, paddingTop } = getComputedStyle(node);
      const [wide, high] = [node.clientWidth - 2 * parseFloat(paddingLeft), node.clientHeight - 2 * parseFloat(paddingTop)];
      const letter = Math.min(LETTERS[1], Math.max(LETTERS[0], Math.min(high / 13, wide / 20)));
      node.append(drawing(picture, wide, high, letter, this.palette, style.color));
    });
    painted("lessons", this.pictures.length);
  }
}

export default mounted(Cards);
