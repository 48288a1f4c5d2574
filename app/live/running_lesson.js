// The lesson in a page: what is asked and answered, what that covers, where its steps lead.

import { mark } from "./lesson.js";
import { drawStep, isOpen, leavesSome } from "./lesson_panel.js";

const OWN = "Choose ✎, type a short sentence of your own, and press Enter.";
const PAGES = { alignment: { view: "best" }, generate: { write: "one" } }; // of the app → places of the stage

export class RunningLesson {
  given = new Map(); // step and texts → {answer, shown, again}

  constructor(engine, box) {
    Object.assign(this, { engine, box, lesson: engine.data.lesson });
    engine.lesson = () => this.covers();
  }

  get step() {
    return this.lesson.steps[this.engine.state.step - 1];
  }

  get place() {
    const { step, source, target } = this.engine.state;
    return JSON.stringify([step, source, target]);
  }

  /** The question for the texts as they are, or its {problem}. */
  get question() {
    const { step, engine: { state, question } } = this;
    return step?.own && state.source === this.lesson.sentence ? { problem: OWN } : question;
  }

  answered() {
    const { question, given, place } = this;
    if (question?.done && !given.has(place)) given.set(place, { answer: true });
    return given.get(place) ?? null;
  }

  /** While a question is open, nothing can be changed, and it covers what would answer it. */
  covers() {
    const { step, question, engine: { state, model } } = this, open = Boolean(step && question) && isOpen(question, this.answered());
    const isCovering = open && question.kind !== "do", isChanged = state.changes || state.off.length;
    // A weight after a change is asked for before anything is changed.
    const veil = !isCovering ? [] : question.veil.map(({ what, ...where }) => ({ ...where, what: what === "changed row" ? isChanged && "row" : what }))
      .filter(({ what }) => what);
    const site = step?.head && model?.sites.find(({ kind }) => kind === step.head.kind);
    const side = site && model.sides.find(({ name }) => name === site.query_side).title;
    return { isOpen: isCovering, veil, points_at: Number.isInteger(question?.row) && side ? { side, index: question.row } : {} };
  }

  draw() {
    const { engine, question, lesson } = this, [kind, number, head] = (engine.place.cell ?? "").split(".");
    if (!engine.model || (engine.state.step && !question)) return;
    const focus = kind ? `${kind} ${number - 1} ${head - 1}` : Object.values(engine.focus).join(" ");
    const drawn = JSON.stringify([engine.state.step, question, this.answered(), focus]);
    if (this.drawn === drawn) return; // what is being typed stays
    this.drawn = drawn;
    const told = (answer) => {
      this.given.set(this.place, answer);
      engine.look();
    };
    drawStep(this.box, lesson, engine.state.step, question, this.answered(), focus, (name) => this.titleOf(name), {
      answer: (answer) => told({ answer, again: !this.answered() && leavesSome(question) && !mark(question, answer).right }),
      show: () => told(this.answered() ? { ...this.answered(), again: false } : { shown: true }), go: (to) => this.go(to) });
  }

  /** A head in words, by its name in a question. */
  titleOf(name) {
    const [kind, layer, at] = name.split(" "), { title } = this.engine.model.sites.find((site) => site.kind === kind);
    return `${title[0].toUpperCase()}${title.slice(1)}, layer ${Number(layer) + 1}, head ${Number(at) + 1}`;
  }

  /** Goes to a step, 0 to leave, and to its sentence, without changes, and its head. */
  go(number) {
    const { engine, lesson } = this, at = number === 1 ? engine.firstStep() : number, step = lesson.steps[at - 1];
    if (step) engine.lead({ depth: "head", ...PAGES[step.page] }, step.focus);
    engine.change({ step: at, ...(step && { source: lesson.sentence, target: "", changes: "", off: [], pad_to: 0 }) });
  }
}
