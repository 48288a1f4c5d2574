// The stage: one drawing with depths, under a line of names, the texts, and one sentence. What is selected,
// the depth and the view are the browser's; the server hears of them with the next act.

import { element, onRecolour, painted } from "../shared/dom.js";
import { keyOf, keysOf } from "../shared/keys.js";
import { lead, leadsTo } from "../shared/lead.js";
import { addsOf, spokenStep } from "./adds.js";
import { button } from "./button.js";
import { Camera, EDGE, ease, lerp } from "./camera.js";
import { spokenCell } from "./finding.js";
import { drawLegend, drawTools } from "./foot.js";
import { HERE, drawFinding, drawPage, drawRail, drawSlide, drawViews, showPage, toPage, unframedLink } from "./header.js";
import { betweenOrders, drawHeads, headsPlace } from "./heads.js";
import { hearKey } from "./keyboard.js";
import { drawHead } from "./matrix.js";
import { drawDive, drawModel } from "./model.js";
import { spokenTerm } from "./number.js";
import { click, point, stroke } from "./pointer.js";
import { numberSaid } from "./positions.js";
import { drawPytorch } from "./pytorch.js";
import { drawModels, hearSentence } from "./sentence.js";
import { DEPTHS, HEAD, HEADS, MIX, MODEL, NUMBER, ORDERS, PATHS, PYTORCH, ROW, StageState, WHOLES, WHY } from "./state.js";
import { drawUnder, drawWords } from "./words.js";
import { drawWrite, foundOf, spokenWrite, wordAt } from "./write.js";

const DEEPER = 620, STEPS = 380, VIEW = 450, ACT = 450; // ms: a depth, each of several, a view, an act
const KEPT = 100; // ms after news: a run ends with the address, written from what was known when it began
const PLAYED = 650; // ms of a word, while it plays

const saysNothing = (said) => !said?.said?.length && !said?.now?.length && !said?.finding;

export class Stage {
  state = new StageState();
  shown = HEAD; // the depth as drawn
  whole = [0, 0, 1]; // the view of the model as drawn: from, to, how far
  view = [0, 0, 1]; // the view of a head as drawn, likewise
  written = 0; // how far what the model writes lies over all else
  acted = -Infinity; // when something was done last
  pointed = null; // the head under the pointer
  isAnswering = false; // what an act did is said, until something else is selected
  left = ""; // what a slide of a class said, which is selected no more

  constructor(engine) {
    this.engine = engine;
    this.build();
    this.takePlace(engine.asked());
    engine.heard((news) => this.hear(news));
    addEventListener("popstate", ({ state }) => this.follow(state));
  }

  build() {
    const canvas = element("canvas", { tabindex: "0", role: "application", "aria-roledescription": "attention" });
    const rail = element("nav", { class: "rail", "aria-label": "Depth" });
    const outcome = element("span", { class: "w outcome" }), written = element("div", { class: "side written" });
    const words = element("section", { class: "words", "aria-label": "The texts", translate: "no" });
    const bar = element("div", { class: "acts", role: "toolbar" }), next = element("div", { class: "next" });
    const input = element("input", { type: "range", min: "0", max: "1", step: "0.01", "aria-label": "Before to after" });
    const slider = element("label", { class: "slider" }, "before", input, "after");
    const drawing = element("form", { class: "slider", hidden: "" });
    for (const [key, name, step] of [["temperature", "temperature", "0.1"], ["seed", "seed", "1"]])
      drawing.append(element("label", {}, `${name} `, element("input", { type: "number", name: key, step })));
    const apart = element("div", { class: "slider" });
    const under = element("div", { class: "under" }, bar, next, slider, drawing, apart);
    const finding = element("p", { class: "finding", "aria-live": "polite" });
    const views = element("div", { class: "views", role: "group", "aria-label": "View" });
    const again = element("input", { class: "again", "aria-label": "Sentence", placeholder: "Type a sentence" });
    const tools = element("div", { class: "tools" }), spoken = element("div", { class: "spoken", "aria-live": "polite" });
    const learn = element("a", {}, "Learn"), share = element("a", {}, "Share"), present = button("Present", () => this.engine.choose({ projector: !this.state.look.projector }));
    const more = button("More", () => this.engine.choose({ drawer: !this.state.look.drawer, selection: this.state.isSeen ? this.state.selection() : null }), { "aria-haspopup": "dialog" });
    const legend = element("div", { class: "legend", "aria-hidden": "true" }, element("span"), element("span"), element("span", { class: "scale" }, element("span"), "0%", element("i"), "100%"));
    this.parts = { canvas, rail, words, outcome, bar, next, slider, under, finding, views, tools, spoken, learn, share, present, more, legend, again, written, drawing, apart };
    this.isFramed = new URLSearchParams(location.search).get("embed") === "true";
    this.root = element("div", { class: "stage", "data-waiting": "" }, // until it is told something
      element("header", { class: "top" }, element("b", { class: "logo", translate: "no" }, "Headlight"), rail,
        element("div", { class: "quiet" }, ...(this.isFramed ? [unframedLink()] : [learn, present, share, more]))),
      element("h1", { class: "spoken" }, "What each attention head attends to"), again, words, under,
      element("div", { class: "line" }, finding, views),
      element("div", { class: "picture" }, canvas), element("div", { class: "foot" }, tools, legend), spoken);
    this.camera = new Camera(canvas);
    for (const [link, path] of [[learn, "learn"], [share, "take-away"]]) {
      leadsTo(link, () => toPage(this, path), true);
      link.hidden = this.engine.hasPages === false;
    }
    again.onkeydown = (event) => hearSentence(this, event, again);
    input.oninput = () => this.blend(Number(input.value));
    drawing.onchange = ({ target }) => this.engine.choose({ [target.name]: Number(target.value) });
    drawing.onsubmit = (event) => event.preventDefault();
    canvas.onclick = (event) => click(this, event);
    canvas.onpointerdown = (event) => stroke(this, event);
    canvas.onpointermove = (event) => point(this, event);
    canvas.onpointerleave = () => point(this, null);
    keysOf(this.root, (event) => hearKey(this, event));
    this.root.addEventListener("keyup", (event) => keyOf(event).toLowerCase() === "b" && this.state.run?.former && this.blend(1));
    new ResizeObserver(() => this.size()).observe(canvas.parentElement);
    onRecolour(this.root, () => this.size());
    document.fonts?.ready.then(() => this.size());
  }

  // What is told

  hear({ run, look, said }) {
    const { state } = this, wasSeen = state.isSeen, before = state.run, known = state.said;
    if (said) {
      this.isAnswering = Boolean(said.said?.length) && JSON.stringify(said) !== JSON.stringify(state.said);
      state.said = said;
    }
    const [led, place] = look?.place ?? [0];
    if (led && led !== this.led) { // where a lesson leads
      this.takePlace(place);
      [state.words, state.key, state.token] = [{}, -1, null];
    }
    this.led = led || this.led;
    if (look) state.takeLook(look);
    this.root.toggleAttribute("data-waiting", !state.look);
    if (run) state.takeRun(run);
    const { isSeen } = state, isNew = isSeen && (!wasSeen || state.run !== before);
    this.root.toggleAttribute("data-covered", !isSeen);
    showPage(this);
    for (const [name, isSo] of Object.entries({ lesson: state.look?.lesson, acts: state.look?.lesson?.acts, types: state.look?.lesson?.typed }))
      this.root.toggleAttribute(`data-${name}`, Boolean(isSo));
    if (isSeen || state.look?.covered) document.getElementById("hl-first")?.remove();
    document.documentElement.toggleAttribute("data-stage-covered", Boolean(state.look?.covered));
    for (const [node, name] of [[this.root, "data-present"], [document.documentElement, "data-stage-present"]])
      node.toggleAttribute(name, Boolean(state.look?.projector));
    this.parts.present.textContent = state.look?.projector ? "Leave" : "Present";
    this.parts.more.setAttribute("aria-expanded", String(Boolean(state.look?.drawer)));
    this.parts.again.hidden = isSeen || !state.look?.types;
    if (look?.types) this.parts.again.value = look.line;
    if (!isSeen) {
      if (state.page) drawPage(this);
      else if (state.look) drawSlide(this);
      if (state.look?.lesson || state.page) drawRail(this);
      return this.camera.clear();
    }
    if (state.asked) state.goThere();
    if (this.view[1] !== state.view) this.view = [0, state.view, 1]; // one that there is no more
    if (state.run !== this.run) {
      [this.run, state.vectors, state.told] = [state.run, null, {}];
      if (state.order) this.sort(state.order);
    }
    if (isNew || said) {
      clearTimeout(this.keeping);
      this.keeping = setTimeout(() => this.keep(), KEPT);
    }
    if (said && saysNothing(said) && saysNothing(known)) return;
    if (!isNew) return this.all();
    this.size(false);
    const changes = Boolean(state.run.former) && !before?.former;
    if (changes) this.camera.move(ACT, (u) => this.blend(ease(u)), () => this.blend(1));
    else this.all();
    requestAnimationFrame(() => painted("stage", state.run.id));
  }

  /** Shows another place, without a way to it. */
  takePlace(place) {
    const { state } = this;
    state.takePlace(place);
    [this.shown, this.whole, this.view, this.written] = [state.depth, [0, state.whole, 1], [0, state.view, 1], state.write < 0 ? 0 : 1];
  }

  /** A link to a place of the stage; Back, which undoes an act, leaves the depth as it is. */
  follow(state) {
    if (!state?.isLink || !location.pathname.endsWith(`/${HERE}`)) return;
    const asked = this.engine.asked();
    if (!asked.depth) return;
    this.fold();
    this.takePlace(asked);
    if (!this.state.isSeen) return;
    if (this.state.asked) this.state.goThere();
    this.all();
  }

  /** Closes the drawer; whether it was open. */
  fold() {
    const { look } = this.state;
    if (!look?.drawer) return false;
    look.drawer = false;
    this.engine.choose({ drawer: false });
    return true;
  }

  // Other pages, which have its header: depths, texts, finding

  /** Back to a place of the stage, which has the run already. */
  leave(place) {
    const { state } = this, address = new URL(toPage(this, ""), location.href);
    for (const [name, value] of Object.entries(place)) address.searchParams.set(name, value);
    const to = `${address.pathname}${address.search}`;
    state.look = { ...state.look, page: null };
    showPage(this);
    lead(to, false, true);
  }

  /** On another page. */
  leavePresent() {
    if (this.state.page && this.state.look.projector) this.engine.choose({ projector: false });
  }

  // Acts

  act(act) {
    [this.previewed, this.state.preview, this.acted] = [null, null, performance.now()];
    this.left = this.state.look.slide?.text;
    this.engine.act({ ...act, selection: this.state.selection() });
  }

  /** What an act would give, while its button is pointed at; null ends that. */
  async preview(act) {
    const { state, run } = this;
    [this.previewed, state.preview] = [act, null];
    if (act) {
      const found = await this.engine.ask({ what: "preview", act, of: run.id }).catch(() => null);
      if (this.previewed !== act || this.run !== run) return;
      state.preview = found?.said?.length || found?.why ? found : null;
    }
    drawWords(this);
    drawFinding(this);
  }

  blend(mix) {
    this.state.mix = mix;
    this.camera.images.clear();
    this.all();
  }

  /** Asks for what the view of the model shows, once it is looked at. */
  async tell() {
    const { state, run } = this, question = state.question(), key = JSON.stringify(question);
    if (!question || key in state.told || this.telling === key) return;
    this.telling = key;
    const found = await this.engine.ask({ ...question, of: run.id }).catch(() => ({ isMissing: true }));
    this.telling = null;
    if (this.run !== run) return;
    state.told[key] = found.isMissing ? null : found;
    if (found.missing) state.told[question.compared] = found.measured; // the next question is for more
    this.all();
    requestAnimationFrame(() => painted("stage model", run.id));
  }

  /** Asks for the scores and values of the selected head, where they are needed. */
  async fetch() {
    const { state, run } = this, { tile } = state;
    this.tell();
    if (state.depth < ROW || state.vectors || state.isBare) return;
    const isHere = () => this.run === run && state.tile === tile;
    try {
      const found = await this.engine.ask({ what: "scores", ...tile, of: run.id });
      if (isHere()) state.vectors = found;
    } catch {
      if (isHere()) state.vectors = { isMissing: true };
    }
    if (!isHere()) return;
    this.all();
    requestAnimationFrame(() => painted("stage row", run.id));
  }

  // Where one is

  go(depth) {
    if (this.state.page) return this.leave({ depth: DEPTHS[depth] });
    const to = Math.max(this.state.shallowest, Math.min(this.state.deepest, depth)), from = this.shown;
    if (this.state.isWriting && to === this.state.depth) return this.openWrite(-1);
    this.play(false);
    [this.state.write, this.written] = [-1, 0];
    if (to === this.state.depth && from === to) return;
    const isDive = [from, to].sort().join() === `${MODEL},${HEAD}` && (!this.state.seen || this.state.seen === PATHS), away = isDive ? 1 : Math.abs(to - from);
    this.isDiving = isDive;
    this.state.depth = to;
    this.left = this.state.look.slide?.text;
    this.bands();
    this.fetch();
    this.camera.move(away <= 1 ? DEEPER : STEPS * away, (u) => {
      this.shown = lerp(from, to, u);
      this.draw();
    }, () => {
      this.shown = to;
      this.isDiving = false;
      this.all();
      this.keep();
      painted("stage depth", to);
    });
  }

  /** Another view of the depth: of the model, of a head matrix or lines, of a row a stop. */
  see(at) {
    const { state } = this, { depth } = state;
    if (state.isWriting) return this.openWrite(at);
    if (depth === HEADS) return this.sort(at);
    const to = depth === MODEL ? WHOLES.indexOf(state.wholes[at]) : at;
    const from = { [MODEL]: state.seen, [HEAD]: this.view[1], [ROW]: state.stopShown ?? state.stopped, [NUMBER]: state.numberShown ?? state.number }[depth];
    state[{ [MODEL]: "whole", [HEAD]: "view", [ROW]: "stop", [NUMBER]: "number" }[depth]] = to;
    this.bands();
    this.fetch();
    this.camera.move(VIEW, (u) => {
      if (depth === MODEL) this.whole = [from, to, ease(u)];
      else if (depth === HEAD) this.view = [from, at, ease(u)];
      else if (depth === NUMBER) state.numberShown = lerp(from, at, ease(u));
      else state.stopShown = lerp(from, at, u);
      this.draw();
    }, () => {
      [state.stopShown, state.numberShown] = [null, null];
      this.all();
    });
    this.keep();
  }

  scale() {
    this.state.isScaled = !this.state.isScaled;
    if (this.state.depth === ROW && this.state.stopped < MIX - 1) this.see(MIX - 1); // where one sees it
    this.all();
    this.keep();
  }

  /** Another order of the heads, which fly from place to place once the server has said what it goes by. */
  async sort(order) {
    const { state, run } = this, before = state.order;
    state.order = order;
    this.bands();
    this.keep();
    if (order && !state.told[ORDERS[order]]) {
      const found = await this.engine.ask({ what: ORDERS[order], of: run.id }).catch(() => ({ isMissing: true }));
      if (this.run !== run) return;
      state.told[ORDERS[order]] = found.isMissing ? null : found;
      state.lacking = found.isMissing ? order : null;
    }
    if (state.order !== order) return;
    this.camera.move(VIEW, (u) => {
      this.orders = [before, order, u];
      this.draw();
    }, () => {
      this.orders = null;
      this.all();
      painted("stage order", order);
    });
  }

  // What the model writes

  /** Opens a view of it, over whatever is shown; −1 leads back. */
  openWrite(way) {
    const { state } = this, from = this.written;
    if (way >= 0 && !state.look.write) return;
    this.play(false);
    [state.write, state.at, state.other] = [way, null, null];
    const to = way < 0 ? 0 : 1;
    this.all();
    this.keep();
    this.camera.move(from === to ? 0 : VIEW, (u) => {
      this.written = lerp(from, to, ease(u));
      this.draw();
    }, () => this.all());
  }

  /** Begins or ends playing, word by word. */
  play(isOn) {
    clearInterval(this.playing);
    this.playing = null;
    if (!isOn) return;
    const { state } = this, next = () => {
      const found = foundOf(state);
      if (!state.isWriting || state.write || !found?.steps || state.at >= found.steps.length - 1) return this.play(false);
      state.at = state.at === null ? 0 : state.at + 1;
      this.selectedWord();
    };
    const found = foundOf(state);
    if (found?.steps && wordAt(state, found) >= found.steps.length - 1) state.at = null;
    next();
    this.playing = setInterval(next, PLAYED);
  }

  selectedWord() {
    this.all();
    this.parts.spoken.textContent = spokenWrite(this.state);
    requestAnimationFrame(() => painted("stage word", this.state.at));
  }

  /** Goes on from another token; "" from none. */
  branch(beginning) {
    this.play(false);
    [this.state.at, this.state.other] = [null, null];
    this.engine.choose({ beginning, selection: this.state.selection() });
  }

  choose(tile) {
    this.state.choose(tile);
    this.view = [0, this.state.view, 1];
    this.selected();
  }

  /** Selects the head of the chosen part; whether there is one. Its rows are the same, whichever words they
   * are named by. */
  toHead() {
    const { state } = this, found = addsOf(state)?.steps[state.step]?.head, row = state.row();
    if (!found) return false;
    state.step = null;
    state.choose(found);
    state.chooseRow(row);
    this.selected();
    return true;
  }

  selected() {
    this.isAnswering = false;
    this.left = this.state.look.slide?.text;
    this.all();
    this.keep();
    const { depth, seen, isAdding, step } = this.state;
    this.parts.spoken.textContent = isAdding && step !== null ? spokenStep(this.state) : depth === NUMBER ? (this.state.number === WHY ? this.parts.finding.textContent : spokenTerm(this.state)) : depth >= HEAD ? spokenCell(this.state) : seen && depth === MODEL ? (this.state.isPlaces && numberSaid(this.state)) || this.parts.finding.textContent : this.state.name();
  }

  /** What a lesson asks for. */
  answer(value) {
    this.engine.act({ what: "answer", value, selection: this.state.selection() });
    return true;
  }

  /** Answers by a word, if it is a choice. */
  answerBy(side, index) {
    const choice = this.state.look.lesson?.choices[side]?.[index];
    return Boolean(choice) && this.answer(choice);
  }

  touch(side, index, isSecond = false) {
    if (this.answerBy(side, index)) return;
    if (this.state.page) return this.go(HEAD);
    const { state } = this, part = state.part(), { token } = state;
    state.second = isSecond && token?.side === side && token.index !== index ? index : null;
    if (state.second !== null) return this.selected();
    state.token = token?.side === side && token.index === index ? null : { side, index };
    if (state.isPlaces) state.chooseSpot(side, index);
    if (side === part.query && index - state.shift() >= 0)
      state.chooseRow(Math.floor((index - state.shift()) / state.sides(part)[0].every));
    this.selected();
  }

  keep() {
    if (this.state.isSeen && !this.state.page && this.root.isConnected && this.camera.W) this.engine.keep(this.state.place());
  }

  // Drawing

  size(draws = true) {
    const { state } = this;
    if (!this.root.isConnected || !state.look?.palette) return;
    const style = getComputedStyle(this.root);
    state.ink = style.color;
    this.camera.size(["--s", "--m", "--l"].map((name) => parseFloat(style.getPropertyValue(name))), style.color, state.look.palette);
    if (draws && state.isSeen) this.all();
  }

  draw() {
    const { state, camera } = this, shown = Math.min(this.shown, state.deepest);
    if (!state.isSeen || state.page || !camera.W) return;
    camera.clear();
    if (state.isWriting && this.written >= 0.5) return drawWrite(state, camera, 2 * this.written - 1);
    if (this.isDiving && shown < HEAD) drawDive(state, camera, shown / HEAD);
    else if (shown < HEADS) drawModel(state, camera, shown, this.whole.slice(0, 2).every((at) => state.wholes.includes(WHOLES[at])) ? this.whole : [state.seen, state.seen, 1], this.pointed);
    else if (shown < HEAD) drawHeads(state, camera, shown - HEADS, this.orders ? betweenOrders(state, camera, this.orders) : headsPlace(state, camera), this.pointed);
    else this.drawHead(shown - HEAD);
    if (state.look.write && this.written) camera.fill({ x: -EDGE, y: -EDGE, w: camera.W + 2 * EDGE, h: camera.H + 2 * EDGE }, camera.colours.paper, Math.min(1, 2 * this.written), 0);
  }

  /** A guess at the covered row, {shares, weights, weigh(column, weight)}; null: there is none. */
  paint(guess) {
    this.state.guess = guess;
    this.draw();
  }

  drawHead(z) {
    const { state, camera, view: [from, to, u] } = this, near = (at) => (at === to ? u : at === from ? 1 - u : 0);
    drawHead(state, camera, z, (at) => near(at) || (at === 0 && state.isAlone && near(PYTORCH)));
    if (z <= 0 && near(PYTORCH) && !state.isAlone) drawPytorch(state, camera, near(PYTORCH));
  }

  all() {
    if (!this.state.isSeen) return;
    drawWords(this);
    drawModels(this);
    if (this.state.page) {
      drawRail(this);
      return drawFinding(this);
    }
    drawUnder(this);
    this.bands();
    this.draw();
    this.fetch();
  }

  /** Rail, finding, views, and what can be done in the picture. */
  bands() {
    drawRail(this);
    drawFinding(this);
    drawViews(this);
    drawTools(this);
    drawLegend(this);
  }
}
