// Streamlit scrolls inside the page, where the browser keeps no place for Back. One listener serves
// all pages and outlives each. It asks for a run when the page takes other colours, and says when
// a run is slow. And it hears keys: Enter runs the sentence; Esc goes one step back: out of a field or a menu,
// out of the drawer, then without a selected cell, then out of Present or back to the plan for a class.

import { attempt } from "../shared/attempt.js";
import { onRecolour } from "../shared/dom.js";
import { keyOf } from "../shared/keys.js";
import { keysSheet } from "../shared/keys_sheet.js";

const PATIENCE = 20_000; // ms in which a page is drawn
const SLOW = 500; // ms
const REST = 300; // ms: a click has begun its run by then
const PLACES = "headlight places";

const read = () => JSON.parse(attempt(() => sessionStorage.getItem(PLACES)) ?? "{}");
let runs = 0; // that have begun
let height = 0; // of the page when it was scrolled last

const app = () => document.querySelector('[data-testid="stApp"]');
const idle = () => app()?.dataset.testScriptState === "notRunning";

function keep({ target }) {
  // While a page gives way to another it shrinks, and its end is no place that anybody chose.
  if (!target.classList?.contains("stMain") || !idle()) return;
  const { scrollTop, scrollHeight, clientHeight } = target;
  const isPushed = scrollHeight < height && scrollTop + clientHeight >= scrollHeight - 1;
  height = scrollHeight;
  if (isPushed) return;
  const places = { ...read(), [location.pathname]: scrollTop };
  attempt(() => sessionStorage.setItem(PLACES, JSON.stringify(places)));
}

function goBack({ state }) {
  if (state?.isLink) return;
  const place = read()[location.pathname];
  if (!place) return;
  const [until, before] = [performance.now() + PATIENCE, runs];
  const again = () => {
    const main = document.querySelector(".stMain");
    const isDrawn = runs > before && idle(); // not the page that one leaves
    const reached = isDrawn && main.scrollHeight >= place + main.clientHeight;
    if (reached) main.scrollTop = place;
    else if (performance.now() < until) requestAnimationFrame(again);
  };
  again();
}

/** The model's output is in a language of its own, for screen readers. */
function nameLanguage() {
  const code = getComputedStyle(document.documentElement).getPropertyValue("--output-language");
  document.querySelector(".st-key-output")?.setAttribute("lang", code.trim());
}

// Counts runs, and marks the page while one takes so long that what is not drawn yet should fade
// (style in theme.py).
function watchRuns() {
  const root = document.documentElement;
  let timer = null;
  const hear = () => {
    clearTimeout(timer);
    delete root.dataset.slow;
    setTimeout(nameLanguage, REST); // it is drawn by then
    if (idle()) return;
    runs++;
    timer = setTimeout(() => (root.dataset.slow = ""), SLOW);
  };
  setTimeout(nameLanguage, REST); // the first run may be over
  const attributeFilter = ["data-test-script-state"];
  new MutationObserver(hear).observe(app(), { attributes: true, attributeFilter });
}

/** A server that has started anew knows the page by its address alone, and hears of that before an act
 * comes that is not in it yet. */
function watchConnection() {
  const hear = () => app().dataset.testConnectionState === "CONNECTED" && drawAnew(window.headlightEvents);
  const attributeFilter = ["data-test-connection-state"];
  new MutationObserver(hear).observe(app(), { attributes: true, attributeFilter });
}

const TEXT = "textarea, select, [contenteditable], input:not([type=checkbox], [type=radio])";
const MENUS = ["dialog", "listbox", "menu"].map((role) => `[role=${role}]`).join();

/** Streamlit runs a text area at Ctrl+Enter. Phones have a key of their own for a new line, and while
 * Chinese or Japanese is composed, Enter takes a candidate. */
function runAtEnter(event) {
  const box = event.target;
  const isPlain = event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey;
  if (!isPlain || event.isComposing || event.keyCode === 229 || matchMedia("(pointer: coarse)").matches)
    return;
  if (box.tagName !== "TEXTAREA" || !box.closest(".st-key-source")) return;
  event.preventDefault();
  event.stopPropagation();
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", code: "Enter", keyCode: 13,
    ctrlKey: true, bubbles: true, cancelable: true }));
  // While it has the focus it covers the bar below. Streamlit must have taken the text by then.
  requestAnimationFrame(() => box.blur());
}

let isMenuOpen = false; // when the key was pressed; Streamlit closes it

function hearKey(event) {
  const { ctrlKey, metaKey, altKey, defaultPrevented } = event;
  if (ctrlKey || metaKey || altKey || keyOf(event) !== "Escape") return;
  const [target] = event.composedPath();
  if (isMenuOpen || defaultPrevented) return;
  const stage = window.headlightStage?.stage;
  if (target.matches?.(TEXT)) target.blur();
  else if (stage?.fold()) return;
  else if (window.headlight?.matrices?.letGo()) return;
  else if (window.headlight?.remote) window.headlight.remote.leave();
  else stage?.leavePresent();
}

/** A click on nothing in particular gives the focus to what scrolls, the whole page: the next key
 * would outline the whole page. */
function passFocusOn({ target }) {
  if (target.matches?.(".stMain:not(:focus-visible)")) target.blur();
}

/** Asks for a run once none is under way: it would send the values of before, and so undo what the
 * other one chooses. */
function drawAnew(node) {
  clearTimeout(node.waiting);
  node.waiting = setTimeout(() => (idle() ? node.ask() : drawAnew(node)), REST);
}

export default function ({ parentElement, data, setTriggerValue }) {
  if (data) keysSheet(parentElement, data.keys);
  const node = parentElement.querySelector("i");
  if (!node.ask) onRecolour(node, () => drawAnew(node));
  node.ask = () => setTriggerValue("recoloured", true);
  const isFirst = !window.headlightEvents;
  window.headlightEvents = node;
  if (!isFirst) return;
  document.addEventListener("keydown", runAtEnter, { capture: true });
  window.addEventListener("keydown", () => (isMenuOpen = Boolean(document.querySelector(MENUS))),
    { capture: true });
  window.addEventListener("keydown", hearKey); // after everything that may have used the key
  document.addEventListener("focusin", passFocusOn);
  document.addEventListener("scroll", keep, { capture: true, passive: true });
  window.addEventListener("popstate", goBack);
  watchRuns();
  watchConnection();
}
