// What if: cards below the finding. Each acts on what is selected. While the pointer or the focus is
// on one, the finding says what the act would do, which the server is asked for when either enters.

import { asOneStop, element } from "../shared/dom.js";
import { nodes } from "./parts.js";

const REST = 100; // ms in the strip before the server hears of it: a pointer may only pass
const AGAIN = 100; // ms until it is tried again while a run is under way
const ICONS = { // paths in a square of 24
  hide: "M3 12s3.5-6 9-6 9 6 9 6-3.5 6-9 6-9-6-9-6ZM12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5ZM4 20 20 4",
  off: "M12 3v8M7 6.5a7.5 7.5 0 1 0 10 0",
  positions: "M3 6h5v7H3ZM10 8h5v7h-5ZM17 5h4v7h-4ZM4 19h16m-13-3-3 3 3 3m10-6 3 3-3 3",
  causal: "M4 4v16h16ZM12 9l7-5m0 0h-5m5 0-2 5",
  swap: "M3 8h16m0 0-4-4M21 16H5m0 0 4 4",
  temperature: "M12 3s6 6.5 6 11a6 6 0 0 1-12 0c0-4.500 6-11 6-11ZM9 14.500a3 3 0 0 0 3 3",
};

const keyOf = (act) => JSON.stringify(act);
const isIdle = () =>
  document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState !== "running";

export class Cards {
  known = new Map(); // act → what would be said of it
  asked = []; // acts whose answer is under way
  previewed = null; // the card that the pointer or the focus is on

  /** `send(acts)` asks the server. */
  constructor(grid, send = () => {}) {
    Object.assign(this, { grid, send });
  }

  /** The strip, new for another place on the page. */
  make() {
    this.buttons = new Map();
    this.seen = "";
    this.box = element("div", { class: "cards", role: "toolbar", "aria-label": "What if" });
    this.box.onpointerenter = () => this.enter();
    this.box.onpointerleave = () => this.leave();
    this.box.addEventListener("focusin", () => this.enter());
    this.box.addEventListener("focusout", ({ relatedTarget }) => {
      if (!this.box.contains(relatedTarget)) this.leave();
    });
    this.box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.grid.actByKey(event)) return;
      event.preventDefault();
      event.stopPropagation();
      this.grid.point();
    });
    return this.box;
  }

  /** One card, which stays while its words change. */
  button(name) {
    const button = element("button", { type: "button", class: "card" });
    button.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${ICONS[name]}"/></svg>`;
    button.append(element("span", {}), element("kbd", { "aria-hidden": "true" }),
      element("small", { id: `card_${name}` }));
    button.setAttribute("aria-describedby", `card_${name}`);
    button.onpointerenter = () => this.point(name);
    button.onpointerleave = () => this.point(null);
    button.onfocus = () => button.matches(":focus-visible") && this.point(name);
    button.onblur = () => this.point(null);
    button.onclick = (event) => {
      const act = this.actOf(name, event.shiftKey);
      if (!act) return;
      this.previewed = null; // the finding says what it did
      this.grid.act(act);
    };
    return button;
  }

  actOf(name, isShifted) {
    if (isShifted && name === "hide" && this.grid.isKeyHere()) return this.grid.hidesHere();
    return this.grid.cards().find((card) => card.name === name)?.act ?? null;
  }

  /** Draws what has changed: the cards, what stands on them, and what is known of their acts. */
  draw() {
    const all = this.grid.look.cards ? this.grid.cards() : [];
    const seen = JSON.stringify(all.map((card) => [card, this.known.get(keyOf(card.act))]));
    if (seen === this.seen) return;
    this.seen = seen;
    this.box.toggleAttribute("hidden", !all.length);
    for (const { name } of all)
      if (!this.buttons.has(name)) this.buttons.set(name, this.button(name));
    const buttons = all.map(({ name }) => this.buttons.get(name));
    if (buttons.length !== this.box.children.length || buttons.some((each, i) => each !== this.box.children[i])) {
      this.box.replaceChildren(...buttons);
      asOneStop(this.box, buttons, buttons.length);
    }
    all.forEach((card, i) => this.fill(buttons[i], card));
    if (this.isIn) this.askSoon();
  }

  fill(button, { title, key, isDone, act, why }) {
    const known = this.known.get(keyOf(act));
    const [, name, shown, brief] = button.children;
    const words = title.map((part) => (Array.isArray(part) ? part[0] : part)).join("");
    const letter = key.toUpperCase();
    button.setAttribute("aria-label", `${words} (${letter})`);
    button.setAttribute("aria-pressed", String(isDone));
    const reason = act ? known?.why : why;
    button.toggleAttribute("data-idle", Boolean(reason));
    button.setAttribute("aria-disabled", String(Boolean(reason)));
    name.replaceChildren(...nodes(title));
    shown.textContent = letter;
    brief.replaceChildren(...nodes(reason ? [reason] : known?.brief ?? []));
  }

  // Previews

  /** What the act of the card that is pointed at would give, in parts of a sentence; null where none is
   * pointed at, or nothing is known of it. */
  preview() {
    const card = this.previewed && this.grid.cards().find(({ name }) => name === this.previewed);
    const known = card?.act && this.known.get(keyOf(card.act));
    return known?.said?.length ? known.said : null;
  }

  point(name) {
    if (this.previewed === name) return;
    this.previewed = name;
    this.grid.point();
  }

  /** The token that the card that is pointed at would hide; null where it hides none. */
  hides() {
    const card = this.previewed === "hide" && this.grid.cards()[0];
    return card && !card.isDone ? card.act : null;
  }

  enter() {
    if (this.isIn) return;
    this.isIn = true;
    this.askSoon();
  }

  leave() {
    const isIn = this.box.matches(":hover") || this.box.contains(this.box.getRootNode().activeElement);
    if (isIn) return;
    this.isIn = false;
    this.isRefused = false;
    clearTimeout(this.waiting);
  }

  askSoon(wait = REST) {
    clearTimeout(this.waiting);
    if (!this.isRefused) this.waiting = setTimeout(() => this.ask(), wait);
  }

  /** Asks for what is not known, once no run is under way, which this would end. */
  ask() {
    if (!this.isIn || !this.box.isConnected) return;
    if (!isIdle()) return this.askSoon(AGAIN);
    const acts = this.grid.cards().map(({ act }) => act)
      .filter((act) => act && !this.known.has(keyOf(act)));
    if (!acts.length || keyOf(acts) === keyOf(this.asked)) return;
    this.asked = acts;
    this.send(acts);
  }

  /** What the acts that were asked about would give, from the server: of the first ones alone where
   * others were waiting for it. */
  setPreviews(previews) {
    const { asked } = this;
    this.asked = [];
    previews.forEach((preview, i) => asked[i] && this.known.set(keyOf(asked[i]), preview));
    this.isRefused = previews.length < asked.length;
    this.grid.point();
  }

  /** Another run: nothing is known of it. */
  forget() {
    this.known.clear();
    this.asked = [];
    this.isRefused = false;
  }
}
