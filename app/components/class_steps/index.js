// The steps of a class as a list, and the one that is unfolded. On paper all are.

import { fromRoot } from "../shared/address.js";
import { drawing } from "../shared/covered.js";
import { element, onRecolour, painted } from "../shared/dom.js";
import { leadsTo } from "../shared/lead.js";

const NAMES = { ask: "Ask", show: "Show" };

const written = (parts) => parts.map(([text, tag]) => (tag ? element(tag, {}, text) : text));

/** A link that opens a picture of the plan. */
function opens({ kind, address, step }, here, title) {
  const named = { class: kind, "aria-label": `${NAMES[kind]}: step ${step}, ${title}` };
  return leadsTo(element("a", named, NAMES[kind]), () => fromRoot(address, here));
}

const SIZE = [300, 210]; // px, of a picture
const LETTER = 13; // px

/** A step unfolded. */
function details({ title, minutes, write, notes }, number, slides, here) {
  const board = write.length ? [element("dt", {}, "Write"), element("dd", {}, ...written(write))] : [];
  return element("section", { "aria-label": `Step ${number}` },
    element("h2", {}, `${number}. ${title}`, element("small", {}, `minutes ${minutes}`)),
    element("span", { class: "picture" }),
    element("dl", {}, ...board, ...slides.flatMap((slide) => {
      const name = element("dt", {}, opens(slide, here, title));
      return [name, element("dd", { class: slide.kind }, ...written(slide.words))];
    })),
    ...notes.map(([name, words]) => element("p", { class: "note" }, element("b", {}, `${name}. `), ...written(words))));
}

export default function ({ data, parentElement }) {
  const { steps, slides, at, short, exit, here, folded, palette, focus } = data;
  const drawn = JSON.stringify(data);
  if (parentElement.drawn === drawn) return;
  parentElement.drawn = drawn;
  const of = (number) => slides.filter(({ step }) => step === number);
  const sections = steps.map((step, i) => details(step, i + 1, of(i + 1), here));
  const choose = (chosen) => {
    sections.forEach((section, i) => section.classList.toggle("chosen", i === chosen));
    rows.forEach((row, i) => row.classList.toggle("chosen", i === chosen));
    names.forEach((name, i) => name.setAttribute("aria-pressed", String(i === chosen)));
  };
  const names = steps.map(({ title }, i) => {
    const name = element("button", { type: "button" }, element("b", {}, String(i + 1)), element("span", {}, title));
    name.onclick = () => choose(i);
    return name;
  });
  const rows = steps.map(({ minutes }, i) =>
    element("li", { class: i + 1 === short ? "short" : "" }, element("small", {}, minutes), names[i]));
  const unfolds = element("button", { type: "button", class: "unfolds", "aria-pressed": "false" }, "Answers and notes");
  const frame = element("div", { class: folded ? "plan folded" : "plan" }, element("ol", {}, ...rows),
    element("div", { class: "details" }, ...(folded ? [unfolds] : []), ...sections),
    element("p", { class: "exit" }, element("b", {}, "Exit question. "), ...written(exit)));
  unfolds.onclick = () => unfolds.setAttribute("aria-pressed", String(!frame.classList.toggle("folded")));
  frame.style.setProperty("--hl-focus", focus);
  const draw = () => sections.forEach((section, i) => {
    const picture = drawing(steps[i].picture, ...SIZE, LETTER, palette, getComputedStyle(frame).color);
    section.querySelector(".picture").replaceChildren(...(steps[i].picture ? [picture] : []));
  });
  parentElement.querySelector(".plan")?.remove();
  parentElement.append(frame);
  draw();
  onRecolour(frame, draw);
  choose((slides[at - 1]?.step ?? 1) - 1);
  painted("plan", steps.length);
}
