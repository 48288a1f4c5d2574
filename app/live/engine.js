// The engine of the stage in one file: the model runs in a worker, and the settings stand behind the # of the
// address, where there is one.

import { attempt } from "../components/shared/attempt.js";
import { headerOf } from "../components/shared/packed.js";
import { actsOf, changesOf, edited, hiddenTokens, isBlurred, offTiles } from "./acts.js";
import { written } from "./changes.js";

const UNKNOWN = { isMissing: true };
const UNCHANGED = { off: [], pad_to: 0, changes: "", target: "" };
const PLACES = ["depth", "cell", "whole", "heads", "view", "stop", "number", "write", "scaling"];
const WRITES = { width: 5, temperature: 1, seed: 0, beginning: "" }; // how the model writes
const OURS = { isOurs: true }; // an entry of the history that Back leads to
const FREE = { isOpen: false, veil: [], points_at: {} };

const whole = (text) => (/^\d{1,6}$/.test(text ?? "") ? Number(text) : 0);

/** How the model writes; what is not valid is as at the start. */
const writesWith = ({ width, temperature, seed, beginning }) => ({
  width: Math.max(2, Math.min(10, Math.round(Number(width)) || WRITES.width)),
  temperature: temperature > 0 && temperature < 100 ? Number(temperature) : WRITES.temperature,
  seed: whole(String(seed)), beginning: /^\d{1,7}(-\d{1,7}){0,1000}$/.test(beginning) ? beginning : "" });

/** `data`: what the page holds besides the weights; `ask(question, hear)`: to the worker, `hear` gets the parts
 * of its answer. */
export class LiveEngine {
  hasPages = false; // Learn, Share and all others
  listeners = [];
  looks = 0;
  places = 0; // where the stage was led
  answers = new Map(); // what was asked of this run → promise
  waiting = new Set(); // what tells those that are still to come
  cell = { query: -1, key: -1 };
  drawer = false;
  error = "";
  onNews = () => {};

  constructor(data, ask, load) {
    Object.assign(this, { data, post: ask });
    this.start = { source: data.lesson?.sentence ?? data.examples[0] ?? "", ...UNCHANGED, ...WRITES, beam: 1, step: data.lesson ? this.firstStep() : 0, present: false };
    this.state = this.fromAddress();
    this.place = this.asked();
    ask(load, ({ part, error }) => (part ? this.open(part) : this.fail(error)));
    addEventListener("popstate", ({ state }) => this.follow(state));
  }

  open({ sites, sides }) {
    const { kind, layer } = sites.at(-1), cross = sites.find(({ query_side, key_side }) => query_side !== key_side);
    this.model = { sites, sides, verbs: this.data.verbs };
    this.focus = this.data.opens ?? { kind, layer, head: 0 };
    this.best = this.data.alignment && cross ? { kind: cross.kind, heads: this.data.alignment.heads } : null;
    this.read();
  }

  // The calls of the stage

  heard(listener) {
    this.listeners.push(listener);
    this.look();
  }

  tell(name, value) {
    this.listeners.forEach((listener) => listener({ [name]: value }));
  }

  choose({ line, projector: present = this.state.present, drawer = this.drawer, ...wanted }) {
    this.drawer = drawer;
    if (line !== undefined) return this.change({ source: line, target: "", beginning: "" });
    this.state = { ...this.state, ...writesWith({ ...this.state, ...wanted }), present };
    this.write("replaceState");
    this.look();
  }

  act(what) {
    if (!this.lesson().isOpen) this.change(this.after(what), true);
  }

  ask({ of, ...what }) {
    if (this.lesson().isOpen || of !== this.run?.id) return Promise.resolve(UNKNOWN);
    const key = JSON.stringify(what);
    if (!this.answers.has(key)) this.answers.set(key, new Promise((tell) => {
      const question = what.what === "preview" ? { what: "preview", ...this.settings({ ...this.state, ...this.after(what.act) }) } : what;
      this.waiting.add(tell);
      this.post(question, ({ part, done }) => {
        if (!done) return;
        this.waiting.delete(tell);
        tell(part ?? UNKNOWN);
      });
    }));
    return this.answers.get(key);
  }

  keep(place) {
    this.place = place;
    this.write("replaceState");
    this.onNews();
  }

  /** Where the address leads to; one of an older page, too. */
  asked() {
    const { kind, layer, head, ...place } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    if (place.view === "alignment") place.view = "best";
    return kind && !place.cell ? { ...place, cell: `${kind}.${layer}.${head}` } : place;
  }

  // Settings

  /** The settings after an act of the stage, or what undoes one. */
  after({ what, reset, changes, ...on }) {
    const { state, data, model } = this, without = (name) => state.off.filter((one) => one !== name);
    if (reset in data.masks) return { off: without(reset) };
    if (reset) return { [reset]: this.start[reset] };
    if (changes !== undefined) return { changes };
    if (what === "causal") return { off: state.off.includes(what) ? without(what) : [...state.off, what] };
    return { changes: edited(changesOf(state.changes), { what, ...on }, model) };
  }

  /** Goes on with other settings; `isAct`: from where an error leads back. */
  change(more, isAct = false) {
    const next = { ...this.state, ...more };
    if (JSON.stringify(next) === JSON.stringify(this.state)) return this.look();
    this.state = next;
    this.write("pushState");
    this.read(isAct);
  }

  /** Back undoes and leaves where one is; an address that was typed leads there, too. */
  follow(state) {
    this.state = this.fromAddress();
    if (!state?.isOurs) this.lead(this.asked());
    this.read();
  }

  /** Makes the stage go to a place, and to a head. */
  lead(place, focus = null) {
    this.led = [++this.places, place];
    if (focus) [this.focus, this.cell] = [focus, { query: -1, key: -1, led: this.places }];
  }

  fromAddress() {
    const fields = new URLSearchParams(location.hash.slice(1)), { start, data } = this, text = (name) => fields.get(name) ?? start[name];
    return { ...start, source: text("source"), target: text("target"), changes: text("changes"),
      off: Object.keys(data.masks).filter((mask) => fields.get(mask) === "false"),
      pad_to: Math.min(whole(fields.get("pad_to")), data.checkpoint.sizes.max_length),
      beam: fields.get("beam") === "5" ? 5 : 1, step: this.stepAt(fields.get("step") === null ? start.step : whole(fields.get("step"))),
      ...writesWith(Object.fromEntries(Object.keys(WRITES).map((name) => [name, text(name)]))), present: fields.get("present") === "true" };
  }

  /** The address of what is shown: settings that differ from those at the start, and the place. */
  get address() {
    const { off, ...rest } = this.state, fields = new URLSearchParams({ source: rest.source });
    for (const mask of off) fields.set(mask, "false");
    for (const [name, value] of Object.entries(rest)) if (value !== this.start[name]) fields.set(name, value);
    for (const name of PLACES) if (this.place[name]) fields.set(name, this.place[name]);
    return `#${fields}`;
  }

  write(how) {
    attempt(() => history[how](how === "pushState" ? OURS : history.state, "", location.href.split("#")[0] + this.address));
  }

  settings({ source, target, changes, off, pad_to: padTo, beam }) {
    const masks = Object.fromEntries(Object.keys(this.data.masks).map((name) => [name, !off.includes(name)]));
    return { source, target, masks, changes, padTo, beam };
  }

  // What is told

  read(isAct = false) {
    const { before } = this;
    this.question = null;
    this.answers.clear();
    for (const tell of this.waiting) tell(UNKNOWN); // the worker drops what was asked before
    this.waiting.clear();
    delete document.documentElement.dataset.idle; // for those who wait for the answer
    this.post({ what: "read", step: this.state.step, ...this.settings(this.state) }, ({ part, error, done }) => {
      if (error && isAct && before) {
        [this.state, this.error] = [before, error];
        this.write("replaceState");
        this.look();
      } else if (error) this.fail(error);
      else if (part?.run) this.show(part);
      else if (part?.said) this.say(part.said);
      if (!done) return;
      document.documentElement.dataset.idle = String(this.looks);
      this.onNews();
    });
  }

  show({ run, question }) {
    const [{ id, sides, parts }, start] = headerOf(run);
    const size = parts.reduce((sum, { layers, heads, rows, columns }) => sum + layers * heads * rows * columns, start);
    const former = size < run.length ? headerOf(run.subarray(size))[0].id : "";
    const labels = Object.fromEntries(Object.entries(sides).map(([title, { labels: of }]) => [title, of]));
    Object.assign(this, { run: { id: id + former, labels }, error: "", before: this.state, question });
    this.tell("run", run);
    this.look();
  }

  say({ said, now, rest, output }) {
    this.output = output;
    if (!this.lesson().isOpen) this.tell("said", { run: this.run.id, said: now.length ? rest : said, now });
  }

  /** Why nothing can be shown; what was typed stays. */
  fail(error) {
    [this.run, this.error] = [null, error];
    this.look();
  }

  look() {
    const { data, state, model, run } = this, lesson = this.lesson(), changes = changesOf(state.changes);
    const shown = run && { lacks: false, towers: data.towers, focus: this.focus, cell: this.cell,
      off: offTiles(changes, model), hidden: hiddenTokens(changes, model), veil: lesson.veil, points_at: lesson.points_at,
      cards: lesson.isOpen ? null : this.cards(changes), done: this.done(changes), best: this.best, write: lesson.isOpen ? null : this.writes, differences: data.differences };
    this.tell("look", { session: "", number: ++this.looks, palette: data.palette, projector: state.present, line: state.source,
      drawer: this.drawer, place: this.led, run: run?.id ?? null, covered: !run, types: Boolean(this.error), model: data.name, models: [data.name], ...shown });
    this.onNews();
  }

  /** How the model writes; null for one that writes nothing. */
  get writes() {
    const { state, model: { sides } } = this;
    return sides.at(-1).predicts === "class" ? null : Object.fromEntries(Object.keys(WRITES).map((name) => [name, state[name]]));
  }

  cards(changes) {
    const isCausal = this.model.sites.some(({ masks }) => masks.includes("causal"));
    return { ...(isCausal && { causal: this.state.off.includes("causal") }), temperature: isBlurred(changes) };
  }

  /** What differs from the model as trained, each with what undoes it. */
  done(changes) {
    const { state: { off, pad_to, target }, data, model, run } = this;
    return [...off.map((mask) => ({ text: `${data.masks[mask][0]} off`, undo: { reset: mask } })),
      ...(pad_to ? [{ text: `Padded to ${pad_to}`, undo: { reset: "pad_to" } }] : []),
      ...(target ? [{ text: "Your target", undo: { reset: "target" } }] : []),
      ...actsOf(changes, model, run.labels).map(([text, group]) =>
        ({ text, undo: { changes: written(changes.filter((change) => !group.includes(change))) } }))];
  }

  // The lesson that a page may hold

  /** What a lesson covers; a page with one says more. */
  lesson() {
    return FREE;
  }

  firstStep() {
    return this.data.lesson.steps.findIndex(({ carried }) => carried) + 1;
  }

  /** A step, if the lesson has it; else the first one for a number that it does not carry. */
  stepAt(number) {
    const { lesson } = this.data;
    if (lesson?.steps[number - 1]?.carried) return number;
    return number && lesson ? this.firstStep() : 0;
  }
}
