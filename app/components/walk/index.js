// Walks through steps. They are counted here: the server hears of several quick presses as one.

import { places } from "../shared/places.js";

const PATIENCE = 5000; // ms in which the server's answer to a press comes, or is lost
// Where arrow keys mean something else. The choice of steps itself is no such place.
const OTHERS = "input, textarea, select, [role=combobox], [role=slider], [role=radio], " +
  "[role=application], [role=listbox], [role=tab], [role=toolbar], [contenteditable=true]";

const state = { at: 0, since: -Infinity, onKey: null }; // since when the server has not answered

const enter = places(() => listen(null));

/** One listener at a time: two would take two steps. */
function listen(onKey) {
  document.removeEventListener("keydown", state.onKey, true);
  state.onKey = onKey;
  if (onKey) document.addEventListener("keydown", onKey, true);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const isLate = data.at !== state.at && performance.now() - state.since < PATIENCE;
  if (!isLate) Object.assign(state, { at: data.at, since: -Infinity });
  const step = (by) => {
    const at = Math.min(data.count - 1, Math.max(0, state.at + by));
    if (at === state.at) return;
    Object.assign(state, { at, since: performance.now() });
    setTriggerValue("at", at);
  };
  const [back, next] = parentElement.querySelectorAll("button");
  back.onclick = () => step(-1);
  next.onclick = () => step(1);
  const onKey = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const at = event.composedPath()[0];
    const isElsewhere = at.closest?.(OTHERS) && !at.closest(".st-key-at");
    if (!by || isElsewhere || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    step(by);
  };
  return enter(parentElement, () => listen(onKey));
}
