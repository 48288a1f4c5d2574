// Streamlit scrolls inside the page, where the browser keeps no place for Back. One listener serves
// all pages and outlives each. It asks for a run when the page takes other colours, and says when
// one is slow.

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

export default function ({ parentElement, setTriggerValue }) {
  const node = parentElement.querySelector("i");
  if (!node.watched) onRecolour(node, () => setTriggerValue("recoloured", true));
  node.watched = true;
  if (window.headlightKeepsPlace) return;
  window.headlightKeepsPlace = true;
  document.addEventListener("scroll", keep, { capture: true, passive: true });
  window.addEventListener("popstate", goBack);
  watchRuns();
}
