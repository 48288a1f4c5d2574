// The page in a notebook that has a kernel: what is selected is told to Python, and back. Heads and tokens
// count from 1 in Python, as on the screen.

const TRAITS = ["head", "cell"];
const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function selected({ state }) {
  const { kind, layer, head, query, key } = state.selection();
  return { head: [kind, state.part().numbers[layer], head + 1], cell: [query + 1, key + 1] };
}

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = model.get("title");
  frame.style.cssText = `width: 100%; height: ${model.get("height")}px; border: 0`;
  const tell = () => {
    const now = selected(frame.stage), other = TRAITS.filter((name) => !isSame(model.get(name), now[name]));
    for (const name of other) model.set(name, now[name]);
    if (other.length) model.save_changes();
  };
  // Of both at once: another head has no cell of the one before.
  const hear = () => {
    const { stage, engine } = frame;
    if (!stage) return; // not drawn yet
    const now = selected(stage), [[kind, number, head], [query, key]] = TRAITS.map((name) => model.get(name));
    const layer = stage.state.part(kind)?.numbers.indexOf(number) ?? -1;
    if (layer < 0 || TRAITS.every((name) => isSame(model.get(name), now[name]))) return;
    engine.lead({ kind, layer, head: head - 1 }, { query: query - 1, key: key - 1 });
  };
  frame.addEventListener("drawn", () => {
    frame.engine.onKept = tell;
    hear();
  });
  for (const name of TRAITS) model.on(`change:${name}`, hear);
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => TRAITS.forEach((name) => model.off(`change:${name}`, hear));
}

export default { render };
