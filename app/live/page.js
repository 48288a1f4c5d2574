// The live page: what the user does becomes a state, the worker answers it, the app's own grid draws.

import { Walk } from "./walk.js";
import { Cards } from "../components/head_grid/cards.js";
import { Grid } from "../components/head_grid/grid.js";
import { attempt } from "../components/shared/attempt.js";
import { element, painted } from "../components/shared/dom.js";
import { shortName } from "../components/shared/names.js";
import { percent } from "../components/shared/numbers.js";
import { WordLines } from "../components/word_lines/lines.js";
import { hidden, paintedCell, parse, toggled, VERBS, weighed, written } from "./changes.js";
import { mark } from "./lesson.js";
import { hearParent, isEmbedded, tell } from "./embed.js";
import { drawStep, isOpen, leavesSome } from "./lesson_panel.js";
import { classMoved, hasMoved, moved, nowWrites, peeking, stays } from "./findings.js";

const SCOPES = { // what an edit on the grid concerns
  head: (on) => ({ kind: on.kind, layer: on.layer, head: on.head }),
  layer: ({ kind, layer }) => ({ kind, layer, head: null }),
  kind: ({ kind }) => ({ kind, layer: null, head: null }),
};
const SAMPLING = ["temperature", "top_k", "seed"];
const MOST_NAMED = 2; // tokens by a chip
const SHOWS = new Set(["before", "after", "difference"]);
const hasAddress = location.protocol !== "about:"; // of srcdoc, which nobody else can open
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

// The worker

const worker = new Worker(URL.createObjectURL(
  new Blob([byId("worker").textContent], { type: "text/javascript" })));
let newest = 0;
let onPart = () => {};

/** Asks the worker; `hear` gets the parts of the answer as they are ready, unless a newer question
 * has been asked. */
function ask(question, hear) {
  onPart = hear;
  delete document.documentElement.dataset.idle; // for those who wait for the answer
  worker.postMessage({ ...question, id: ++newest });
}

worker.onmessage = ({ data: { id, part, error, done } }) => {
  if (id !== newest) return;
  byId("error").textContent = error ?? "";
  for (const shown of ["grid", "written", "numbers"])
    byId(shown).hidden = Boolean(error); // of an earlier question
  if (part) onPart(part);
  if (done && id === newest) document.documentElement.dataset.idle = id; // else `part` led to another
};

// The state, its history and the link

document.documentElement.classList.toggle("embedded", isEmbedded);
const START = { source: data.examples[0] ?? "", target: "", off: [], pad_to: 0, beam: 1, changes: "",
  shows: "after", beginning: "", step: 0, temperature: 1, top_k: 0, seed: 0 };
let state = START;
let model = null; // {sites, sides, longest}
let hasViews = false;
const past = [];
let future = []; // undone
let generation = null; // the last one that came
let question = null; // of the step of the lesson, for the texts as they are
const given = new Map(); // step and texts → {answer, shown}

function choose(more) {
  const next = { ...state, ...more };
  if (JSON.stringify(next) === JSON.stringify(state)) return;
  past.push(state);
  future = [];
  state = next;
  show();
}

function go(from, to) {
  if (!from.length) return;
  to.push(state);
  state = from.pop();
  show();
}

/** The state as a fragment, without what is as at the start. */
function fragment() {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(state))
    if (name === "off") for (const mask of value) fields.set(mask, "false");
    else if (value !== START[name] || name === "source") fields.set(name, value);
  const { focus } = options;
  fields.set("kind", focus.kind);
  for (const name of ["layer", "head"]) fields.set(name, focus[name] + 1);
  if (isPresented()) fields.set("present", "true");
  if (view() !== "attention") fields.set("view", view());
  return `#${fields}`;
}

/** The address of what is shown, also where it opens without a frame. A page in a frame may have none. */
function keepAddress() {
  attempt(() => history.replaceState(null, "", location.href.split("#")[0] + fragment()));
  if (hasAddress) byId("whole").href = location.pathname + fragment(); // not embedded
}

/** The length to pad to. Stepping up from no padding jumps to the shortest length that pads; stepping
 * down returns. */
function padding(before, now) {
  const lengths = Object.values(grid.data?.sides ?? {}).map(({ labels }) =>
    labels.filter((label) => label !== "<pad>").length);
  const shortest = Math.min(...lengths);
  if (Math.abs(now - before) !== 1 || now > shortest) return now;
  return now > before ? shortest + 1 : 0;
}

/** The state of a fragment; what is invalid in it stays as at the start. */
function fromFragment(text) {
  const fields = new URLSearchParams(text.slice(1));
  const next = { ...START, off: Object.keys(data.masks).filter((mask) => fields.get(mask) === "false") };
  for (const name of ["source", "target", "changes"]) next[name] = fields.get(name) ?? START[name];
  next.pad_to = Math.min(whole(fields.get("pad_to")), model.longest);
  next.beam = { 0: 0, 5: 5 }[fields.get("beam")] ?? 1;
  for (const name of ["top_k", "seed"]) next[name] = whole(fields.get(name));
  next.temperature = temperatureOf(fields.get("temperature"));
  if (SHOWS.has(fields.get("shows"))) next.shows = fields.get("shows");
  const [layer, at] = ["layer", "head"].map((name) => whole(fields.get(name)) - 1);
  present(fields.get("present") === "true");
  turnTo(fields.get("view") ?? "");
  const beginning = fields.get("beginning") ?? "";
  next.step = stepAt(whole(fields.get("step") ?? String(START.step)));
  next.beginning = /^\d{1,7}(-\d{1,7}){0,1000}$/.test(beginning) ? beginning : "";
  options.focus = head({ kind: fields.get("kind"), layer, head: at }) ?? options.focus;
  return next;
}

/** A head, if the model has it. */
function head(place) {
  const isThere = model.sites.some(({ kind, layer, n_heads }) =>
    kind === place?.kind && layer === place.layer && place.head >= 0 && place.head < n_heads);
  return isThere ? { kind: place.kind, layer: place.layer, head: place.head } : null;
}

/** A temperature above 0; 1 for anything else. */
const temperatureOf = (text) => (/^\d{0,2}(\.\d{1,2})?$/.test(text ?? "") && Number(text)) || 1;

const whole = (text) => (/^\d{1,6}$/.test(text ?? "") ? Number(text) : 0);

const changesOf = () => {
  try {
    return parse(state.changes);
  } catch {
    return []; // the worker says what is wrong
  }
};

// Drawing

const grid = new Grid(true);
let options = {
  focus: null, show: "all", scale: "linear", order: {}, average: "", least: 0,
  palette: data.palette, colour: data.colour, faded: {}, off: {}, marked: {}, hidden: {}, moved: {},
  acts: true, cards: {}, named: true, said: [], now: [], session: "", heard: 0,
};

const NOTHING_FOUND = { first: [], last: () => [] };

const isChanged = () => Boolean(state.changes || state.off.length);

function show() {
  performance.mark("asked");
  keepAddress();
  controls();
  const shows = isChanged() ? state.shows : "after";
  const look = { ...changedTiles(shows), moved: {},
    palette: shows === "difference" ? data.differences : data.palette };
  const masks = Object.fromEntries(Object.keys(data.masks).map((name) => [name, !state.off.includes(name)]));
  const { source, target, changes, pad_to: padTo, step, temperature, top_k: topK, seed } = state;
  // Sampling is Generate's: elsewhere pictures are compared.
  const [beam, sampling] = state.beam ? [state.beam, null] : [1, { temperature, topK, seed }];
  let found = NOTHING_FOUND;
  ask({ what: "read", source, target, masks, changes, padTo, beam, sampling, shows, view: view(), step,
    beginning: state.beginning.split("-").filter(Boolean).map(Number) }, (part) => {
    if (part.best) {
      found = find(part);
      if (shows === "after") look.moved = part.moved ?? {}; // a class has none
      byId("bars").hidden = !Object.values(look.moved).flat().some(Boolean);
      question = part.question;
      if (question?.done && !answered()) given.set(place(), { answer: true });
      Object.assign(look, drawLesson());
      if (shows === "after" && !look.in_lesson && hasMoved(part.most)) look.points_at = part.most.at;
    }
    if (part.grid) draw(part.grid, { ...look, peek: found.peek, said: [...found.first, ...found.last()] });
    if (part.alignment && view() === "alignment") drawLines(part.alignment);
    if (part.generation) {
      generation = part.generation;
      drawGeneration();
    }
    if (part.written === undefined) return;
    redraw({ said: write(part, found) });
    painted("text", newest);
  });
}

/** The shadow root of a component, with the style that it has in the app. */
function rootOf(id) {
  const box = byId(id);
  if (!box.shadowRoot) {
    const style = new CSSStyleSheet();
    style.replaceSync(data.styles[id]);
    box.attachShadow({ mode: "open" }).adoptedStyleSheets = [style];
  }
  return box.shadowRoot;
}

/** The words that go together. */
function drawLines({ words, weights, links, before }) {
  const dashed = before.length ? " Dashed: as trained." : "";
  new WordLines(rootOf("lines"), { colour: data.colour, palette: data.palette, titles: ["Source", "Target"], words, weights,
    links, before, note: data.alignment.note + dashed }).point(null);
}

/** How the text was written, with the heads of the selected kind. */
function drawGeneration() {
  if (!generation) return;
  const { kind } = options.focus;
  const tell = (what, [a, b]) => {
    if (what === "choose") choose({ beginning: [...generation.ids.slice(0, a), b].join("-") });
    else focusOn({ kind, layer: a, head: b });
  };
  new Walk(rootOf("generation"), { ...generation, colour: data.colour, palette: data.palette,
    rows: generation.kinds.find((rows) => rows.kind === kind), focus: options.focus,
    writer: data.name, given: state.beginning.split("-").filter(Boolean).length }, tell);
}

function draw(bytes, look) {
  options = { ...options, ...look };
  grid.setWeights(bytes);
  redraw();
  drawChips(); // with the words of this text
}

function redraw(look = {}) {
  options = { ...options, ...look, heard: grid.count };
  grid.setLook(options);
  byId("finding").replaceChildren(...options.said.map(([text, tag]) =>
    (tag ? element(tag, {}, text) : text)));
  offerPeek();
}

/** The button that selects the head that peeks most, if any does. */
function offerPeek() {
  const [button, { peek }] = [byId("peek"), options];
  button.hidden = !peek;
  if (!peek) return;
  button.textContent = `Select decoder head ${peek.layer + 1}.${peek.head + 1}, which peeks most`;
  button.disabled = JSON.stringify(head(peek)) === JSON.stringify(head(options.focus));
  button.onclick = () => focusOn(peek);
}

const isPresented = () => document.documentElement.classList.contains("presenting");

const view = () => document.documentElement.dataset.view;

/** Shows what the heads attend to, the words that they align, or how the text is written. */
function turnTo(name) {
  const box = byId("views").querySelector(`[value="${CSS.escape(name)}"]`);
  const isThere = box && !box.parentElement.hidden;
  document.documentElement.dataset.view = isThere ? name : "attention";
  byId("views").querySelector(`[value=${view()}]`).checked = true;
}

/** For a projector: state, texts, finding and the picture alone, and larger. */
function present(on) {
  if (on === isPresented()) return;
  document.documentElement.classList.toggle("presenting", on);
  grid.draw();
}

/** The tiles that are off or changed, and the tokens that no head attends to because they are hidden. */
function changedTiles(shows) {
  const [off, marked, hiddenTokens] = [{}, {}, {}];
  if (shows === "before") return { off, marked, hidden: hiddenTokens };
  const concerns = ({ kind, layer }, site) =>
    (kind === "all" || kind === site.kind) && (layer === null || layer === site.layer);
  const hides = changesOf().filter(({ verb, head: at }) => verb === "hide" && at === null);
  for (const { name, title } of model.sides) {
    const bySite = model.sites.filter(({ key_side }) => key_side === name).map((site) =>
      new Set(hides.filter((change) => concerns(change, site)).flatMap(({ tokens }) => tokens)));
    hiddenTokens[title] = [...bySite[0]].filter((token) => bySite.every((some) => some.has(token)));
  }
  for (const change of changesOf().filter(({ verb }) => verb !== "hide"))
    for (const site of model.sites) {
      if (!concerns(change, site)) continue;
      const tiles = (change.verb === "off" ? off : marked)[site.kind] ??= [];
      for (let at = 0; at < site.n_heads; at++)
        if (change.head === null || change.head === at) tiles.push(site.layer * site.n_heads + at);
    }
  return { off, marked, hidden: hiddenTokens };
}

/** Says how probable the output is; returns what the changes do: what precedes the text and, as a
 * function of how it starts, what follows it, each in parts, [text, tag or ""]; and where the decoder
 * peeks most, if it can. */
function find({ title, best, bestTrained, before, after, peek, most, classMoved: classes }) {
  const { writes, predicts } = model.sides.at(-1);
  const answer = ([label, share]) => `${label}, ${percent(share)}`;
  const [was, now] = writes ? [before, after].map((share) => percent(share)) : [bestTrained, best].map(answer);
  const whose = state.target ? "your target" : "this translation";
  byId("numbers").textContent = `${writes ? `Probability of ${whose}` : title}: ` +
    (now === was ? now : `${was} → ${now}`);
  if (predicts === "class")
    byId("written").textContent = `${title}: ${state.shows === "before" ? was : now}`;
  if (!isChanged()) return NOTHING_FOUND;
  return { peek, first: peek ? peeking(peek) : [],
    last: (start = peek ? "finished" : "after") => (classes ? classMoved(classes) : moved(most, start)) };
}

/** Shows the text; returns the finding, in parts. */
function write({ written: text, again }, { peek, first, last }) {
  const title = !model.sides.at(-1).writes ? "Continuation" : state.target ? data.typed : data.output;
  const shown = again === null || state.shows === "before" ? text : again;
  byId("written").replaceChildren(
    element("b", {}, `${title}: `), element("span", { lang: data.language }, shown));
  byId("written").title = shown;
  if (again === null) return [...first, ...last()];
  const { writes } = model.sides.at(-1);
  const isPeekAlone = peek && state.off.length === 1 && !state.changes;
  if (again === text)
    return [...first, ...stays(writes ? "translation" : "continuation", isPeekAlone), ...last()];
  return [...first, ...nowWrites(text, again), ...last(writes ? "former" : undefined)];
}

/** Fields, chips and buttons as the state has them. */
function controls() {
  for (const name of ["source", "target", "changes", "pad_to", "beam", ...SAMPLING])
    byId(name).value = state[name];
  byId("sampling").hidden = state.beam !== 0;
  for (const box of byId("masks").querySelectorAll("[type=checkbox]")) {
    box.checked = !state.off.includes(box.name);
  }
  byId("shows").hidden = !isChanged();
  byId("shows").querySelector(`[value=${state.shows}]`).checked = true;
  byId("undo").disabled = !past.length;
  byId("redo").disabled = !future.length;
  byId("history").hidden = !past.length && !future.length && !isChanged();
  drawChips();
}

/** What differs from the model as trained: a chip each, which removes it. */
function drawChips() {
  const changes = changesOf();
  const chips = [
    ...state.off.map((name) => [`${data.masks[name][0]} off`, { off: state.off.filter((n) => n !== name) }]),
    ...(state.pad_to ? [[`Padded to ${state.pad_to}`, { pad_to: 0 }]] : []),
    ...(state.target ? [["Your target", { target: "" }]] : []),
    ...(state.beginning ? [["Your start of the output", { beginning: "" }]] : []),
    ...changes.map((change) => [readable(change), { changes: written(toggled(changes, change)) }]),
  ];
  byId("state").replaceChildren(...chips.map(([text, without]) => {
    const chip = element("button", { type: "button", title: "Remove" }, `${text} ×`);
    chip.onclick = () => choose(without);
    return chip;
  }), ...(chips.length ? [] : ["As trained"]));
}

/** A change in a few words (app/text/part_names.py). */
function readable(change) {
  const what = change.verb === "hide" ? wordsHidden(change) : VERBS[change.verb].write(change);
  return `${shortName(change)} ${data.verbs[change.verb].replace("{}", what)}`;
}

/** The tokens that are hidden: the words, with their numbers where the text has them more than once. */
function wordsHidden({ kind, tokens }) {
  if (tokens.length > MOST_NAMED) return `${tokens.length} tokens`;
  const labels = grid.data?.sides[grid.part(kind)?.key]?.labels ?? [];
  const names = tokens.map((token) => {
    const word = token in labels ? `“${labels[token]}”` : "";
    return word && isOnce(labels, labels[token]) ? word : `token ${token + 1} ${word}`.trim();
  });
  return names.join(" and ");
}

const isOnce = (all, one) => all.indexOf(one) === all.lastIndexOf(one);

// The lesson

/** A step, if the lesson has it; else the first one for a number that it does not carry. */
const stepAt = (number) => (data.lesson?.steps[number - 1]?.carried ? number
  : number && data.lesson ? firstStep() : 0);
const firstStep = () => data.lesson.steps.findIndex(({ carried }) => carried) + 1;
const place = () => JSON.stringify([state.step, state.source, state.target]);
const answered = () => given.get(place()) ?? null;

/** Draws the step; returns what the grid covers and points at. While a question is open, nothing can
 * be changed and no other view opened: both would give it away. */
function drawLesson() {
  if (!data.lesson) return {};
  const step = data.lesson.steps[state.step - 1];
  const awaits = step?.own && state.source === data.lesson.sentence;
  const now = awaits ? { problem: "Type a short sentence of your own in the box above, and press Enter." }
    : question;
  const open = Boolean(step) && isOpen(now, answered());
  const { kind, layer, head: at } = options.focus;
  drawStep(byId("lesson"), data.lesson, state.step, now, answered(), `${kind} ${layer} ${at}`, titleOf, {
    answer: (answer) => told({ answer, again: !answered() && leavesSome(now) && !mark(now, answer).right }),
    show: () => told(answered() ? { ...answered(), again: false } : { shown: true }), go: goToStep });
  const covers = open && now.kind !== "do";
  if (covers) turnTo("attention");
  byId("change").hidden = covers;
  byId("views").hidden = covers || !hasViews;
  const site = step?.head && model.sites.find((one) => one.kind === step.head.kind);
  const side = site && model.sides.find(({ name: of }) => of === site.query_side).title;
  // A weight after a change is asked for before anything is changed.
  const veil = covers ? now.veil.map(({ what, ...where }) => ({ ...where,
    what: what === "changed row" ? isChanged() && "row" : what })).filter(({ what }) => what) : [];
  return { acts: !covers, veil,
    in_lesson: Boolean(step),
    points_at: Number.isInteger(now?.row) && side ? { side, index: now.row } : {} };
}

/** A head in words, by its name in a question. */
function titleOf(name) {
  const [kind, layer, at] = name.split(" ");
  const { title } = model.sites.find((site) => site.kind === kind);
  return `${title[0].toUpperCase()}${title.slice(1)}, layer ${Number(layer) + 1}, head ${Number(at) + 1}`;
}

function told(answer) {
  given.set(place(), answer);
  redraw(drawLesson());
}

/** Goes to a step, 0 to leave, and to its sentence, without changes, and its head. */
function goToStep(number) {
  const at = number === 1 ? firstStep() : number;
  const step = data.lesson.steps[at - 1];
  if (step?.focus) options.focus = step.focus;
  grid.pinned = null; // a row of the step before
  turnTo(step?.page ?? "attention");
  byId("picker").value = JSON.stringify(options.focus);
  choose({ step: at, ...(step && { source: data.lesson.sentence, target: "", changes: "", off: [],
    pad_to: 0, beginning: "" }) });
}

// What the user does

/** An edit on the grid: a head off, a token hidden, a cell masked or weighted. */
function edit({ what, scope = "head", ...on }) {
  if (!options.acts) return; // an open question covers something
  const changes = changesOf();
  const { row, column } = on;
  const edits = {
    off: () => toggled(changes, { ...SCOPES[scope](on), verb: "off" }),
    hide: () => hidden(changes, on.head instanceof Object ? [on.head]
      : kindsOf(on.side).map((kind) => ({ kind, layer: null, head: null })), on.index),
    paint: () => paintedCell(changes, SCOPES[scope](on), [row, column], on.allow),
    weigh: () => weighed(changes, SCOPES.head(on), [row, column], on.weight),
  };
  choose({ changes: written(edits[what]()) });
}

/** The kinds of attention whose keys are the tokens of a side, given by its title. */
function kindsOf(title) {
  const { name } = model.sides.find((side) => side.title === title);
  return [...new Set(model.sites.filter(({ key_side }) => key_side === name).map(({ kind }) => kind))];
}

/** Sends a form's own event: a browser sends none in a frame that may submit nothing. */
function submits(event) {
  const { key, isComposing, target } = event;
  const form = target.closest(key ? "form input" : "form button")?.form;
  if (!form || isComposing || (key && key !== "Enter")) return;
  event.preventDefault();
  form.dispatchEvent(new Event("submit", { cancelable: true }));
}

function listen() {
  for (const event of ["click", "keydown"]) document.body.addEventListener(event, submits);
  const submit = (id, field) => {
    byId(id).onsubmit = (event) => {
      event.preventDefault();
      choose({ [field]: byId(field).value });
    };
  };
  byId("ask").onsubmit = (event) => {
    event.preventDefault();
    choose({ source: byId("source").value, target: "", beginning: "" });
  };
  submit("own", "target");
  submit("line", "changes");
  byId("examples").onchange = ({ target }) => {
    choose({ source: target.value, target: "", beginning: "" });
    target.selectedIndex = 0;
  };
  byId("pad_to").onchange = ({ target }) => choose({ pad_to: padding(state.pad_to, whole(target.value)) });
  byId("beam").onchange = ({ target }) => {
    if (target.value === "0") turnTo("generate");
    choose({ beam: Number(target.value) });
  };
  byId("sampling").onchange = ({ target: { id, value } }) =>
    choose({ [id]: id === "temperature" ? temperatureOf(value) : whole(value) });
  byId("masks").onchange = ({ target: { name, checked } }) =>
    name && choose({ off: checked ? state.off.filter((other) => other !== name) : [...state.off, name] });
  byId("undo").onclick = () => go(past, future);
  byId("redo").onclick = () => go(future, past);
  byId("reset").onclick = () => choose({ off: [], pad_to: 0, changes: "", target: "", beginning: "" });
  byId("views").onchange = ({ target }) => {
    turnTo(target.value);
    show();
  };
  byId("shows").onchange = ({ target }) => choose({ shows: target.value });
  byId("off").onclick = () => edit({ what: "off", ...options.focus });
  byId("picker").onchange = ({ target }) => focusOn(JSON.parse(target.value));
  for (const [button, on] of [["present", true], ["leave", false]])
    byId(button).onclick = () => {
      present(on);
      keepAddress();
    };
  byId("theme").onclick = () => {
    const isDark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
      (!document.documentElement.classList.contains("light") &&
        matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.classList.toggle("dark", !isDark);
    document.documentElement.classList.toggle("light", isDark);
  };
  byId("link").onclick = async () => {
    const address = location.href;
    try {
      await navigator.clipboard.writeText(address);
      byId("link").textContent = "Copied";
    } catch { // from file:// a browser may refuse
      prompt("Copy this link:", address);
    }
  };
  document.onkeydown = (event) => {
    if (event.target.matches("input:not([type=checkbox], [type=radio]), select")) return;
    const { key, shiftKey, altKey } = event;
    const isCommand = event.ctrlKey || event.metaKey;
    const root = document.documentElement.classList;
    const acts = isCommand ? { z: shiftKey ? "redo" : "undo", y: "redo" } : { u: "undo", y: "redo", x: "reset" };
    if (altKey) return;
    if (acts[key.toLowerCase()]) byId(acts[key.toLowerCase()]).click();
    else if (isPresented() && key === "Escape" && !event.defaultPrevented) {
      if (root.contains("with-bar") || root.contains("with-panel"))
        root.remove("with-bar", "with-panel");
      else if (!grid.letGo()) byId("leave").click();
    } else if (isPresented() && !isCommand && key === "b") root.toggle("with-bar");
    else if (isPresented() && !isCommand && key === "p") root.toggle("with-panel");
    else return;
    event.preventDefault();
  };
  window.onhashchange = () => {
    const before = view();
    choose(fromFragment(location.hash));
    if (view() !== before) show();
    focusOn(options.focus);
  };
}

/** What the page around a frame is told; layers and heads from 1, as in the address. */
function tellParent() {
  const { kind, layer, head: at } = options.focus;
  const finding = view() === "attention" ? grid.message : byId("finding");
  tell({ sentence: state.source, output: byId("written").lastElementChild?.textContent ?? "",
    kind, layer: layer + 1, head: at + 1, finding: finding.textContent,
    error: byId("error").textContent });
}

/** What the page around a frame asks for. */
function hear({ sentence, kind, layer, head: at }) {
  if (typeof sentence === "string" && sentence !== state.source)
    choose({ source: sentence, target: "", beginning: "" });
  const asked = head({ kind, layer: layer - 1, head: at - 1 });
  if (asked) focusOn(asked);
}

/** Selects a head. */
function focusOn(tile) {
  redraw({ focus: head(tile), ...drawLesson() });
  byId("picker").value = JSON.stringify(options.focus);
  keepAddress();
  drawGeneration();
}

/** Options for every head, by kind of attention. */
function listHeads() {
  for (const sites of Map.groupBy(model.sites, ({ kind }) => kind).values()) {
    const [{ kind, title }] = sites;
    const name = title[0].toUpperCase() + title.slice(1);
    byId("picker").append(element("optgroup", { label: name },
      ...sites.flatMap(({ layer, n_heads }) => Array.from({ length: n_heads }, (_, at) =>
        element("option", { value: JSON.stringify({ kind, layer, head: at }) },
          `${name} · layer ${layer + 1} · head ${at + 1}`)))));
  }
}

function open(loaded) {
  model = loaded;
  const { kind, layer } = model.sites.at(-1);
  options.focus = head(data.opens) ?? { kind, layer, head: 0 };
  const switches = new Set(model.sites.flatMap(({ masks }) => masks));
  for (const name of Object.keys(data.masks).filter((mask) => switches.has(mask))) {
    const [label, help] = data.masks[name];
    byId("pad_to").parentElement.before(element("label", { title: help },
      element("input", { type: "checkbox", name }), ` ${label}`));
  }
  const writes = model.sides.at(-1).writes;
  byId("own").hidden = !writes;
  byId("decoding").hidden = model.sides.at(-1).predicts === "class";
  byId("examples").append(element("option", { value: "" }, "Examples"),
    ...data.examples.map((text) => element("option", {}, text)));
  byId("examples").hidden = data.examples.length < 2;
  listHeads();
  const isThere = { alignment: data.alignment, generate: model.sides.at(-1).predicts !== "class" };
  for (const [name, there] of Object.entries(isThere))
    byId("views").querySelector(`[value=${name}]`).parentElement.hidden = !there;
  hasViews = Object.values(isThere).some(Boolean);
  byId("views").hidden = !hasViews;
  byId("lesson").hidden = !data.lesson;
  if (data.alignment) {
    const { heads, together, words } = data.alignment;
    const names = heads.map(([layer, at]) => `layer ${layer + 1} head ${at + 1}`).join(" and ");
    byId("aligning").textContent = "These cross-attention heads align words best, measured on " +
      `other sentences: ${names}. For ${percent(together)} of ${words} target words, they pick ` +
      "the source word that the model needs most. Thicker: more attention.";
  }
  grid.strip = new Cards(grid);
  grid.mount(byId("grid"));
  grid.report = focusOn;
  grid.act = edit;
  byId("link").hidden = byId("whole").hidden = !hasAddress;
  listen();
  hearParent(hear);
  const said = new MutationObserver(tellParent);
  for (const node of [grid.live, byId("finding"), byId("written"), byId("error")])
    said.observe(node, { childList: true });
  if (data.lesson) Object.assign(START, { source: data.lesson.sentence, step: firstStep() });
  state = fromFragment(location.hash);
  byId("picker").value = JSON.stringify(options.focus);
  show();
}

ask({ what: "load", weights: byId("weights").textContent, checkpoint: data.checkpoint,
  tokenizer: data.tokenizer, classes: data.classes, continuation: data.continuation,
  alignment: data.alignment, characters: data.characters,
  lesson: data.lesson }, open);
