// The seam between the stage and what computes. An engine has five calls:
//   heard(listener)   from now on `listener({ run } | { look } | { said })`: bytes of packing.py; what is
//                     done, covered, selected; what the changes did to the output
//   choose(settings)  a sentence, a model, Present: an answer comes by `heard`
//   act(what)         an edit as edits.edit takes it, or what an earlier one is undone by; likewise
//   ask(what)         a promise of numbers that the weights do not hold
//   keep(place)       where one is (depth, head, row), for the address; sends nothing
// The drawing modules know nothing else: no Streamlit, no location, no storage.

import { attempt } from "../shared/attempt.js";
import { idle } from "../shared/lead.js";

const PATIENCE = 2000; // ms in which an idle server answers
const TRIES = 3;
const APART = 60; // ms

/** The engine behind Streamlit's mounts, whose scripts meet here. */
export class StreamlitEngine {
  listeners = [];
  latest = {};
  waiting = new Map(); // what was asked → { promise, resolve, reject, tries, timer }
  answers = new Map();
  send = () => {};
  acted = -Infinity; // when something was done last
  questioned = -Infinity; // or asked
  line = null; // to the server, once the mount that answers is there

  heard(listener) {
    this.listeners.push(listener);
    for (const [name, value] of Object.entries(this.latest)) listener({ [name]: value });
  }

  tell(name, value) {
    if (name === "run") this.forget();
    this.latest[name] = value;
    this.listeners.forEach((listener) => listener({ [name]: value }));
  }

  /** What was asked of a run before is not wanted any more. */
  forget() {
    this.answers.clear();
    for (const { timer, reject } of this.waiting.values()) {
      clearTimeout(timer);
      reject(new Error("another run"));
    }
    this.waiting.clear();
  }

  choose(settings) {
    this.change("choose", settings);
  }

  act(what) {
    this.change("act", what);
  }

  change(name, value) {
    this.acted = performance.now();
    this.send(name, value);
  }

  ask(what) {
    const key = JSON.stringify(what);
    if (this.answers.has(key)) return Promise.resolve(this.answers.get(key));
    if (!this.waiting.has(key)) {
      const { promise, resolve, reject } = Promise.withResolvers();
      this.waiting.set(key, { promise, resolve, reject, tries: 0 });
      this.askAll();
      this.watch(key);
    }
    return this.waiting.get(key).promise;
  }

  /** All that waits in one message, and in none that an act is in: Streamlit (1.67) runs a region alone for
   * both. */
  askAll() {
    clearTimeout(this.asking);
    this.asking = setTimeout(() => {
      if (this.apart() > 0) return this.askAll();
      this.questioned = performance.now();
      if (this.waiting.size) this.line?.([...this.waiting.keys()].map((key) => JSON.parse(key)));
    }, Math.max(0, this.apart()));
  }

  /** ms until a message may follow the one before. */
  apart() {
    return Math.max(this.acted, this.questioned) + APART - performance.now();
  }

  /** A question that was lost with its connection is asked anew; at last its promise fails. */
  watch(key) {
    const asked = this.waiting.get(key);
    asked.timer = setTimeout(() => {
      if (!idle()) return this.watch(key); // no connection, or a run under way
      if (++asked.tries === TRIES) {
        this.waiting.delete(key);
        return asked.reject(new Error("no answer"));
      }
      this.askAll();
      this.watch(key);
    }, PATIENCE);
  }

  /** The mount that answers comes after the first run, and anew from a server that has started anew. */
  answersBy(line, session) {
    this.line = line;
    if (session !== this.session) this.askAll();
    this.session = session;
  }

  answer(what, found) {
    const key = JSON.stringify(what), asked = this.waiting.get(key);
    if (!found.isMissing) this.answers.set(key, found); // a lesson that covers it may end
    if (!asked) return;
    clearTimeout(asked.timer);
    this.waiting.delete(key);
    asked.resolve(found);
  }

  keep(place) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(place)) {
      if (value === null) query.delete(name);
      else query.set(name, value);
    }
    attempt(() => history.replaceState(history.state, "", `${location.pathname}?${query}`));
    globalThis.headlightStage?.kept?.(place); // in a room
  }

  /** Where the address leads to. */
  asked() {
    return Object.fromEntries(new URLSearchParams(location.search));
  }
}
