// The model as in the paper's figure: input at the bottom, output at the top, the stacks beside each
// other, and bridges from the top of one to every layer of another that attends to it.

import { element } from "../shared/dom.js";
import { shape } from "../shared/svg.js";

function block(one, choose) {
  const button = element("button", { type: "button", "data-part": one.id },
    element("b", {}, one.name), element("span", {}, one.description));
  button.onclick = () => choose(one.id);
  if (one.colour) button.style.setProperty("--kind", one.colour);
  return button;
}

function stack(title, blocks, choose) {
  const column = element("div", { class: "stack" }, element("h4", {}, title));
  const layers = new Map();
  for (const one of blocks) {
    if (one.layer === null) {
      column.append(block(one, choose));
      continue;
    }
    if (!layers.has(one.layer)) {
      const layer = element("div", { class: "layer" },
        element("small", {}, `layer ${one.layer + 1}`));
      layers.set(one.layer, layer);
      column.append(layer);
    }
    layers.get(one.layer).append(block(one, choose));
  }
  return column;
}

/** Lines from the top of each stack to the attentions in other stacks that read it. */
function bridge(map, svg, bridges) {
  const box = map.getBoundingClientRect();
  const lines = bridges.map(([lower, part]) => {
    const from = [...map.querySelectorAll(`[data-part^="${lower}."]`)].pop().getBoundingClientRect();
    const to = map.querySelector(`[data-part="${part}"]`).getBoundingClientRect();
    const onwards = from.left < to.left;
    const [x, y] = [(onwards ? from.right : from.left) - box.left, from.top + from.height / 2 - box.top];
    const [u, v] = [(onwards ? to.left : to.right) - box.left, to.top + to.height / 2 - box.top];
    const [middle, back] = [x + (u - x) * 0.45, onwards ? -7 : 7];
    return shape("path", {
      d: `M${x},${y} H${middle} V${v} H${u} m${back},-5 l${-back},5 l${back},5`,
    });
  });
  svg.replaceChildren(...lines);
}

function mark(map, chosen) {
  for (const button of map.querySelectorAll("button"))
    button.setAttribute("aria-pressed", button.dataset.part === chosen);
}

function drawn({ blocks, stacks, bridges, focus }, choose) {
  const of = (name) => blocks.filter((one) => one.stack === name);
  const svg = shape("svg", { "aria-hidden": "true" });
  const map = element("div", { class: stacks.length > 1 ? "map" : "map alone" });
  stacks.forEach(({ name, title, output }, i) => {
    if (i) map.append(element("div"));
    map.append(stack(title, output ? [...of(name), ...of("output")] : of(name), choose));
  });
  map.append(svg);
  const frame = element("div", { class: "frame" }, map);
  frame.style.setProperty("--hl-focus", focus);
  const observer = new ResizeObserver(() => bridge(map, svg, bridges));
  observer.observe(map);
  return { frame, map, observer };
}

const shown = new WeakMap(); // where → {text, map, observer}

export default function ({ data: { chosen, ...model }, parentElement, setTriggerValue }) {
  const text = JSON.stringify(model);
  let picture = shown.get(parentElement);
  if (picture?.text !== text) {
    picture?.observer.disconnect();
    const { frame, map, observer } = drawn(model, (id) => {
      mark(map, id); // at once; the server says the same a little later
      setTriggerValue("chosen", id);
    });
    parentElement.querySelector(".frame")?.remove(); // the style beside it stays
    parentElement.append(frame);
    picture = { text, map, observer };
    shown.set(parentElement, picture);
  }
  mark(picture.map, chosen); // another choice leaves the blocks, and the keyboard's place, as they are
}
