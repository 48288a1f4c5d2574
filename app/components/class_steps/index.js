// The steps of a class as a list, and the one that is unfolded. On paper all are.

import { fromRoot, opensElsewhere } from "../shared/address.js";
import { element, painted } from "../shared/dom.js";
import { lead } from "../shared/lead.js";

const NAMES = { ask: "Ask", show: "Show" };

const written = (parts) => parts.map(([text, tag]) => (tag ? element(tag, {}, text) : text));

/** A link that opens a picture of the plan. */
function opens({ kind, address, step }, here, title) {
  const href = fromRoot(address, here);
  const link = element("a", { href, class: kind, "aria-label": `${NAMES[kind]}: step ${step}, ${title}` }, NAMES[kind]);
  link.onclick = (event) => {
    if (opensElsewhere(event)) return;
    event.preventDefault();
    lead(href);
  };
  return link;
}

function details({ title, minutes, notes }, number, beats, here) {
  const row = (name, ...words) => [element("dt", {}, name), element("dd", {}, ...words)];
  return element("section", { "aria-label": `Step ${number}` },
    element("h2", {}, `${number}. ${title}`, element("small", {}, `minutes ${minutes}`)),
    element("dl", {}, ...notes.filter(([name]) => name === "Write").flatMap(([name, words]) => row(name, ...written(words))),
      ...beats.flatMap((beat) => {
        const name = element("dt", {}, opens(beat, here, title));
        return [name, element("dd", { class: beat.kind }, ...written(beat.words))];
      }),
      ...notes.filter(([name]) => name !== "Write").flatMap(([name, words]) => row(name, ...written(words)))));
}

export default function ({ data, parentElement }) {
  const { steps, beats, at, short, exit, here } = data;
  const drawn = JSON.stringify(data);
  if (parentElement.drawn === drawn) return;
  parentElement.drawn = drawn;
  const of = (number) => beats.filter(({ step }) => step === number);
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
  const rows = steps.map(({ minutes, title }, i) => {
    const [ask, show] = ["ask", "show"].map((kind) => of(i + 1).find((beat) => beat.kind === kind));
    return element("li", { class: i + 1 === short ? "short" : "" }, element("small", {}, minutes), names[i],
      ...[ask, show].filter(Boolean).map((beat) => opens(beat, here, title)));
  });
  const frame = element("div", { class: "plan" }, element("ol", {}, ...rows),
    element("div", { class: "details" }, ...sections,
      element("p", { class: "exit" }, element("b", {}, "Exit question. "), ...written(exit))));
  parentElement.querySelector(".plan")?.remove();
  parentElement.append(frame);
  choose((beats[at - 1]?.step ?? 1) - 1);
  painted("plan", steps.length);
}
