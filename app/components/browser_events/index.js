// Streamlit scrolls inside the page, where the browser keeps no place for Back. One listener serves
// all pages and outlives each. It asks for a run when the page takes other colours, and says when
// one is slow. And it hears keys: Enter runs the sentence; in Present, Esc leaves, B lays the bar over
// the picture, P the panel.

import { onRecolour } from "../shared/dom.js";

const PATIENCE = 20_000; // ms in which a page is drawn
const SLOW = 500; // ms
const PLACES = "headlight places";

const read = () => JSON.parse(sessionStorage.getItem(PLACES) ?? "{}");
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
  sessionStorage.setItem(PLACES, JSON.stringify(places));
}

function goBack() {
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

// Counts runs, and marks the page while one takes so long that what is not drawn yet should fade
// (style in theme.py).
function watchRuns() {
  const root = document.documentElement;
  let timer;
  const hear = () => {
    clearTimeout(timer);
    delete root.dataset.slow;
    if (idle()) return;
    runs++;
    timer = setTimeout(() => (root.dataset.slow = ""), SLOW);
  };
  const attributeFilter = ["data-test-script-state"];
  new MutationObserver(hear).observe(app(), { attributes: true, attributeFilter });
}

const isTyping = ({ tagName, isContentEditable }) =>
  isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(tagName);

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
  // While it has the focus it covers its neighbours. Streamlit must have taken the text by then.
  requestAnimationFrame(() => box.blur());
}

function present(event) {
  const leave = document.querySelector(".st-key-leave_present button");
  const root = document.documentElement;
  const { key, ctrlKey, metaKey, altKey } = event;
  if (!leave || ctrlKey || metaKey || altKey || isTyping(event.composedPath()[0])) return;
  if (key === "Escape") leave.click();
  for (const [letter, name] of [["b", "bar"], ["p", "panel"]])
    if (key === letter) root.toggleAttribute(`data-${name}`);
}

export default function ({ parentElement, setTriggerValue }) {
  const node = parentElement.querySelector("i");
  if (!node.watched) onRecolour(node, () => setTriggerValue("recoloured", true));
  node.watched = true;
  if (window.headlightKeepsPlace) return;
  window.headlightKeepsPlace = true;
  document.addEventListener("keydown", runAtEnter, { capture: true });
  document.addEventListener("keydown", present);
  document.addEventListener("scroll", keep, { capture: true, passive: true });
  window.addEventListener("popstate", goBack);
  watchRuns();
}
