// The grid's page in a notebook that has a kernel: what is selected is told to Python, and back.
// Heads and tokens count from 1 in Python, as on the screen.

function told(grid) {
  const { kind, layer, head } = grid.look.focus;
  return [kind, grid.part(kind).numbers[layer], head + 1];
}

function asTile(grid, [kind, number, head]) {
  const part = grid.part(kind);
  const layer = part ? part.numbers.indexOf(number) : -1;
  return layer < 0 || head < 1 || head > part.heads ? null : { kind, layer, head: head - 1 };
}

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = model.get("title");
  frame.style.cssText = `width: 100%; height: ${model.get("height")}px; border: 0`;
  const tell = (name, value) => {
    if (JSON.stringify(model.get(name)) === JSON.stringify(value)) return;
    model.set(name, value);
    model.save_changes();
  };
  const choose = () => {
    const { grid } = frame;
    const focus = grid && asTile(grid, model.get("head"));
    if (focus && JSON.stringify(told(grid)) !== JSON.stringify(model.get("head")))
      grid.setLook({ ...grid.look, focus, heard: grid.count });
  };
  const mark = () => {
    const { grid } = frame;
    const [row, column] = model.get("cell");
    if (!grid || JSON.stringify(marked(grid)) === JSON.stringify([row, column])) return;
    const { kind, layer, head } = grid.look.focus;
    const part = grid.part(kind);
    const isThere = row >= 1 && column >= 1 && row <= part.rows && column <= part.columns;
    grid.setPin(isThere ? grid.cell(part, layer * part.heads + head, row - 1, column - 1) : null);
  };
  const marked = (grid) => {
    const { query, key } = grid.pinnedCell();
    return [query + 1, key + 1];
  };
  frame.addEventListener("drawn", () => {
    const { grid } = frame;
    grid.report = () => tell("head", told(grid));
    grid.reportCell = () => tell("cell", marked(grid));
    choose();
    mark();
  });
  model.on("change:head", choose);
  model.on("change:cell", mark);
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => {
    model.off("change:head", choose);
    model.off("change:cell", mark);
  };
}

export default { render };
