// All heads as live maps in groups by habit. Chips leave some of them out, and the others glide into
// the room; a map is a link that opens its head on Attention.

import MASKED from "../../masked.json" with { type: "json" };
import { unpack } from "../head_grid/cells.js";
import { meeting } from "../head_grid/meeting.js";
import { pageWith } from "../shared/address.js";
import { pixelColours, stopsOf } from "../shared/colours.js";
import { asOneStop, element, onRecolour, outwards, painted, roomBelow } from "../shared/dom.js";
import { hatching, pixelSheet, weightScale } from "../shared/heatmap.js";
import { leadsTo } from "../shared/lead.js";
import { places } from "../shared/places.js";
import { weightOf } from "../shared/weights.js";

const ALL = "";
const GAP = 8; // px between maps
const GROUP = 24; // px between groups
const FOLD = 48; // px of the window that what is folded below takes; in Present there is none
const MARGIN = 22; // px at the foot of the window
const SMALLEST = 80; // px across a map, as wide as its name; the page scrolls before it gets smaller
const LOWEST = 24; // px down a map
const LEAST = 260; // px of all maps, in a lower window
const ONE_LINE = 150; // px of a map under which name and caption stand beside each other
const TALLEST = 1.05; // height of a map ÷ its width, at most
const WIDEST = 1.8; // its width ÷ its height, at most
const LETTER = 17; // px, at most, of what stands below a map
const PHONE = 640; // px; above NARROW in theme.py
const PER_ROW = 4; // maps on a phone

/** The largest maps with which groups of `counts` stand side by side in a room: {columns of each
 * group, width, height}, or null where none is large enough. `unit` is what stands below a map, of a
 * width, `top` what stands above a group. */
export function sideBySide(counts, width, height, top, unit) {
  let best = null;
  for (let rows = 1; rows <= Math.max(...counts); rows++) {
    const columns = counts.map((count) => Math.ceil(count / rows));
    const total = columns.reduce((sum, count) => sum + count, 0);
    const gaps = GROUP * (counts.length - 1) + GAP * (total - counts.length);
    let across = Math.floor((width - gaps) / total);
    const down = Math.min(Math.floor((height - top) / rows - unit(across)), Math.floor(TALLEST * across));
    across = Math.min(across, Math.floor(WIDEST * down));
    if (across < SMALLEST || down < LOWEST) continue;
    if (!best || across * down > best.width * best.height) best = { columns, width: across, height: down };
  }
  return best;
}

class Gallery {
  habit = ALL;
  kind = ALL;
  tiles = [];

  constructor() {
    this.finding = element("p", { class: "finding" });
    this.ghost = element("p", { class: "finding ghost", "aria-hidden": "true" });
    this.says = element("div", { class: "says" }, this.ghost, this.finding);
    this.chips = element("div", { class: "chips", role: "toolbar", "aria-label": "Show" });
    this.wall = element("div", { class: "wall", role: "group", "aria-label": "Heads. Arrow keys move, " +
      "Enter opens a head in Matrix." });
    this.foot = element("div", { class: "foot" });
    this.frame = element("div", { class: "frame" }, this.says, this.chips, this.wall, this.foot);
    this.wall.onkeydown = (event) => this.key(event);
    const about = ({ target }) => this.say(this.tiles.find(({ node }) => node.contains(target)));
    this.wall.addEventListener("pointerover", about);
    this.wall.addEventListener("focusin", about);
    for (const leaves of ["pointerleave", "focusout"]) this.wall.addEventListener(leaves, () => this.say());
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.frame);
    window.addEventListener("resize", () => this.fit());
    document.fonts.ready.then(() => this.fit(true));
    onRecolour(this.frame, () => this.draw());
  }

  mount(parent) {
    if (this.frame.parentNode !== parent) parent.append(this.frame);
    const page = outwards(parent).find(({ classList }) => classList?.contains("stMainBlockContainer"));
    if (page) this.observer.observe(page); // what stands above may come later
  }

  setWeights(bytes) {
    const data = unpack(bytes);
    if (this.weights?.id === data.id) return;
    this.weights = data;
    this.draw();
  }

  setHeads(heads) {
    const text = JSON.stringify(heads);
    if (this.text === text) return;
    [this.text, this.heads] = [text, heads];
    this.draw();
  }

  // What is drawn

  draw() {
    if (!this.weights || !this.heads) return;
    const { heads, habits, kinds, colour, legend, note, says } = this.heads;
    if (heads.some(({ kind, layer, head }) => !this.part(kind, layer, head))) return; // of another model
    if (!habits.some(([habit]) => habit === this.habit)) this.habit = ALL;
    if (!kinds.some(([kind]) => kind === this.kind)) this.kind = ALL;
    this.frame.style.setProperty("--hl-focus", colour);
    this.frame.style.setProperty("--off", MASKED.off);
    this.frame.classList.toggle("bars", heads.some(({ bar }) => bar !== null));
    this.ink = getComputedStyle(this.frame).color;
    const stops = stopsOf(this.heads.palette, this.ink);
    this.colours = pixelColours(stops);
    const focused = this.tiles.find(({ node }) => node === this.frame.getRootNode().activeElement)?.head.name;
    const before = new Map(this.tiles.map((tile) => [tile.head.name, tile]));
    this.sections = habits.map(([habit, title, about]) => {
      const name = element("h2", {}, title, element("small", {}, about));
      const tiles = heads.filter((head) => head.habit === habit)
        .map((head) => this.tile(head, before.get(head.name)));
      const node = element("section", { "aria-label": title }, name, ...tiles.map((tile) => tile.node));
      return { habit, name, tiles, node };
    });
    this.tiles = this.sections.flatMap(({ tiles }) => tiles);
    this.wall.replaceChildren(...this.sections.map(({ node }) => node));
    this.hatch();
    this.drawChips();
    const bars = legend.map((text, i) =>
      element("span", { class: "key" }, element("i", { class: i ? "missed" : "" }), text));
    this.foot.replaceChildren(...bars, weightScale(stops), ...(note ? [element("span", {}, note)] : []));
    this.says.hidden = !says;
    const longest = heads.reduce((long, { finding }) =>
      (textOf(finding).length > long.length ? textOf(finding) : long), "");
    this.ghost.textContent = longest;
    this.say();
    this.fit(true);
    if (focused) this.tiles.find(({ head }) => head.name === focused)?.node.focus({ preventScroll: true });
    painted("gallery", this.weights.id);
  }

  part(kind, layer, head) {
    const part = this.weights.parts.find((one) => one.kind === kind);
    return part && layer < part.layers && head < part.heads ? part : null;
  }

  /** One head: its map, its name, what it does, and what is lost without it. */
  tile(head, before) {
    const { kind, layer, name, caption, bar, lost, missed, off } = head;
    const node = before?.node ?? element("a", { class: "tile", tabindex: "-1" });
    const part = this.part(kind, layer, head.head);
    const start = (layer * part.heads + head.head) * part.rows * part.columns;
    const map = pixelSheet(part.rows, part.columns, (pixels) => {
      for (let i = 0; i < pixels.length; i++) {
        const byte = part.cells[start + i];
        pixels[i] = byte ? this.colours[Math.round(255 * weightOf(byte))] : 0;
      }
    });
    const isSelected = [kind, layer, head.head].join() === this.heads.selected.join();
    node.classList.toggle("selected", isSelected);
    node.classList.toggle("off", off);
    node.toggleAttribute("aria-current", isSelected);
    if (isSelected) node.setAttribute("aria-current", "true");
    node.setAttribute("aria-label", [name, caption, off && "off", lost].filter(Boolean).join(", "));
    const length = element("u", { class: missed ? "missed" : "" });
    length.style.width = `${100 * (bar ?? 0)}%`;
    node.replaceChildren(element("span", { class: "map" }, map),
      element("span", { class: "text" }, element("b", {}, name), element("span", {}, caption)),
      element("span", { class: "bar" }, length));
    leadsTo(node, () => this.address(head));
    return { node, head };
  }

  /** Of Attention with this head selected. */
  address({ kind, number, head }) {
    return pageWith("", { kind, layer: number, head: head + 1 }, this.heads.here);
  }

  hatch() {
    const { spacing } = MASKED;
    const canvas = element("canvas", { width: spacing, height: spacing });
    const context = canvas.getContext("2d");
    context.fillStyle = hatching(this.ink);
    context.fillRect(0, 0, spacing, spacing);
    this.wall.style.setProperty("--hatching", `url(${canvas.toDataURL()})`);
  }

  drawChips() {
    const { habits, kinds } = this.heads;
    const count = (habit, kind) => this.tiles.filter(({ head }) =>
      (!habit || head.habit === habit) && (!kind || head.kind === kind)).length;
    const chip = (field, value, title, number) => {
      const pressed = this[field] === value;
      const button = element("button", { type: "button", "aria-pressed": pressed }, `${title} `,
        element("span", {}, String(number)));
      button.disabled = !number;
      button.onclick = () => this.filter(field, pressed ? ALL : value);
      button.dataset.value = `${field} ${value}`;
      return button;
    };
    const of = [
      ...[[ALL, "All"], ...habits].map(([habit, title]) => chip("habit", habit, title, count(habit, this.kind))),
      ...(kinds.length > 1 ? kinds : []).map(([kind, title]) => chip("kind", kind, title, count(this.habit, kind))),
    ];
    const at = this.frame.getRootNode().activeElement?.dataset?.value;
    this.chips.replaceChildren(...of);
    const open = of.filter((button) => !button.disabled);
    const focused = open.find(({ dataset }) => dataset.value === at);
    asOneStop(this.chips, open, open.length, focused);
    focused?.focus({ preventScroll: true });
  }

  filter(field, value) {
    this[field] = value;
    this.drawChips();
    this.place();
  }

  /** What a head does, or the selected one. */
  say(tile = null) {
    const said = tile ?? this.tiles.find(({ head: { kind, layer, head } }) =>
      [kind, layer, head].join() === this.heads.selected.join()) ?? this.tiles[0];
    if (!said) return;
    this.finding.replaceChildren(...said.head.finding.map(([text, tag]) =>
      (tag ? element(tag, {}, text) : text)));
  }

  // Where it stands

  fit(anyway = false) {
    if (!this.frame.isConnected || !this.tiles.length) return;
    const size = [this.wall.clientWidth, this.room()];
    if (!anyway && size.join() === this.size?.join()) return;
    this.size = size;
    this.place();
  }

  room() {
    const isPresent = getComputedStyle(this.frame).getPropertyValue("--hl-present").trim() === "1";
    const below = this.foot.offsetHeight + (isPresent ? MARGIN : FOLD);
    return Math.max(Math.floor(roomBelow(this.wall) - below), LEAST);
  }

  place() {
    const letter = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const width = this.wall.clientWidth;
    const shown = this.sections.map((section) => ({
      ...section,
      tiles: section.tiles.filter(({ head }) => (!this.habit || head.habit === this.habit) &&
        (!this.kind || head.kind === this.kind)),
    })).filter(({ tiles }) => tiles.length);
    const seen = new Set(shown.flatMap(({ tiles }) => tiles));
    for (const { habit, name } of this.sections)
      name.hidden = !shown.some((section) => section.habit === habit);
    const top = Math.round(1.75 * letter);
    const unit = (across) => Math.round((across < ONE_LINE ? 2.1 : 1.15) * Math.min(letter, LETTER)) + 12 + GAP;
    const counts = shown.map(({ tiles }) => tiles.length);
    const room = this.room();
    let grid = width < PHONE ? null : sideBySide(counts, width, room, top, unit);
    const isStacked = !grid;
    if (isStacked) {
      const across = width < PHONE ? Math.floor((width - (PER_ROW - 1) * GAP) / PER_ROW) : SMALLEST;
      const columns = Math.floor((width + GAP) / (across + GAP));
      grid = { columns: counts.map(() => columns), width: across, height: Math.floor(0.8 * across) };
    }
    const down = grid.height + unit(grid.width);
    this.wall.classList.toggle("beside", grid.width >= ONE_LINE);
    this.wall.style.setProperty("--across", `${grid.width}px`);
    this.wall.style.setProperty("--down", `${grid.height}px`);
    let [left, above, lowest] = [0, 0, 0];
    // Groups share what the maps leave of the width.
    const total = grid.columns.reduce((sum, count) => sum + count, 0);
    const used = total * grid.width + GAP * (total - shown.length);
    const between = shown.length > 1 ? Math.min((width - used) / (shown.length - 1), 3 * GROUP) : 0;
    shown.forEach(({ name, tiles }, at) => {
      const columns = grid.columns[at];
      const own = columns * (grid.width + GAP) - GAP;
      name.style.transform = `translate(${left}px, ${above}px)`;
      const most = isStacked ? width : own + between - GAP;
      name.style.width = `${shown.length === 1 ? width : Math.min(most, width - left)}px`;
      name.classList.remove("bare");
      name.classList.toggle("bare", name.scrollWidth > name.clientWidth);
      tiles.forEach(({ node }, i) => {
        const [x, y] = [left + (i % columns) * (grid.width + GAP), above + top + Math.floor(i / columns) * down];
        node.style.transform = `translate(${x}px, ${y}px)`;
      });
      const end = above + top + Math.ceil(tiles.length / columns) * down;
      lowest = Math.max(lowest, end);
      if (isStacked) above = end;
      else left += own + between;
    });
    for (const tile of this.tiles) tile.node.classList.toggle("gone", !seen.has(tile));
    this.wall.style.height = `${isStacked ? lowest : Math.max(lowest, room)}px`;
    this.seen = [...seen];
    this.rove();
  }

  // The keyboard

  /** One stop of the Tab key: the tile that was entered last, or the selected one. */
  rove(to = this.seen.find(({ node }) => node.tabIndex === 0) ??
    this.seen.find(({ node }) => node.classList.contains("selected")) ?? this.seen[0]) {
    for (const { node } of this.tiles) node.tabIndex = node === to?.node ? 0 : -1;
  }

  key(event) {
    const here = this.seen.findIndex(({ node }) => node === event.target);
    if (here < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by && !["Home", "End"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    const to = event.key === "Home" ? this.seen[0] : event.key === "End" ? this.seen.at(-1)
      : event.key.match(/Left|Right/) ? this.seen[here + by] : this.below(this.seen[here], by);
    if (!to) return;
    this.rove(to);
    to.node.focus();
  }

  /** The nearest tile below, or with −1 above. */
  below(from, by) {
    const at = ({ node }) => node.style.transform.match(/-?[\d.]+/g).map(Number);
    const [x, y] = at(from);
    const far = (tile) => {
      const [across, down] = at(tile);
      return (down - y) * by > 1 ? (down - y) * by + 2 * Math.abs(across - x) : Infinity;
    };
    const nearest = this.seen.reduce((best, tile) => (far(tile) < far(best) ? tile : best), from);
    return nearest === from ? null : nearest;
  }
}

const textOf = (parts) => parts.map(([text]) => text).join("");
const enter = places();

export default function ({ data, parentElement }) {
  if (!data) return;
  return enter(parentElement, () => {
    meeting.gallery ??= new Gallery();
    meeting.gallery.mount(parentElement);
    meeting.gallery.setWeights(data instanceof ArrayBuffer ? new Uint8Array(data) : data);
    if (meeting.heads) meeting.gallery.setHeads(meeting.heads);
    meeting.gallery.fit(true);
  });
}
