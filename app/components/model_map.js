// The model as in the paper's figure: input at the bottom, output at the top, the encoder on the
// left, the decoder on the right, and the bridge from the one to every layer of the other.

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

/** Lines from the top of the encoder to every cross-attention. */
function bridge(map, svg) {
  const box = map.getBoundingClientRect();
  const encoder = [...map.querySelectorAll('[data-part^="encoder."]')].pop();
  const from = encoder?.getBoundingClientRect();
  const lines = [...map.querySelectorAll('[data-part$=".cross_attn"]')].map((cross) => {
    const to = cross.getBoundingClientRect();
    const [x, y] = [from.right - box.left, from.top + from.height / 2 - box.top];
    const [u, v] = [to.left - box.left, to.top + to.height / 2 - box.top];
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const middle = x + (u - x) * 0.45;
    path.setAttribute("d", `M${x},${y} H${middle} V${v} H${u} m-7,-5 l7,5 l-7,5`);
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
  const decoder = of("decoder");
  const output = of("output");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  const map = element("div", { className: decoder.length ? "map" : "map alone" });
  map.append(stack("Encoder: reads the source", decoder.length ? of("encoder") :
    [...of("encoder"), ...output], open));
  if (decoder.length) map.append(element("div"),
    stack("Decoder: reads the target", [...decoder, ...output], open));
  map.append(svg);
  const frame = element("div", { className: "frame" }, map);
  frame.style.setProperty("--hl-focus", data.focus);
  parentElement.querySelector(".frame")?.remove(); // the style beside it stays
  parentElement.append(frame);
  const observer = new ResizeObserver(() => bridge(map, svg));
  observer.observe(map);
  shown.set(parentElement, { data, observer });
}
