// All heads at once: for each kind of attention a canvas of tiles, and the text that they read.
//
// Two mounts share one picture. One brings the weights, as bytes, which travel again only when
// they change; the other brings how to look at them (focus, order, scale), which is small.
//
// A cell is a byte: 0 where the query may not look, else 1 + 254 × weight.

const REST = 150; // ms without a key before the server hears of it
const LEAST_TILE = 3.5; // in letters; smaller tiles are stacked instead
const LARGEST_TILE = 18;
const GAP = 6;

const weightOf = (byte) => Math.max(0, byte - 1) / 254;
const percent = (weight) => `${Math.round(100 * weight)} %`;

/** The bytes of pack() in head_grid.py: length of the header, header as JSON, cells. */
export function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let start = 4 + length;
  for (const part of header.parts) {
    const size = part.layers * part.heads * part.rows * part.columns;
    part.cells = bytes.subarray(start, start + size);
    start += size;
    part.down = { [part.asks]: 0 }; // side → its first row
    part.across = { [part.looked_at]: 0 }; // side → its first column
  }
  return header;
}

/** All texts in one square, along both sides: each kind of attention is a block of it, and a layer
 * of the square holds those that stand in it. Null where the kinds do not fit together. */
function joint(parts, sides) {
  const size = {};
  for (const part of parts) Object.assign(size, { [part.asks]: part.rows, [part.looked_at]: part.columns });
  const names = Object.keys(sides).filter((name) => size[name]);
  const places = new Set(parts.map((part) => `${part.asks} ${part.looked_at}`));
  const { heads } = parts[0];
  if (names.length < 2 || places.size < parts.length || parts.some((part) => part.heads !== heads))
    return null;
  const offsets = {};
  let length = 0;
  for (const name of names) {
    offsets[name] = length;
    length += size[name];
  }
  const numbers = [...new Set(parts.flatMap((part) => part.numbers))].sort((a, b) => a - b);
  const cells = new Uint8Array(numbers.length * heads * length * length);
  for (const part of parts) {
    const [top, left] = [offsets[part.asks], offsets[part.looked_at]];
    for (let layer = 0; layer < part.layers; layer++)
      for (let head = 0; head < heads; head++) {
        const tile = numbers.indexOf(part.numbers[layer]) * heads + head;
        for (let row = 0; row < part.rows; row++) {
          const from = ((layer * heads + head) * part.rows + row) * part.columns;
          const to = (tile * length + top + row) * length + left;
          cells.set(part.cells.subarray(from, from + part.columns), to);
        }
      }
  }
  const titles = names.map((name, i) => (i ? sides[name].name.toLowerCase() : sides[name].name));
  return {
    kind: "joint", name: `${titles.join(" and ")} in one square`, layers: numbers.length, heads,
    numbers, rows: length, columns: length, cells, down: offsets, across: offsets,
    blocks: Object.fromEntries(parts.map((part) => [part.kind, part])),
  };
}

/** The row of a part that a head of one of its kinds stands in, and the other way round. */
const rowOf = (part, { kind, layer }) =>
  part.blocks ? part.numbers.indexOf(part.blocks[kind].numbers[layer]) : layer;
const layerOf = (part, own, row) =>
  part.blocks ? own.numbers.indexOf(part.numbers[row]) : row;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

class Picture {
  held = null; // what unpack() gave
  look = null; // what the small mount gave
  pointed = null; // {row: {side, index}, column: {side, index}, tile: {kind, layer, head}}
  pinned = null;
  rest = 0;
  report = () => {};

  mount(root) {
    if (this.root === root) return;
    this.root = root;
    this.text = element("div", { class: "text" });
    this.said = element("p", { class: "said", "aria-hidden": "true" });
    this.live = element("p", { class: "live", role: "status" });
    this.sections = element("div", { class: "sections" });
    this.stage = element("div", {
      class: "stage", tabindex: "0", role: "application",
      "aria-label": "All heads. Arrow keys walk from head to head, Shift and arrow keys from " +
        "cell to cell, Home to the first cell. The sentence below says what is there.",
    }, this.sections);
    this.frame = element("div", { class: "frame" }, this.text, this.said, this.stage, this.live);
    root.append(this.frame);
    this.stage.onkeydown = (event) => this.key(event);
    this.stage.onpointermove = (event) => this.hover(this.cellAt(event));
    this.stage.onpointerleave = () => this.hover(null);
    this.stage.onclick = (event) => this.choose(this.cellAt(event)?.tile, 0);
    this.text.onpointermove = (event) => this.hover(this.pieceAt(event));
    this.text.onpointerleave = () => this.hover(null);
    this.text.onclick = (event) => this.pin(this.pieceAt(event));
    this.observer?.disconnect();
    this.observer = new ResizeObserver(() => {
      if (Math.abs(this.frame.clientWidth - this.width) > 1) this.draw();
    });
    this.observer.observe(this.frame);
    this.worded = null; // a new place on the page, after another page was shown
    this.draw();
  }

  setWeights(bytes) {
    const held = unpack(bytes);
    if (this.held?.id === held.id) return;
    this.held = held;
    this.pointed = this.pinned = null;
    this.draw();
  }

  setLook(look) {
    if (look === this.given) return;
    const before = this.look;
    this.given = look;
    // A key is pressed: what the server answers to an earlier one must not move the focus back.
    if (this.rest && before) look = { ...look, focus: before.focus };
    this.look = look;
    const rest = (l) => JSON.stringify({ ...l, focus: null });
    if (before && rest(before) === rest(look)) this.point();
    else this.draw();
  }

  part(kind) {
    return this.held.parts.find((part) => part.kind === kind);
  }

  shown() {
    const { show, focus } = this.look;
    const all = this.held.parts.filter((part) => part.rows && part.columns);
    if (show === "joint" && all.length) {
      if (this.held.joint === undefined) this.held.joint = joint(all, this.held.sides);
      if (this.held.joint) return [this.held.joint];
    }
    return show === "one kind" ? all.filter((part) => part.kind === focus.kind) : all;
  }

  // Drawing

  draw() {
    if (!this.root || !this.held || !this.look) return;
    const style = getComputedStyle(this.frame);
    this.font = parseFloat(style.fontSize);
    this.ink = style.color;
    this.family = style.fontFamily;
    this.width = this.frame.clientWidth;
    this.frame.style.setProperty("--hl-focus", this.look.colour);
    this.words();
    const parts = this.shown();
    this.drawn = [];
    if (!parts.length) return this.sections.replaceChildren("With this reading, nothing is left.");
    const ordered = parts.every((part) => part.kind in this.look.order);
    const left = (ordered ? 0.2 : 1.6) * this.font;
    const fits = (count) =>
      (this.width / count - left) / parts[0].heads - GAP >= LEAST_TILE * this.font;
    let beside = parts.length;
    while (beside > 1 && !fits(beside)) beside--;
    const room = (this.width - (beside - 1) * this.font) / beside - 1;
    this.drawn = parts.map((part) => this.section(part, room, left));
    this.sections.replaceChildren(...this.drawn.map((section) => section.box));
    this.point();
    requestAnimationFrame(() => {
      this.painted = performance.now(); // for the bench
      this.paintedOf = this.held.id;
    });
  }

  section(part, room, left) {
    const { font } = this;
    const order = this.look.order[part.kind];
    const { layers, heads } = part;
    const top = order ? 0 : 1.5 * font;
    const above = order ? 1.25 * font : 0; // a line of its own over every tile
    const width = Math.min((room - left) / heads - GAP, LARGEST_TILE * font);
    const ratio = Math.min(1.6, Math.max(0.6, part.rows / part.columns));
    const height = width * ratio;
    const section = { part, left, top: top + above, width, height, order, above };
    section.stepX = width + GAP;
    section.stepY = height + GAP + above;
    const fullWidth = Math.ceil(left + heads * section.stepX);
    const fullHeight = Math.ceil(section.top + layers * section.stepY);
    const [base, over] = [0, 1].map(() => {
      const canvas = element("canvas", { "aria-hidden": "true" });
      const sharp = window.devicePixelRatio || 1;
      canvas.width = fullWidth * sharp;
      canvas.height = fullHeight * sharp;
      canvas.style.width = `${fullWidth}px`;
      canvas.style.height = `${fullHeight}px`;
      const context = canvas.getContext("2d");
      context.scale(sharp, sharp);
      return context;
    });
    section.over = over;
    section.box = element("div", { class: "section" },
      element("h3", {}, part.name),
      element("div", { class: "canvases" }, base.canvas, over.canvas));
    section.box.lastChild.style.height = `${fullHeight}px`;
    const sheet = this.sheet(part);
    base.font = `${0.85 * font}px ${this.family}`;
    base.fillStyle = this.ink;
    base.imageSmoothingQuality = "high";
    base.imageSmoothingEnabled = width < part.columns || height < part.rows;
    for (let tile = 0; tile < layers * heads; tile++) {
      const { x, y } = this.corner(section, this.placeOf(section, tile));
      const [layer, head] = [Math.floor(tile / heads), tile % heads];
      base.drawImage(sheet, head * part.columns, layer * part.rows, part.columns, part.rows,
        x, y, width, height);
      if (order) {
        const value = order.values[tile];
        const name = `${part.numbers[layer]}·${head + 1}` + (value == null ? "" : `  ${value}`);
        base.textAlign = "left";
        base.fillText(name, x, y - 0.3 * font, width);
      }
    }
    if (!order) {
      base.textAlign = "center";
      for (let head = 0; head < heads; head++)
        base.fillText(head ? head + 1 : "head 1", this.corner(section, head).x + width / 2,
          0.95 * font);
      for (let layer = 0; layer < layers; layer++) {
        const { y } = this.corner(section, layer * heads);
        base.save();
        base.translate(0.95 * font, y + height / 2);
        base.rotate(-Math.PI / 2);
        base.fillText(`layer ${part.numbers[layer]}`, 0, 0);
        base.restore();
      }
    }
    return section;
  }

  /** Where in the order a tile stands, and the tile that stands at a place. */
  placeOf(section, tile) {
    return section.order ? section.order.tiles.indexOf(tile) : tile;
  }

  corner(section, place) {
    const { heads } = section.part;
    return {
      x: section.left + (place % heads) * section.stepX,
      y: section.top + Math.floor(place / heads) * section.stepY,
    };
  }

  /** All tiles of a part, one pixel a cell. */
  sheet(part) {
    const { layers, heads, rows, columns, cells } = part;
    const { scale, least } = this.look;
    const colours = this.colours();
    const table = new Uint32Array(256);
    for (let byte = 1; byte < 256; byte++) {
      const weight = weightOf(byte);
      const shown = weight < least ? 0 : scale === "square root" ? Math.sqrt(weight) : weight;
      table[byte] = colours[Math.round(255 * shown)];
    }
    const canvas = document.createElement("canvas");
    canvas.width = heads * columns;
    canvas.height = layers * rows;
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    let from = 0;
    for (let layer = 0; layer < layers; layer++)
      for (let head = 0; head < heads; head++)
        for (let row = 0; row < rows; row++) {
          const to = (layer * rows + row) * canvas.width + head * columns;
          if (scale === "per row") {
            let top = 2;
            for (let i = 0; i < columns; i++) top = Math.max(top, cells[from + i]);
            for (let i = 0; i < columns; i++) {
              const byte = cells[from + i];
              const shown = weightOf(byte) < least ? 0 : weightOf(byte) / weightOf(top);
              if (byte) pixels[to + i] = colours[Math.round(255 * shown)];
            }
          } else for (let i = 0; i < columns; i++) pixels[to + i] = table[cells[from + i]];
          from += columns;
        }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  /** 256 colours of the scale, as the pixels of a little-endian machine. */
  colours() {
    const stops = this.look.palette.map((hex) =>
      [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
    return Uint32Array.from({ length: 256 }, (_, i) => {
      const place = (i / 255) * (stops.length - 1);
      const low = Math.min(Math.floor(place), stops.length - 2);
      const [r, g, b] = stops[low].map((value, channel) =>
        Math.round(value + (place - low) * (stops[low + 1][channel] - value)));
      return (255 << 24) | (b << 16) | (g << 8) | r;
    });
  }

  /** The text, a span for each piece, as it was typed. */
  words() {
    if (this.worded === this.held) return;
    this.worded = this.held;
    this.spans = {};
    this.text.replaceChildren();
    for (const [side, { labels, spaced, name }] of Object.entries(this.held.sides)) {
      if (!labels.length) continue;
      this.spans[side] = labels.map((label, index) => {
        const span = element("span", { dir: "auto" }, label);
        Object.assign(span, { side, index });
        if (spaced[index]) span.classList.add("spaced");
        return span;
      });
      const pieces = this.spans[side].flatMap((span) => [span, element("wbr")]);
      this.text.append(element("div", { class: side }, element("b", {}, name), ...pieces));
    }
  }

  // Pointing

  cellAt(event) {
    for (const section of this.drawn ?? []) {
      const { part, width, height, stepX, stepY } = section;
      const box = section.over.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left - section.left, event.clientY - box.top - section.top];
      const [column, row] = [Math.floor(x / stepX), Math.floor(y / stepY)];
      if (column < 0 || column >= part.heads || row < 0 || row >= part.layers) continue;
      const [insideX, insideY] = [x - column * stepX, y - row * stepY];
      if (insideX >= width || insideY >= height) continue;
      const place = row * part.heads + column;
      const tile = section.order ? section.order.tiles[place] : place;
      return this.cell(part, tile, Math.floor((insideY / height) * part.rows),
        Math.floor((insideX / width) * part.columns));
    }
    return null;
  }

  /** A cell by its place in a part; null where the joint square is empty. */
  cell(part, tile, row, column) {
    const side = (offsets, at) =>
      Object.entries(offsets).filter(([, first]) => first <= at).pop()[0];
    const [asks, looked] = [side(part.down, row), side(part.across, column)];
    const own = part.blocks
      ? Object.values(part.blocks).find((p) => asks in p.down && looked in p.across)
      : part;
    if (!own) return null;
    const [layer, head] = [layerOf(part, own, Math.floor(tile / part.heads)), tile % part.heads];
    if (layer < 0) return null;
    return {
      tile: { kind: own.kind, layer, head },
      row: { side: asks, index: (row - part.down[asks]) * this.held.sides[asks].every },
      column: { side: looked, index: (column - part.across[looked]) * this.held.sides[looked].every },
    };
  }

  pieceAt(event) {
    const { side, index } = event.composedPath()[0] ?? {};
    return side ? { piece: { side, index } } : null;
  }

  hover(pointed) {
    this.pointed = pointed;
    this.point();
  }

  pin(found) {
    const same = JSON.stringify(found) === JSON.stringify(this.pinned);
    this.pinned = same ? null : found;
    this.point();
  }

  /** The focus moves at once here, and for the server after `rest` ms. */
  choose(tile, rest) {
    if (!tile) return;
    this.look = { ...this.look, focus: tile };
    if (this.look.show === "one kind" && !this.drawn.some((s) => s.part.kind === tile.kind))
      this.draw();
    else this.point();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.rest = 0;
      this.report(tile);
    }, rest);
  }

  key(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const move = event.key === "Home" ? [0, 0] : step[event.key];
    if (event.key === "Escape") this.pinned = null;
    else if (!move) return;
    else if (event.shiftKey || event.key === "Home") this.walkCells(move);
    else this.walkHeads(move);
    event.preventDefault();
    this.point();
  }

  walkHeads([down, right]) {
    const { focus } = this.look;
    const sections = this.drawn;
    let at = sections.findIndex(({ part }) =>
      part.kind === focus.kind || part.blocks?.[focus.kind]);
    if (at < 0) return;
    let section = sections[at];
    const { heads } = section.part;
    const place = this.placeOf(section, rowOf(section.part, focus) * heads + focus.head);
    let [row, column] = [Math.floor(place / heads) + down, (place % heads) + right];
    // Over the edge lies the next kind of attention.
    const over = column < 0 || row < 0 ? -1
      : column >= heads || row >= section.part.layers ? 1 : 0;
    if (over) {
      if (!sections[at + over]) return;
      section = sections[at + over];
      const last = section.part.layers - 1;
      if (right) [row, column] = [Math.min(row, last), over < 0 ? section.part.heads - 1 : 0];
      else [row, column] = [over < 0 ? last : 0, Math.min(column, section.part.heads - 1)];
    }
    const next = row * section.part.heads + column;
    const tile = section.order ? section.order.tiles[next] : next;
    const kind = section.part.blocks ? focus.kind : section.part.kind;
    const row_ = Math.floor(tile / section.part.heads);
    const layer = layerOf(section.part, this.part(kind), row_);
    if (layer >= 0) this.choose({ kind, layer, head: tile % section.part.heads }, REST);
  }

  walkCells([down, right]) {
    const { focus } = this.look;
    const part = this.part(focus.kind);
    const { row, column } = this.pinned?.row ? this.pinned : { row: null, column: null };
    const { every: rowEvery } = this.held.sides[part.asks];
    const { every: columnEvery } = this.held.sides[part.looked_at];
    const moved = (at, by, every, count) =>
      Math.min(count - 1, Math.max(0, (at && (down || right) ? at.index / every : 0) + (at ? by : 0)));
    this.pinned = this.cell(part, focus.layer * part.heads + focus.head,
      moved(row, down, rowEvery, part.rows), moved(column, right, columnEvery, part.columns));
  }

  // Saying and marking what is pointed at

  point() {
    if (!this.drawn) return;
    const pointed = this.pointed ?? this.pinned;
    // Keys read cells of the head in focus, wherever it has moved to.
    if (pointed && pointed === this.pinned && pointed.tile) pointed.tile = this.look.focus;
    this.mark(pointed);
    this.shade(pointed);
    const sentence = this.sentence(pointed);
    this.said.replaceChildren(...sentence);
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => (this.live.textContent = this.said.textContent), REST);
  }

  mark(pointed) {
    const { focus, colour } = this.look;
    const thin = Math.max(1.5, this.font / 10);
    for (const section of this.drawn) {
      const { part, over, width, height } = section;
      const { heads } = part;
      over.clearRect(0, 0, over.canvas.width, over.canvas.height);
      const bands = [];
      const { piece } = pointed ?? {};
      const [row, column] = piece ? [piece, piece] : [pointed?.row, pointed?.column];
      for (const [isRow, found, offsets, length, size] of [
        [true, row, part.down, height, part.rows],
        [false, column, part.across, width, part.columns],
      ]) {
        if (!found || !(found.side in offsets)) continue;
        const { every } = this.held.sides[found.side];
        const index = offsets[found.side] + Math.floor(found.index / every);
        bands.push([isRow, (index * length) / size - thin / 2, length / size + thin]);
      }
      over.strokeStyle = colour;
      over.lineWidth = thin;
      for (let tile = 0; bands.length && tile < part.layers * heads; tile++) {
        const { x, y } = this.corner(section, this.placeOf(section, tile));
        for (const [isRow, start, thick] of bands) {
          if (isRow) over.strokeRect(x, y + start, width, thick);
          else over.strokeRect(x + start, y, thick, height);
        }
      }
      const focused = part.kind === focus.kind || part.blocks?.[focus.kind];
      if (!focused || focus.head >= heads) continue;
      const chosen = rowOf(part, focus) * heads + focus.head;
      const { x, y } = this.corner(section, this.placeOf(section, chosen));
      over.lineWidth = Math.max(4, this.font / 4);
      const out = over.lineWidth / 2;
      over.strokeRect(x - out + 1, y - out + 1, width + 2 * out - 2, height + 2 * out - 2);
    }
  }

  /** Weights between a piece and all pieces of the other side, in the head in focus or the mean. */
  between(piece, asks) {
    const { focus, average } = this.look;
    const part = this.part(focus.kind);
    const own = asks ? part.asks : part.looked_at;
    const other = asks ? part.looked_at : part.asks;
    if (!part || piece.side !== own) return null;
    const { rows, columns, heads, layers, cells } = part;
    const at = Math.floor(piece.index / this.held.sides[own].every);
    const found = new Float32Array(asks ? columns : rows);
    const range = (count, at, all) => (all ? [...Array(count).keys()] : [at]);
    const overHeads = average === "heads" || average === "both";
    const overLayers = average === "layers" || average === "both";
    let count = 0;
    for (const layer of range(layers, focus.layer, overLayers))
      for (const head of range(heads, focus.head, overHeads)) {
        const start = (layer * heads + head) * rows * columns;
        count++;
        for (let i = 0; i < found.length; i++)
          found[i] += weightOf(cells[start + (asks ? at * columns + i : i * columns + at)]);
      }
    return { side: other, weights: found.map((weight) => weight / count) };
  }

  shade(pointed) {
    for (const span of this.shaded ?? []) {
      span.classList.remove("here");
      span.style.removeProperty("--looks");
      span.style.removeProperty("--looked");
    }
    this.shaded = [];
    const set = (piece, name, value) => {
      const span = this.spans[piece.side]?.[piece.index];
      if (!span) return;
      if (name === "here") span.classList.add("here");
      else span.style.setProperty(name, value);
      this.shaded.push(span);
    };
    const piece = pointed?.piece ?? pointed?.row;
    if (!piece) return;
    set(piece, "here");
    for (const [asks, name] of [[true, "--looks"], [false, "--looked"]]) {
      const found = this.between(piece, asks);
      found?.weights.forEach((weight, i) => {
        const { every } = this.held.sides[found.side];
        for (let k = 0; k < every && weight > 0.004; k++)
          set({ side: found.side, index: i * every + k }, name, `${Math.round(100 * weight)}%`);
      });
    }
  }

  label({ side, index }) {
    const { labels, every } = this.held.sides[side];
    if (every === 1) return element("em", {}, labels[index]);
    const last = labels[Math.min(labels.length, index + every) - 1];
    return element("em", {}, `${labels[index]} … ${last}`);
  }

  sentence(pointed) {
    const { focus, average } = this.look;
    const name = ({ kind, layer, head }) =>
      `${this.part(kind).name}, layer ${this.part(kind).numbers[layer]} head ${head + 1}`;
    if (!pointed) {
      const where = element("b", {}, name(focus));
      return [where, " is in focus. Point at a piece or a cell; click a tile to choose its head."];
    }
    if (pointed.tile) {
      const { tile, row, column } = pointed;
      const part = this.part(tile.kind);
      const [i, j] = [row, column].map(({ side, index }) => index / this.held.sides[side].every);
      const byte = part.cells[((tile.layer * part.heads + tile.head) * part.rows + i) * part.columns + j];
      const start = [element("b", {}, name(tile)), ": ", this.label(row)];
      if (!byte) return [...start, " may not look at ", this.label(column), "."];
      const atMost = Math.max(this.held.sides[row.side].every, this.held.sides[column.side].every) > 1;
      const share = (atMost ? "up to " : "") + percent(weightOf(byte));
      return [...start, ` looks ${share} at `, this.label(column), "."];
    }
    const number = this.part(focus.kind).numbers[focus.layer];
    const over = { heads: `mean over the heads of layer ${number}`,
      layers: `mean of head ${focus.head + 1} over the layers`, both: "mean over all heads" };
    const head = average ? `${this.part(focus.kind).name}, ${over[average]}` : name(focus);
    const parts = [element("b", {}, head), ": ", this.label(pointed.piece)];
    let said = 0;
    for (const [asks, verb] of [[true, " looks most at "], [false, " is looked at most by "]]) {
      const found = this.between(pointed.piece, asks);
      if (!found) continue;
      const best = [...found.weights.keys()].filter((i) => found.weights[i] > 0.004)
        .sort((a, b) => found.weights[b] - found.weights[a]).slice(0, 3);
      parts.push(said++ ? ";" : "", verb);
      if (!best.length) parts.push("nothing");
      best.forEach((i, rank) => parts.push(rank ? ", " : "",
        this.label({ side: found.side, index: i * this.held.sides[found.side].every }),
        ` (${percent(found.weights[i])})`));
    }
    return said ? [...parts, "."] : [...parts, " plays no part in this kind of attention."];
  }
}

/** The mount that brings the weights. The other one, in head_grid.py, only leaves its look. */
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const shared = (window.headlight ??= {});
  shared.grid ??= new Picture();
  shared.grid.mount(parentElement);
  shared.grid.report = (tile) => setTriggerValue("focus", tile);
  shared.grid.setWeights(data instanceof ArrayBuffer ? new Uint8Array(data) : data);
  if (shared.look) shared.grid.setLook(shared.look);
}
