// Buttons: a plain one, and one of an act, which tells what it would give.

import { element } from "../shared/dom.js";

const REST = 1500; // ms after an act without previews

export const button = (name, attributes = {}, ...children) => element("button", { type: "button", ...attributes }, name, ...children);

/** A button for an act, which tells what it would give. */
export function actButton(stage, act, isDone, attributes, ...children) {
  const one = button("", { "aria-pressed": String(Boolean(isDone)), ...attributes });
  one.append(...children);
  one.onclick = () => stage.act(act);
  const tell = () => performance.now() - stage.acted > REST && stage.preview(act); // a new button may come under the pointer
  for (const [event, hear] of [["pointerenter", tell], ["focus", tell], ["pointerleave", () => stage.preview(null)], ["blur", () => stage.preview(null)]])
    one.addEventListener(event, hear);
  return one;
}
