// The grid's page in a notebook that has a kernel: what is selected is told to Python, and back.
// Heads and tokens count from 1 in Python, as on the screen.

function headOf(grid) {
  const { kind, layer, head } = grid.look.focus;
  return [kind, grid.part(kind).numbers[layer], head + 1];
}

function cellOf(grid) {
  const { query, key } = grid.pinnedCell();
  return [query + 1, key + 1];
}

function choose(grid, [kind, number, head]) {
  const layer = grid.part(kind)?.numbers.indexOf(number) ?? -1;
  if (layer < 0 || head < 1 || head > grid.part(kind).heads) return;
  grid.setLook({ ...grid.look, focus: { kind, layer, head: head - 1 }, heard: grid.count });
}

function pin(grid, [row, column]) {
  const { kind, layer, head } = grid.look.focus;
  const part = grid.part(kind);
  const [every, across] = [part.query, part.key].map((side) => grid.data.sides[side].every);
  const at = [Math.floor((row - 1) / every), Math.floor((column - 1) / across)];
  const isThere = row >= 1 && at[0] < part.rows && at[1] < part.columns;
  if (!isThere) grid.setPin(null);
  else if (column < 1) grid.setPin(grid.rowAsWord(part, row - 1));
  else grid.setPin(grid.cell(part, layer * part.heads + head, ...at));
}

const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = model.get("title");
  frame.style.cssText = `width: 100%; height: ${model.get("height")}px; border: 0`;
  const tell = () => {
    const now = { head: headOf(frame.grid), cell: cellOf(frame.grid) };
    const other = Object.keys(now).filter((name) => !isSame(model.get(name), now[name]));
    for (const name of other) model.set(name, now[name]);
    if (other.length) model.save_changes();
  };
  // Of both at once: another head has no cell of the one before.
  const hear = () => {
    const { grid } = frame;
    if (!grid) return; // not drawn yet
    const [head, cell] = [model.get("head"), model.get("cell")];
    if (!isSame(headOf(grid), head)) choose(grid, head);
    if (!isSame(cellOf(grid), cell)) pin(grid, cell);
  };
  frame.addEventListener("drawn", () => {
    Object.assign(frame.grid, { report: tell, reportCell: tell });
    hear();
  });
  model.on("change:head", hear);
  model.on("change:cell", hear);
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => {
    model.off("change:head", hear);
    model.off("change:cell", hear);
  };
}

export default { render };
