// The texts, bare; under a word what it is followed by, and what can be done to it.

import { element } from "../shared/dom.js";
import { percent } from "../shared/numbers.js";
import { actButton, button } from "./button.js";
import { modelMenu, pencilButton } from "./sentence.js";
import { HEADS, MODEL } from "./state.js";
import { foundOf, wordAt } from "./write.js";

const FILLED = 0.05; // weights from which on a word is filled
const MOST = 200; // words of a text, around the selected one
const LONG = 32; // tokens, from which on a text has a column of its own
const LEAST = 0.68; // to which letters shrink before a text takes another line
const STEP = 0.04;
const GAP = 16; // px
const SPECIAL = /^(<.+>|\[.+\])$/; // tokens that are no words: they stand in the picture alone
const TAGS = { del: "lost", s: "lost", ins: "new", mark: "new", b: "" };

/** Draws the words of all texts into `box`: patched, so that a word with the focus keeps it. */
export function drawWords(stage) {
  const { state, camera, parts: { words } } = stage, part = state.part(), { sides } = state.run;
  const titles = Object.keys(sides), weights = state.weights(), tile = state.tileOf(part), row = state.row();
  const isCovered = state.isCovered(part, tile, row), own = row * sides[part.query].every + state.shift();
  const other = state.depth === MODEL && state.seen ? weightsOf(state) : null, spot = state.isPlaces ? state.spot() : null;
  titles.forEach((title, n) => {
    const box = boxOf(stage, title), { labels, spaced, every } = sides[title];
    if (box.isWritten) return;
    const isLast = n && n === titles.length - 1, { preview } = state;
    const said = isLast ? (preview?.now?.length ? preview.now : null) ?? (state.mix > 0.5 ? state.effect?.now : null) : null;
    if (said?.length) {
      box.buttons = null;
      const ghost = preview ? " ghost" : "";
      box.replaceChildren(...said.map(([text, tag]) => element("span", { class: `w ${TAGS[tag] ?? ""}${ghost}` }, text)));
      return;
    }
    const isSpecial = labels.map((label) => SPECIAL.test(label));
    const first = Math.max(0, Math.min(labels.length - MOST, (title === part.query ? own : 0) - MOST / 2));
    const shown = labels.slice(first, first + MOST);
    fill(stage, title, box, shown.length, first);
    const { token } = state, chosen = (token?.side === title ? token.index : title === part.query ? own : -1) - first;
    const stop = shown[chosen] && !isSpecial[chosen + first] ? chosen : isSpecial.indexOf(false, first) - first;
    shown.forEach((word, i) => {
      const at = first + i, node = box.buttons[i], column = title === part.key ? Math.floor(at / every) : -1;
      const isKey = column >= 0 && state.isWeighed && !isCovered && !state.isMasked(part, tile, row, column);
      const weight = other ? other(title, at) : isKey ? weights[column] : 0, isFilled = weight >= FILLED;
      const isGone = state.mix > 0.5 && Boolean(state.look.hidden?.[title]?.includes(at));
      const isOwn = spot ? spot.side === title && spot.index === at : title === part.query && at >= own && at < own + sides[title].every;
      node.textContent = word;
      node.hidden = isSpecial[at];
      node.tabIndex = i === stop ? 0 : -1;
      node.previousSibling.textContent = i && spaced[at] && !isSpecial[at] && !isSpecial[at - 1] ? " " : "";
      const isOther = state.mix > 0.5 && state.run.former && state.run.former.sides[title]?.labels[at] !== word;
      node.className = ["w", isOther && "new", isOwn && "sel", isGone && "gone", state.token?.side === title && [state.token.index, state.second].includes(at) && "pick"].filter(Boolean).join(" ");
      Object.assign(node.style, isFilled && !isGone ? { background: camera.colour(weight), color: camera.inkOn(weight) } : { background: "", color: "" });
      node.setAttribute("aria-label", word + (isFilled ? `, weight ${percent(weight)}` : "") + (isGone ? ", hidden" : ""));
      if (isOwn) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    });
  });
  drawWritten(stage, stage.boxes.get(titles.at(-1)), titles.length > 1);
  const best = state.run.answers?.rows.length === 1 ? state.answers()?.[0] : null;
  stage.parts.outcome.textContent = best ? `→ ${best[0]} ${percent(best[1])}` : "";
  words.classList.toggle("long", Object.values(sides).some(({ labels }) => labels.length > LONG));
  fit(words, state.look.projector);
  for (const word of words.querySelectorAll(".long .sel")) word.parentNode.scrollTop = word.offsetTop - word.offsetHeight;
}

/** The box of a text; all are new where a run has other texts. */
function boxOf(stage, title) {
  const { words, outcome } = stage.parts;
  const names = Object.keys(stage.state.run.sides), titles = JSON.stringify(names);
  if (stage.titles !== titles) {
    stage.titles = titles;
    stage.boxes = new Map(names.map((one) => [one, element("div", { class: "side" })]));
    const [first, ...others] = stage.boxes.values();
    stage.player ??= button("▶ write", () => stage.openWrite(stage.state.isWriting ? -1 : 0), { class: "player", "aria-label": "What the model writes", title: "What the model writes (space)" });
    stage.pencil ??= pencilButton(stage);
    stage.model ??= modelMenu(stage);
    const arrow = others.map(() => element("span", { class: "arrow", "aria-hidden": "true" }, "→"));
    words.replaceChildren(first, stage.pencil, stage.model, ...arrow, stage.player, ...others, stage.parts.written, outcome);
  }
  return stage.boxes.get(title);
}

/** So many words in a box, from the token `first` on. */
function fill(stage, title, box, count, first) {
  if (box.buttons?.length === count && box.first === first) return;
  box.first = first;
  box.buttons = Array.from({ length: count }, (_, i) => button("", ({ shiftKey }) => stage.touch(title, first + i, shiftKey), { class: "w" }));
  box.replaceChildren(...box.buttons.flatMap((word) => [document.createTextNode(""), word]));
}

function buttonOf(stage, { side, index }) {
  const box = stage.boxes?.get(side);
  return box?.buttons?.[index - box.first] ?? null;
}

/** What the model writes, word by word, in place of the text that stands there; the words to come have their
 * room already. */
function drawWritten(stage, box, replaces) {
  const { state, parts: { written } } = stage, found = state.write === 0 ? foundOf(state) : null, at = found?.steps?.length ? wordAt(state, found) : -1;
  stage.player.hidden = !state.look.write || Boolean(state.look.lesson && !state.isWriting);
  stage.player.setAttribute("aria-pressed", String(state.isWriting));
  written.hidden = at < 0;
  box.hidden = replaces && at >= 0;
  if (at < 0) return;
  written.replaceChildren(...found.steps.slice(0, MOST).flatMap(({ added }, step) => {
    const word = button(added.trim(), () => {
      [state.at, state.other] = [step, null];
      stage.selectedWord();
    }, { class: `w${step === at ? " sel" : step === found.given - 1 ? " new" : ""}`, tabindex: step === at ? "0" : "-1" });
    word.hidden = !added.trim();
    word.style.visibility = step > at ? "hidden" : "";
    return [document.createTextNode(step && /^\s/.test(added) ? " " : ""), word];
  }));
}

/** The weights of words where the picture does not show the selected head: (title, token) → weight. */
function weightsOf(state) {
  const found = state.seen === 2 ? state.answered(state.needed()) : null;
  const wordAt = (token) => found.tokens.findIndex(([first, end]) => token >= first && token < end);
  return (title, token) => (found?.side === title ? found.attention[wordAt(token)] ?? 0 : 0);
}

/** Letters shrink before a line is added: a longer translation moves nothing. Each look at a size lays the
 * page out anew: one tells how long the texts are, and none is needed where the same ones still fit. */
function fit(words, isPresented) {
  const texts = [innerWidth, isPresented, words.textContent, ...Array.from(words.children, ({ hidden }) => hidden)].join();
  if (words.fitted === `${texts} ${words.offsetWidth} ${words.offsetHeight}`) return;
  words.style.fontSize = "";
  if (innerWidth > 640) {
    words.classList.add("one-line");
    const px = parseFloat(getComputedStyle(words).fontSize), share = words.clientWidth / words.scrollWidth;
    words.classList.remove("one-line");
    const steps = Math.ceil((1 - Math.max(LEAST, share)) / STEP), last = Math.floor((1 - LEAST) / STEP);
    for (const step of new Set([steps, steps + 1, last])) { // the next one for what is not in letters
      words.style.fontSize = `${px * (1 - Math.min(last, step) * STEP)}px`;
      if (words.offsetHeight <= px * 2.1) break;
    }
  }
  words.fitted = `${texts} ${words.offsetWidth} ${words.offsetHeight}`;
}

/** Beneath the words: the acts on the word that was touched, under it; or the next tokens under the
 * selected one; at the right the slider between before and after. */
export function drawUnder(stage) {
  const { state, parts: { under, bar, next, slider, drawing, apart } } = stage;
  const token = state.token, word = token && buttonOf(stage, token);
  bar.hidden = !word || state.isWriting;
  if (!bar.hidden) {
    const acts = state.acts().filter(({ key }) => "hwes".includes(key));
    const drawn = JSON.stringify([acts, state.run.id]);
    if (bar.drawn !== drawn) { // an act that is pointed at stays
      bar.drawn = drawn;
      bar.setAttribute("aria-label", `Change “${word.textContent}”`);
      bar.replaceChildren(...acts.map(({ key, name, act, isDone }) =>
        actButton(stage, act, isDone, {}, `${name} `, element("kbd", {}, key.toUpperCase()))));
    }
    under.toggleAttribute("data-acts", acts.length > 0);
    bar.hidden = !acts.length;
    stand(bar, word, under);
  }
  slider.hidden = !state.run.former || state.isWriting;
  drawing.hidden = !(state.isWriting && state.write === 2);
  drawApart(stage, apart, slider.hidden && state.isPlaces && !state.isWriting ? state.acts().find(({ key }) => key === "n") : null);
  for (const input of drawing.querySelectorAll("input"))
    if (input !== document.activeElement) input.value = String(state.look.write?.[input.name] ?? "");
  const own = stage.parts.words.querySelector(".w.sel"), isOfModel = state.depth === MODEL && state.seen;
  const answers = state.depth !== HEADS && !state.isPlaces && !state.effect?.now?.length ? (isOfModel ? state.answersAt() : state.answers()) : null;
  const part = state.part();
  next.hidden = !answers || !own || state.isWriting || state.run.answers.rows.length === 1 || state.run.answers.side !== part.query;
  if (!next.hidden) {
    next.replaceChildren("next token ", ...answers.slice(0, 3).flatMap(([text, share], i) =>
      [" ", element(i ? "span" : "b", { translate: "no" }, `${text} ${percent(share)}`)]));
    stand(next, own, under, slider.hidden ? 0 : slider.offsetWidth + GAP);
  }
  slider.querySelector("input").value = String(state.mix);
}

/** An act on all words, at the right. */
function drawApart(stage, apart, act) {
  const drawn = JSON.stringify([act ?? null, stage.run?.id]);
  if (apart.drawn === drawn) return; // one that is pointed at stays
  apart.drawn = drawn;
  apart.replaceChildren(...(act ? [actButton(stage, act.act, act.isDone, { class: "tool" }, act.name, element("kbd", {}, act.key.toUpperCase()))] : []));
}

/** Under a word, as far as the edges allow, of which the right one is taken for so many px. */
function stand(node, word, under, taken = 0) {
  const [frame, box] = [under.getBoundingClientRect(), word.getBoundingClientRect()];
  const middle = box.left + box.width / 2 - frame.left, half = node.offsetWidth / 2;
  const left = Math.max(half, Math.min(frame.width - taken - half, middle));
  node.style.left = `${left}px`;
  node.style.setProperty("--tip", `${middle - left + half}px`);
}
