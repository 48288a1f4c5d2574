// Tokens in tiles, one button for the tokens of a word; and below the chosen one its merges, from its symbols
// down to its tokens, each joined to what it was made of.

import { asOneStop, element } from "../shared/dom.js";
import { Picture, mounted } from "../shared/mounted.js";
import { shape } from "../shared/svg.js";

const MOST = 8; // rows that stand far apart

class Tiles extends Picture {
  show({ words, chosen, rows, isDone, lines, notes }) {
    const hadFocus = this.frame.contains(this.frame.getRootNode().activeElement);
    Object.assign(this, { rows, chosen });
    const tiles = words.map(({ tokens, choice }) => this.word(tokens, choice));
    const row = element("div", { class: "tiles", role: "group", "aria-label": "Tokens", translate: "no" }, ...tiles);
    const buttons = tiles.filter(({ localName }) => localName === "button");
    this.own = buttons.find((one) => one.ariaPressed === "true") ?? buttons[0];
    if (this.own) asOneStop(row, buttons, 2, this.own); // ← → too
    this.symbols = rows.map(({ symbols, at }, nth) => symbols.map((symbol, i) =>
      element("span", { class: isDone && nth === rows.length - 1 ? "token" : i === at ? "new" : "", dir: "auto" }, symbol)));
    this.list = element("ol", { class: rows.length > MOST ? "many" : "", tabindex: "0", "aria-label": "Merges", translate: "no" }, ...rows.map(({ name }, nth) =>
      element("li", {}, element("span", { class: "row", dir: "ltr" }, ...this.symbols[nth]), element("small", {}, name))));
    this.list.onscroll = () => this.fit();
    this.threads = shape("svg", { "aria-hidden": "true" });
    const texts = element("dl", {}, ...lines.flatMap(([name, text]) => [element("dt", {}, name), element("dd", { translate: "no", dir: "auto" }, text)]));
    const below = element("div", { class: "below" }, element("div", {}, texts, ...notes.map((note) => element("p", {}, note))), ...(rows.length ? [this.list] : []));
    this.frame.replaceChildren(row, below, this.threads);
    if (this.own) row.scrollTop = this.own.offsetTop - row.offsetTop - 4;
    if (hadFocus) this.own?.focus();
    this.fit();
  }

  word(tokens, choice) {
    const tiles = tokens.map(([text, id]) => element("span", { class: "tile" }, element("b", { dir: "auto" }, text), element("small", {}, id.toLocaleString("en"))));
    const attributes = { class: "word", style: `flex-grow: ${tokens.length}` };
    if (choice < 0) return element("span", attributes, ...tiles);
    const button = element("button", { ...attributes, type: "button", "aria-pressed": String(choice === this.chosen) }, ...tiles);
    button.onclick = () => this.tell("chosen", choice);
    return button;
  }

  /** Joins each symbol to those that it was made of. */
  fit() {
    const { threads, symbols, rows, frame, own, list } = this, curves = [];
    if (!threads) return;
    const [whole, seen, tiles] = [frame, list, frame.firstChild].map((node) => node.getBoundingClientRect());
    const at = (node) => {
      const { left, right, top, bottom } = node.getBoundingClientRect();
      return { x: (left + right) / 2 - whole.left, top: top - whole.top, bottom: bottom - whole.top };
    };
    const join = (x, y, to, kind) => {
      if (to.x + whole.left < seen.left || to.x + whole.left > seen.right) return; // scrolled out of sight
      curves.push(shape("path", { class: kind, d: `M${x},${y}C${x},${(y + to.top) / 2} ${to.x},${(y + to.top) / 2} ${to.x},${to.top}` }));
    };
    rows.slice(1).forEach(({ at: made }, nth) => symbols[nth + 1].forEach((node, i) => {
      for (const from of i === made ? [i, i + 1] : [i + (i > made)])
        join(at(symbols[nth][from]).x, at(symbols[nth][from]).bottom, at(node), i === made ? "made" : "");
    }));
    const from = own && rows.length ? at(own) : null;
    if (from && tiles.bottom - whole.top - from.bottom < 8) join(from.x, from.bottom, at(list.querySelector(".row")), "chosen"); // else over other tiles
    threads.replaceChildren(...curves);
  }
}

export default mounted(Tiles);
