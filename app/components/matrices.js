// Matrices as pictures: cells in colour, their numbers where they fit, and in words what is under
// the pointer. The row that is followed has a frame.

const LEAST_NUMBER = 2.4; // in letters: the narrowest cell that holds a number
const TALL = 26; // rows up to which each gets the height of a letter

/** The bytes of pack() in matrices.py. */
function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let start = bytes.byteOffset + 4 + length;
  for (const one of header.matrices) {
    const [rows, columns] = one.values;
    const end = start + 4 * rows * columns;
    one.cells = new Float32Array(bytes.buffer.slice(start, end)); // a copy, because of alignment
    start = end;
  }
  return header;
}

function colours(palette) {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const stops = palette.map((colour) => {
    probe.fillStyle = colour;
    probe.fillRect(0, 0, 1, 1);
    return probe.getImageData(0, 0, 1, 1).data;
  });
  return (share) => {
    const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const [low, high] = [stops[Math.floor(at)], stops[Math.ceil(at)]];
    return [0, 1, 2].map((i) => low[i] + (high[i] - low[i]) * (at % 1));
  };
}

/** As many digits as four letters hold. */
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e4) return value.toExponential(0);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

const exact = (value) =>
  Math.abs(value) >= 1e-4 || value === 0 ? String(+value.toFixed(6)) : value.toExponential(2);

class Picture {
  constructor(header, root) {
    Object.assign(this, header);
    this.frame = document.createElement("div");
    this.frame.className = "frame";
    this.said = document.createElement("p");
    this.said.className = "said";
    this.all = document.createElement("div");
    this.all.className = "all";
    this.frame.append(this.said, this.all);
    root.querySelector(".frame")?.remove(); // the style beside it stays
    root.append(this.frame);
    for (const one of this.matrices) this.add(one);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.frame);
  }

  add(one) {
    const [rows, columns] = one.values;
    const box = document.createElement("div");
    box.className = "one";
    const title = document.createElement("h4");
    const shape = document.createElement("small");
    shape.textContent = ` ${rows} × ${columns}`;
    title.append(one.title, shape);
    one.canvas = document.createElement("canvas");
    one.canvas.setAttribute("role", "img");
    one.canvas.setAttribute("aria-label", `${one.title}: ${rows} rows (${one.asks}), ` +
      `${columns} columns (${one.looked_at})`);
    one.canvas.onpointermove = (event) => this.point(one, event);
    one.canvas.onpointerleave = () => (this.said.textContent = "");
    box.append(title, one.canvas);
    this.all.append(box);
    let largest = 0;
    for (const value of one.cells)
      if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
    one.largest = largest || 1;
    one.colour = colours(one.palette);
  }

  draw() {
    const style = getComputedStyle(this.frame);
    const ink = style.color;
    if (this.frame.clientWidth === this.width && ink === this.ink) return;
    [this.width, this.ink] = [this.frame.clientWidth, ink];
    this.letter = parseFloat(style.fontSize);
    this.font = (size) => `${size}px ${style.fontFamily}`;
    for (const one of this.matrices) this.paint(one);
    window.headlight.matricesPainted = performance.now(); // what the bench waits for
  }

  paint(one) {
    const { letter, ink } = this;
    const [rows, columns] = one.values;
    const ratio = window.devicePixelRatio || 1;
    const context = one.canvas.getContext("2d");
    context.font = this.font(letter * 0.9);
    const widest = (labels) =>
      Math.min(Math.max(0, ...labels.map((text) => context.measureText(text).width)), letter * 9);
    one.left = one.rows.length ? widest(one.rows) + letter * 0.6 : letter * 2.6;
    one.top = one.columns.length ? widest(one.columns) + letter * 0.6 : letter * 1.4;
    const room = this.width - one.left - 4;
    one.across_ = Math.min(room / columns, letter * 3.2);
    one.down = rows <= TALL ? letter * 1.5 : Math.max(2, (letter * 1.5 * TALL) / rows);
    const [width, height] = [one.left + one.across_ * columns + 4, one.top + one.down * rows + 4];
    one.canvas.width = Math.round(width * ratio);
    one.canvas.height = Math.round(height * ratio);
    one.canvas.style.width = `${width}px`;
    one.canvas.style.height = `${height}px`;
    context.scale(ratio, ratio);
    this.cells(one, context);
    this.labels(one, context);
    this.marks(one, context);
  }

  cells(one, context) {
    const [rows, columns] = one.values;
    const numbers = one.across_ >= this.letter * LEAST_NUMBER && one.down >= this.letter * 1.2;
    const gap = one.across_ > 8 && one.down > 8 ? 1 : 0;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = this.font(this.letter * 0.85);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        const value = one.cells[row * columns + column];
        if (!Number.isFinite(value)) continue;
        const share = one.weights ? value : 0.5 + value / one.largest / 2;
        const [red, green, blue] = one.colour(share);
        context.fillStyle = `rgb(${red},${green},${blue})`;
        const [x, y] = [one.left + column * one.across_, one.top + row * one.down];
        // Cells narrower than a pixel must not let the page shine through between them.
        context.fillRect(x, y, Math.max(one.across_ - gap, 1), Math.max(one.down - gap, 1));
        if (!numbers) continue;
        context.fillStyle = 0.3 * red + 0.59 * green + 0.11 * blue > 128 ? "#000" : "#fff";
        context.fillText(short(value), x + one.across_ / 2, y + one.down / 2);
      }
  }

  labels(one, context) {
    const [rows, columns] = one.values;
    const { letter } = this;
    context.fillStyle = this.ink;
    context.font = this.font(letter * 0.9);
    context.textBaseline = "middle";
    context.textAlign = "right";
    const every = Math.ceil((letter * 1.1) / one.down);
    for (let row = 0; row < rows; row += every) {
      const text = one.rows.length ? one.rows[row] : String(row + 1);
      const y = one.top + (row + 0.5) * one.down;
      context.fillText(text, one.left - letter * 0.3, y, one.left - letter * 0.3);
    }
    const named = one.columns.length > 0;
    const step = named
      ? Math.ceil((letter * 1.1) / one.across_)
      : Math.max(1, Math.ceil((letter * 3) / one.across_));
    for (let column = 0; column < columns; column += step) {
      const x = one.left + (column + 0.5) * one.across_;
      context.save();
      context.translate(x, one.top - letter * 0.3);
      if (named) {
        context.rotate(-Math.PI / 2);
        context.textAlign = "left";
        context.fillText(one.columns[column], 0, 0, one.top - letter * 0.3);
      } else {
        context.textAlign = "center";
        context.fillText(String(column + 1), 0, -letter * 0.3);
      }
      context.restore();
    }
  }

  marks(one, context) {
    const [rows, columns] = one.values;
    const [width, height] = [one.across_ * columns, one.down * rows];
    context.lineWidth = 1.5;
    context.strokeStyle = this.ink;
    const size = (one.across ? width : height) / one.bands;
    for (let band = 0; one.bands > 1 && band < one.bands; band++) {
      const at = band * size;
      context.fillStyle = this.lines[band % this.lines.length];
      context.beginPath();
      if (one.across) {
        context.fillRect(one.left + at, one.top - 6, size, 5);
        context.moveTo(one.left + at, one.top);
        context.lineTo(one.left + at, one.top + height);
      } else {
        context.fillRect(one.left - 6, one.top + at, 5, size);
        context.moveTo(one.left, one.top + at);
        context.lineTo(one.left + width, one.top + at);
      }
      context.stroke();
    }
    context.strokeStyle = this.focus;
    context.lineWidth = 3;
    if (one.bands > 1) {
      const at = one.band * size;
      if (one.across) context.strokeRect(one.left + at, one.top, size, height);
      else context.strokeRect(one.left, one.top + at, width, size);
    }
    if (one.follow >= 0)
      context.strokeRect(one.left, one.top + one.follow * one.down, width, one.down);
  }

  point(one, event) {
    const [rows, columns] = one.values;
    const box = one.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - one.top) / one.down);
    const column = Math.floor((event.clientX - box.left - one.left) / one.across_);
    if (row < 0 || row >= rows || column < 0 || column >= columns) {
      this.said.textContent = "";
      return;
    }
    const name = (labels, index, side) => (labels.length ? `“${labels[index]}”` : `${side} ${index + 1}`);
    const value = one.cells[row * columns + column];
    this.said.textContent = `${one.title}: ${name(one.rows, row, one.asks)}, ` +
      `${name(one.columns, column, one.looked_at)}: ` +
      (Number.isFinite(value) ? exact(value) : "masked");
  }
}

const shown = new WeakMap(); // where → {data, picture}

export default function ({ data, parentElement }) {
  const before = shown.get(parentElement);
  if (before?.data === data) {
    before.picture.draw();
    return;
  }
  before?.picture.observer.disconnect();
  window.headlight ??= {};
  const picture = new Picture(unpack(data), parentElement);
  shown.set(parentElement, { data, picture });
  window.headlight.matrices = picture.matrices; // what tests read
}
