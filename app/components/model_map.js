// The model as in the paper's figure: input at the bottom, output at the top, the stacks beside each
// other, and bridges from the top of one to every layer of another that attends to it.

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function block(one, open) {
  const made = element("button", { type: "button", onclick: () => open(one) },
    element("b", { textContent: one.name }), element("span", { textContent: one.said }));
  if (one.colour) made.style.setProperty("--kind", one.colour);
  made.dataset.part = `${one.stack}.${one.layer ?? ""}.${one.part}`;
  return made;
}

function stack(title, blocks, open) {
  const made = element("div", { className: "stack" }, element("h4", { textContent: title }));
  const layers = new Map();
  for (const one of blocks) {
    if (one.layer === null) {
      made.append(block(one, open));
      continue;
    }
    if (!layers.has(one.layer)) {
      const layer = element("div", { className: "layer" },
        element("small", { textContent: `layer ${one.layer + 1}` }));
      layers.set(one.layer, layer);
      made.append(layer);
    }
    layers.get(one.layer).append(block(one, open));
  }
  return made;
}

/** Lines from the top of each stack to the attentions in other stacks that read it. */
function bridge(map, svg, bridges) {
  const box = map.getBoundingClientRect();
  const lines = bridges.map(([stack, part]) => {
    const from = [...map.querySelectorAll(`[data-part^="${stack}."]`)].pop().getBoundingClientRect();
    const to = map.querySelector(`[data-part="${part}"]`).getBoundingClientRect();
    const onwards = from.left < to.left;
    const [x, y] = [(onwards ? from.right : from.left) - box.left, from.top + from.height / 2 - box.top];
    const [u, v] = [(onwards ? to.left : to.right) - box.left, to.top + to.height / 2 - box.top];
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const [middle, back] = [x + (u - x) * 0.45, onwards ? -7 : 7];
    path.setAttribute("d", `M${x},${y} H${middle} V${v} H${u} m${back},-5 l${-back},5 l${back},5`);
    return path;
  });
  svg.replaceChildren(...lines);
}

/** Widgets that the server has set must hold their new values before another page asks for them:
 * wait for the end of the run, or two seconds. */
function whenDrawn(then, until = performance.now() + 2000) {
  const running = document.querySelector('[data-test-script-state="running"]');
  if (running && performance.now() < until) requestAnimationFrame(() => whenDrawn(then, until));
  else setTimeout(then, 50);
}

const shown = new WeakMap(); // where → {data, observer}

export default function ({ data, parentElement, setTriggerValue }) {
  const before = shown.get(parentElement);
  if (before?.data === data) return;
  const [page, click] = data.follow;
  // Of a run that a new page cut short, the server hears the click a second time.
  if (page && click !== window.headlight?.followed) {
    (window.headlight ??= {}).followed = click;
    whenDrawn(() => {
      const links = [...document.querySelectorAll(".st-key-pages a")];
      links.find((link) => link.textContent.trim() === page)?.click();
    });
  }
  before?.observer.disconnect();
  const open = ({ stack, layer, part, kind }) =>
    setTriggerValue("opened", { stack, layer, part, kind, click: performance.now() });
  const of = (name) => data.blocks.filter((one) => one.stack === name);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  const map = element("div", { className: data.stacks.length > 1 ? "map" : "map alone" });
  data.stacks.forEach(({ name, title, output }, i) => {
    if (i) map.append(element("div"));
    map.append(stack(title, output ? [...of(name), ...of("output")] : of(name), open));
  });
  map.append(svg);
  const frame = element("div", { className: "frame" }, map);
  frame.style.setProperty("--hl-focus", data.focus);
  parentElement.querySelector(".frame")?.remove(); // the style beside it stays
  parentElement.append(frame);
  const observer = new ResizeObserver(() => bridge(map, svg, data.bridges));
  observer.observe(map);
  shown.set(parentElement, { data, observer });
}
