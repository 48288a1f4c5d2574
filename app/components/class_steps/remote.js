// The remote: one line at the foot of Present that leads through the plan, in one tab. A presenter's
// two buttons are Page Up and Page Down; arrows do the same until the focus is in a picture, whose own
// they are then. Esc goes back to the plan.

import { fromRoot } from "../shared/address.js";
import { element } from "../shared/dom.js";
import { idle, lead } from "../shared/lead.js";
import { places } from "../shared/places.js";

const BY = { PageDown: 1, PageUp: -1, ArrowRight: 1, ArrowLeft: -1 };
const AGAIN = 500; // ms
const MOST_ATTEMPTS = 2; // to follow it once more
const PRESENTED = ":root[data-stage-present]";

class Remote {
  show({ titles, slides, at, here, back }) {
    Object.assign(this, { slides, at, back });
    this.root ??= fromRoot("", here); // before the address is ahead of the page
    const now = slides[at - 1];
    const next = slides[at];
    const button = (words, key, hear, given = {}) => {
      const node = element("button", { type: "button", ...given }, words, ...(key ? [element("kbd", {}, key)] : []));
      node.disabled = !hear;
      node.onclick = hear;
      return node;
    };
    // The part that the slide belongs to: its question and what is shown then.
    let first = at - 1;
    while (first > 0 && slides[first].kind !== "ask") first--;
    const shown = slides.slice(first + 1).findIndex(({ kind }) => kind === "ask");
    const part = slides.slice(first, shown < 0 ? undefined : first + 1 + shown);
    const many = part.length > 2;
    const parts = part.map((slide, i) => button(slide.kind === "ask" ? "Ask" : many ? `Show ${i}` : "Show", "",
      () => this.go(first + i + 1 - at), { "aria-pressed": String(first + i + 1 === at) }));
    const dots = titles.map((_, i) => element("i", { class: i + 1 < now.step ? "past" : i + 1 === now.step ? "now" : "" }));
    const leads = !next ? "the end" : next.kind === "show" ? "show" : next.step === now.step ? "next question"
      : `next: ${titles[next.step - 1]}`;
    this.line = element("nav", { "aria-label": "Remote" },
      element("span", { class: "dots", "aria-hidden": "true" }, ...dots),
      element("span", { class: "step" }, element("b", {}, `Step ${now.step} of ${titles.length}`), ` · ${titles[now.step - 1]}`),
      element("span", { class: "parts", role: "group", "aria-label": "Ask or show" }, ...parts),
      element("span", { class: "rest" }),
      button("‹", "", at > 1 && (() => this.go(-1)), { "aria-label": "Back", title: "Page Up, ←" }),
      button(leads, "→", next && (() => this.go(1)), { class: "next", title: "Page Down" }),
      button("plan", "Esc", () => this.leave(), { class: "leave" }));
    return this.line;
  }

  /** From where it is on its way to, if it is: a second press while a run is under way counts too. */
  go(by) {
    const to = (this.wanted ?? this.at) + by;
    if (!this.slides[to - 1]) return;
    Object.assign(this, { wanted: to, attempts: MOST_ATTEMPTS });
    this.follow();
  }

  /** What the picture reports while the link is on its way, such as its cell, is sent with the
   * widgets' old values. Streamlit (1.67) may join both in one run, in which these count as newer than
   * the address. Then the link is followed once more. */
  follow() {
    this.lead(this.slides[this.wanted - 1].address);
    clearTimeout(this.timer);
    let seen = 0; // times that it was there
    const look = () => {
      const isThere = this.at === this.wanted;
      if (isThere && idle()) seen++;
      if (!this.line.isConnected || seen === 2 || this.attempts === 0) this.wanted = null;
      else if (isThere || !idle()) this.timer = setTimeout(look, AGAIN);
      else {
        this.attempts--;
        this.follow();
      }
    };
    this.timer = setTimeout(look, AGAIN);
  }

  lead(address) {
    lead(this.root + address);
  }

  leave() {
    this.lead(this.back);
  }

  hear(event) {
    const by = BY[event.key];
    const [target] = event.composedPath();
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    if (!by || !isPlain || !document.querySelector(PRESENTED)) return;
    const isOwn = this.line.contains(target);
    const isNowhere = target === document.body || target.classList?.contains("stMain");
    if (event.key.startsWith("Arrow") && !isOwn && !isNowhere) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this.go(by);
  }
}

const shown = new Remote();
let listener = null;
const listen = (hears) => {
  window.removeEventListener("keydown", listener, true);
  listener = hears ? (event) => shown.hear(event) : null;
  if (listener) window.addEventListener("keydown", listener, true);
  (window.headlight ??= {}).remote = hears ? shown : null;
};
const enter = places(() => listen(false));

export default function ({ data, parentElement }) {
  return enter(parentElement, () => {
    const hadFocus = parentElement.contains?.(parentElement.getRootNode().activeElement);
    parentElement.querySelector("nav")?.remove();
    parentElement.append(shown.show(data));
    if (hadFocus) shown.line.querySelector(".next").focus();
    listen(true);
  });
}
