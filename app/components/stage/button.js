// Buttons: a plain one, and one of an act, which tells what it would give.

import { element } from "../shared/dom.js";

const REST = 1500; // ms after an act without previews

export const button = (name, onclick, attributes = {}, ...children) => Object.assign(element("button", { type: "button", ...attributes }, name, ...children), { onclick });

/** A button for an act, which tells what it would give. */
export function actButton(stage, act, isDone, attributes, ...children) {
  const one = button("", () => stage.act(act), { "aria-pressed": String(Boolean(isDone)), ...attributes }, ...children);
  const tell = () => performance.now() - stage.acted > REST && stage.preview(act); // a new button may come under the pointer
  for (const [event, hear] of [["pointerenter", tell], ["focus", tell], ["pointerleave", () => stage.preview(null)], ["blur", () => stage.preview(null)]])
    one.addEventListener(event, hear);
  return one;
}
