// Bars to both sides of zero, as high as the window lets them be.

import { asOneStop, element, heightBelow, outwards, painted, roomBelow } from "../shared/dom.js";
import { minus } from "../shared/numbers.js";

const [LOWEST, HIGHEST] = [1.3, 2.6]; // of a bar, in letters
const MARGIN = 1.5; // in letters: at the foot of the page

const signed = (value) => minus(`${value < 0 ? "" : "+"}${value.toFixed(2)}`);

function build({ bars, alt, colours, focus }, send) {
  const values = bars.map(({ value }) => value);
  const low = Math.min(0, ...values);
  const range = Math.max(0, ...values) - low || 1;
  const percent = (share) => `${(100 * share).toFixed(2)}%`;
  const lines = bars.map(({ name, value, chooses, chosen }, place) => {
    const start = (Math.min(0, value) - low) / range;
    const bar = element("i", { style: `left: ${percent(start)}; ` +
      `width: ${percent(Math.abs(value) / range)}; background: ${colours[Number(value > 0)]}` });
    const zero = element("i", { class: "zero", style: `left: ${percent(-low / range)}` });
    const line = element(chooses ? "button" : "div", chooses ? { type: "button", class: "bar" } : { class: "bar" },
      element("span", { class: "name", dir: "auto" }, name),
      element("span", { class: "track", "aria-hidden": "true" }, bar, zero),
      element("span", { class: "number" }, signed(value)));
    line.classList.toggle("chosen", chosen);
    if (chooses) line.onclick = () => send(place);
    return line;
  });
  const frame = element("div", { class: "frame", role: "group", "aria-label": alt }, ...lines);
  frame.style.setProperty("--hl-focus", focus);
  const buttons = lines.filter(({ localName }) => localName === "button");
  if (buttons.length) asOneStop(frame, buttons, 1, frame.querySelector("button.chosen") ?? buttons[0]);
  return frame;
}

/** Rows that end where the window does. */
function fit(frame) {
  const letter = parseFloat(getComputedStyle(frame).fontSize);
  const room = roomBelow(frame) - heightBelow(frame) - MARGIN * letter;
  const height = Math.min(HIGHEST * letter, Math.max(LOWEST * letter, room / frame.childElementCount));
  frame.style.setProperty("--row", `${height}px`);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const text = JSON.stringify(data);
  if (parentElement.shownBars === text) return; // what is there is right
  parentElement.shownBars = text;
  const frame = build(data, (place) => setTriggerValue("chosen", place));
  parentElement.querySelector(".frame")?.remove();
  parentElement.append(frame);
  const observer = new ResizeObserver(() => (frame.isConnected ? fit(frame) : observer.disconnect()));
  for (const node of outwards(frame)) observer.observe(node);
  fit(frame);
  painted("bars");
}
