// Walks through steps. They are counted here: the server hears of several quick presses as one.

import { arrows } from "../shared/arrows.js";

const PATIENCE = 5000; // ms in which the server's answer to a press comes, or is lost

const state = { at: 0, since: -Infinity }; // since when the server has not answered

const enter = arrows(".st-key-at"); // the choice of steps itself

export default function ({ data, parentElement, setTriggerValue }) {
  globalThis.headlightStage?.engine?.tell("said", data.said); // a step is a run of its region alone
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
  return enter(parentElement, step);
}
