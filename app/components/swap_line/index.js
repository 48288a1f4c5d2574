// Stops on a line, each a swapped part with what it changes. A click, the button or an arrow key goes
// to another one.

import { asOneStop, element } from "../shared/dom.js";
import { Picture, mounted } from "../shared/mounted.js";

class Line extends Picture {
  constructor(root) {
    super(root);
    this.list = element("div", { class: "stops", role: "group", "aria-label": "From the paper to Llama" });
    this.next = element("button", { type: "button", class: "next" });
    this.next.onclick = () => this.go(this.at < this.stops.length - 1 ? this.at + 1 : 0);
    this.frame.append(element("div", { class: "names", "aria-hidden": "true" },
      element("span", {}, "parameters"), element("span", {}, "attention moved")), this.list, this.next);
    this.notes = element("p", {});
    root.append(this.notes);
  }

  key({ key }) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (by && this.stops[this.at + by]) this.go(this.at + by);
    return Boolean(by);
  }

  again({ chosen }) {
    this.mark(this.stops.findIndex(({ name }) => name === chosen));
  }

  show({ stops, chosen, notes }) {
    this.notes.replaceChildren(...notes.flatMap(([words, text]) => [element("b", {}, words), `: ${text} `]));
    const text = JSON.stringify(stops);
    if (text !== this.text) {
      [this.text, this.stops] = [text, stops];
      this.buttons = stops.map((stop, i) => this.stop(stop, i));
      this.list.replaceChildren(...this.buttons);
    }
    this.mark(stops.findIndex(({ name }) => name === chosen));
  }

  stop({ year, title, parameters, moved, share }, i) {
    const bar = element("i", { class: "bar", style: `--share: ${100 * share}%` });
    const said = [`${year}, ${title}`, parameters && `parameters ${parameters}`, moved && `attention moved ${moved}`];
    const node = element("button", { type: "button", class: "stop", "aria-label": said.filter(Boolean).join("; ") },
      element("span", { class: "dot" }), element("b", {}, year), element("span", {}, title),
      element("span", { class: "number" }, parameters), element("span", { class: "number moved" }, moved, bar));
    node.onclick = () => this.go(i);
    return node;
  }

  go(at) {
    const isFocused = this.list.contains(this.frame.getRootNode().activeElement);
    this.mark(at); // at once; the server says the same a little later
    if (isFocused) this.buttons[at].focus();
    this.tell("chosen", this.stops[at].name);
  }

  mark(at) {
    this.at = at;
    for (const [i, node] of this.buttons.entries()) {
      node.classList.toggle("past", i < at);
      node.classList.toggle("after", i > at);
      if (i === at) node.setAttribute("aria-current", "step");
      else node.removeAttribute("aria-current");
    }
    asOneStop({}, this.buttons, 1, this.buttons[at]); // the arrow keys are the frame's
    this.next.textContent = at < this.stops.length - 1 ? "Next change →" : "↺ Start again";
    const { offsetLeft, offsetWidth } = this.buttons[at];
    this.list.scrollLeft = offsetLeft + offsetWidth / 2 - this.list.clientWidth / 2;
  }
}

export default mounted(Line);
