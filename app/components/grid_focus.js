// The head in focus, large and with its pieces; it follows the grid of the same page.
// Runs after head_grid.js: `grid` is its picture, `element` and `weightOf` are its helpers.

const ROOM = 900; // px for cells
const LARGEST_CELL = 34;
const MOST_LABELS = 64;

class Focus {
  constructor(grid, root) {
    this.grid = grid;
    this.heading = element("h2");
    this.canvas = element("canvas", { role: "img" });
    this.box = element("div", { class: "focused" }, this.canvas);
    root.append(this.heading, this.box);
    this.canvas.onpointermove = (event) => grid.hover(this.cellAt(event));
    this.canvas.onpointerleave = () => grid.hover(null);
    const point = grid.point.bind(grid);
    grid.point = () => {
      point();
      this.draw();
    };
  }

  /** What is shown: one head, or the mean over some. */
  weights(part) {
    const { focus, average } = this.grid.look;
    const { layers, heads, rows, columns, cells } = part;
    const all = { layers: average === "layers" || average === "both",
      heads: average === "heads" || average === "both" };
    const sum = new Float32Array(rows * columns);
    let count = 0;
    for (let layer = 0; layer < layers; layer++)
      for (let head = 0; head < heads; head++) {
        if (!all.layers && layer !== focus.layer) continue;
        if (!all.heads && head !== focus.head) continue;
        const start = (layer * heads + head) * rows * columns;
        for (let i = 0; i < sum.length; i++) sum[i] += weightOf(cells[start + i]);
        count++;
      }
    return sum.map((weight) => weight / count);
  }

  name(part) {
    const { focus, average } = this.grid.look;
    const number = part.numbers[focus.layer];
    const which = { heads: `layer ${number}, mean over its heads`,
      layers: `head ${focus.head + 1}, mean over the layers`, both: "mean over all heads" };
    return `${part.name}, ` +
      (which[average] ?? `layer ${number}, head ${focus.head + 1}`);
  }

  draw() {
    const { grid } = this;
    const part = grid.part(grid.look.focus.kind);
    if (!part?.rows || !part.columns) return this.box.parentElement.toggleAttribute("hidden", true);
    const { pointed, pinned } = grid;
    const state = JSON.stringify([grid.look.focus, grid.ink, pointed, pinned]);
    if (state === this.drawn) return;
    this.drawn = state;
    const said = this.name(part);
    this.heading.textContent = said;
    this.canvas.setAttribute("aria-label", said);
    const sides = [part.asks, part.looked_at].map((name) => grid.held.sides[name]);
    const counts = [part.rows, part.columns];
    const cell = Math.max(2, Math.min(LARGEST_CELL, Math.floor(ROOM / Math.max(...counts))));
    const [labels, everies] = [[], []];
    const context = this.canvas.getContext("2d");
    sides.forEach((side, i) => {
      const every = Math.ceil(Math.max(counts[i] / MOST_LABELS, 11 / cell));
      everies.push(every);
      labels.push(Array.from({ length: counts[i] }, (_, at) =>
        at % every ? "" : side.labels[at * side.every].slice(0, 32)));
    });
    const sizes = everies.map((every) => Math.min(15, 0.85 * cell * every));
    const widest = labels.map((some, i) => {
      context.font = `${sizes[i]}px ${grid.family}`;
      return Math.max(...some.map((label) => context.measureText(label).width));
    });
    const [left, top] = [widest[0] + 38, widest[1] + 38];
    const [width, height] = [left + part.columns * cell + 4, top + part.rows * cell + 4];
    const sharp = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * sharp, height: height * sharp });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    Object.assign(this, { part, cell, left, top });
    context.scale(sharp, sharp);
    context.drawImage(this.sheet(part), left, top, part.columns * cell, part.rows * cell);
    context.fillStyle = grid.ink;
    labels[0].forEach((label, at) => {
      context.font = `${sizes[0]}px ${grid.family}`;
      context.textAlign = "right";
      context.fillText(label, left - 6, top + (at + 0.5) * cell + 0.35 * sizes[0]);
    });
    const turned = (text, x, y, size, align) => {
      context.save();
      context.translate(x, y);
      context.rotate(-Math.PI / 2);
      context.font = `${size}px ${grid.family}`;
      context.textAlign = align;
      context.fillText(text, 0, 0);
      context.restore();
    };
    labels[1].forEach((label, at) =>
      turned(label, left + (at + 0.5) * cell + 0.35 * sizes[1], top - 6, sizes[1], "left"));
    turned(`who asks (${part.asks})`, 16, top + (part.rows * cell) / 2, 15, "center");
    context.font = `15px ${grid.family}`;
    context.textAlign = "left";
    context.fillText(`who is looked at (${part.looked_at})`, left, 16);
    this.mark(context, pointed ?? pinned);
  }

  /** One pixel a cell. A row that may look at nothing is blank. */
  sheet(part) {
    const { rows, columns } = part;
    const weights = this.weights(part);
    const colours = this.grid.colours();
    const canvas = element("canvas");
    Object.assign(canvas, { width: columns, height: rows });
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let row = 0; row < rows; row++) {
      const own = weights.subarray(row * columns, (row + 1) * columns);
      if (own.some((weight) => weight > 0))
        own.forEach((weight, i) => {
          const shown = weight < this.grid.look.least ? 0 : weight;
          pixels[row * columns + i] = colours[Math.round(255 * shown)];
        });
    }
    context.putImageData(image, 0, 0);
    this.shown = weights; // read by tests
    const { cell } = this;
    const large = element("canvas");
    Object.assign(large, { width: columns * cell, height: rows * cell });
    const enlarged = large.getContext("2d");
    enlarged.imageSmoothingEnabled = false;
    enlarged.drawImage(canvas, 0, 0, large.width, large.height);
    return large;
  }

  mark(context, pointed) {
    const { grid, part, cell, left, top } = this;
    const [row, column] = pointed?.piece ? [pointed.piece, pointed.piece]
      : [pointed?.row, pointed?.column];
    context.strokeStyle = grid.look.colour;
    context.lineWidth = 2;
    const at = (found) => Math.floor(found.index / grid.held.sides[found.side].every) * cell;
    if (row?.side === part.asks)
      context.strokeRect(left, top + at(row), part.columns * cell, cell);
    if (column?.side === part.looked_at)
      context.strokeRect(left + at(column), top, cell, part.rows * cell);
  }

  cellAt(event) {
    const { part, cell, left, top, canvas, grid } = this;
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / cell);
    const row = Math.floor((event.clientY - box.top - top) / cell);
    if (column < 0 || column >= part.columns || row < 0 || row >= part.rows) return null;
    const { layer, head } = grid.look.focus;
    return grid.cell(part, layer * part.heads + head, row, column);
  }
}
