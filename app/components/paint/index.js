// A row is painted by sliders, a mask by squares that are pressed or not.

import { element } from "../shared/dom.js";
import { places } from "../shared/places.js";
import { meeting } from "../stage/meeting.js";

const whole = (share) => `${Math.round(100 * share)}%`;

/** Shares that add up to 1; of nothing painted, nothing. */
function shares(numbers) {
  const sum = numbers.reduce((a, b) => a + b, 0);
  return numbers.map((number) => (sum ? number / sum : 0));
}

function bar(share, name) {
  const length = element("span", { class: `length ${name}`, style: `--share: ${100 * share}%` });
  return element("span", { class: "track" }, length);
}

/** What is painted is seen on the stage too, and can be painted there. */
function show(painting) {
  meeting.guess = painting; // for a stage that comes later
  meeting.stage?.paint(painting);
}

const enter = places(() => show(null));

/** Sliders, each with the share that it comes to. `tell` hears what is painted. */
function row({ labels }, send, tell) {
  const sliders = labels.map((label) => element("input", { type: "range", min: "0", max: "100",
    value: "0", "aria-label": label }));
  const numbers = labels.map(() => element("output", {}, "0%"));
  const button = element("button", { type: "button", disabled: "" }, "Answer");
  const painted = () => sliders.map(({ value }) => Number(value));
  const weigh = (column, weight) => {
    sliders[column].value = Math.round(100 * weight);
    changed();
  };
  const changed = () => {
    const each = shares(painted());
    numbers.forEach((number, i) => (number.textContent = whole(each[i])));
    sliders.forEach((slider, i) => slider.setAttribute("aria-valuetext", whole(each[i])));
    button.disabled = !painted().some(Boolean);
    tell({ shares: each, weights: painted().map((number) => number / 100), weigh });
  };
  changed();
  sliders.forEach((slider) => (slider.oninput = changed));
  button.onclick = () => send(painted());
  const lines = labels.map((label, i) =>
    element("div", { class: "line" }, element("span", { dir: "auto" }, label), sliders[i], numbers[i]));
  const hint = element("p", { class: "key" }, "Drag up in the covered row, or use the sliders.");
  return [hint, ...lines, button];
}

/** The painted row above the model's, for every key. */
function rows({ labels, painted, truth }) {
  const mine = painted && shares(painted);
  const lines = labels.map((label, i) => element("div", { class: "line" },
    element("span", { dir: "auto" }, label),
    element("span", { class: "pair" }, ...(mine ? [bar(mine[i], "mine")] : []), bar(truth[i], "model")),
    element("span", { class: "numbers" },
      (mine ? `${whole(mine[i])} · ` : "") + whole(truth[i]))));
  const key = element("p", { class: "key" }, ...(mine ? [element("i", { class: "mine" }), " you  "] : []),
    element("i", { class: "model" }), " the model");
  return [key, ...lines];
}

function table({ labels }, cell) {
  const head = element("tr", {}, element("td"), ...labels.map((label) => element("th", {}, label)));
  const body = labels.map((label, i) => element("tr", {}, element("th", {}, label),
    ...labels.map((_, j) => element("td", {}, cell(i, j)))));
  return element("table", {}, head, ...body);
}

/** Squares to press; True is allowed. */
function mask(data, send) {
  const allowed = data.labels.map(() => data.labels.map(() => false));
  const square = (i, j) => {
    const button = element("button", { type: "button", class: "square", "aria-pressed": "false",
      "aria-label": `row ${i + 1}, column ${j + 1}` });
    button.onclick = () => {
      allowed[i][j] = !allowed[i][j];
      button.setAttribute("aria-pressed", allowed[i][j]);
    };
    return button;
  };
  const button = element("button", { type: "button" }, "Answer");
  button.onclick = () => send(allowed);
  const hint = element("p", { class: "key" }, "Filled: the row may attend to the column.");
  return [hint, table(data, square), button];
}

/** The right mask; a square that was painted otherwise has a cross. */
function masks({ labels, painted, truth }) {
  const square = (i, j) => {
    const isWrong = painted && painted[i][j] !== truth[i][j];
    const text = `row ${i + 1}, column ${j + 1}: ${truth[i][j] ? "allowed" : "forbidden"}` +
      (isWrong ? ", painted wrongly" : "");
    return element("span", { class: "square", role: "img", "aria-label": text,
      ...(truth[i][j] ? { "data-on": "" } : {}) }, isWrong ? "×" : "");
  };
  const hint = element("p", { class: "key" },
    "Filled: the row may attend to the column. ×: painted wrongly.");
  return [hint, table({ labels }, square)];
}

export default function ({ data, parentElement, setTriggerValue }) {
  const text = JSON.stringify(data);
  if (parentElement.shownPaint !== text) { // else what is being painted stays
    parentElement.shownPaint = text;
    parentElement.painting = null;
    const send = (painted) => setTriggerValue("painted", painted);
    const tell = (painting) => show((parentElement.painting = painting));
    const draw = data.truth ? (data.mask ? masks : rows) : data.mask ? mask : row;
    const box = element("div", { class: "paint", style: `--mine: ${data.colour}` },
      ...draw(data, send, tell));
    parentElement.querySelector(".paint")?.remove();
    parentElement.append(box);
  }
  return enter(parentElement, () => show(parentElement.painting));
}
