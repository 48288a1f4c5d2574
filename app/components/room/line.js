// One connection a page, and none while the page is hidden: a browser opens six to a server, and a
// teacher may have as many tabs. What comes is the present state, never a step of the way to it, so
// nothing is lost with a connection, nor while a laptop sleeps.
//
// A follower is led as by the browser's Back. That is one run for another page with other settings,
// in which the address wins over every widget.

import { idle, lead, whenIdle } from "../shared/lead.js";
import { keepOwnView, ownView } from "./own_view.js";

const AGAIN = 1000; // ms
const BEGINS = 100; // ms in which a run that was asked for begins
const REST = 300; // ms in which what a run has removed is gone from the page
const SETTLED = 300; // ms after which a place on the stage is told
const LOST = 3000; // ms after which a lost connection is reported
const OF_ROOM = ".st-key-room_line, .st-key-room_panel";
const ACTS = ["pointerdown", "keydown"];

class Room {
  constructor(code, { led = "", hasActed = false } = {}) {
    Object.assign(this, { code, led, hasActed, state: null, isAsked: false, waitsUntil: 0 });
    this.onVisible = () => (document.hidden ? this.close() : this.open());
    this.onAct = ({ isTrusted, target }) => {
      this.hasActed ||= isTrusted && !target.closest?.(OF_ROOM);
    };
    document.addEventListener("visibilitychange", this.onVisible);
    for (const act of ACTS) document.addEventListener(act, this.onAct, { capture: true });
  }

  end() {
    this.isOver = true;
    this.close();
    document.removeEventListener("visibilitychange", this.onVisible);
    for (const act of ACTS) document.removeEventListener(act, this.onAct, { capture: true });
  }

  draw({ following, mark, isTeacher, shown }, page) {
    const isOther = this.following !== following;
    if (this.following === false && following) this.led = "";
    Object.assign(this, { following, isTeacher, shown, drawn: mark, page, isAsked: false });
    if (isOther) this.close();
    this.open();
    this.settle();
  }

  open() {
    if (this.source || this.isOver || document.hidden) return;
    const source = new EventSource(`/room/${this.code}/events?following=${this.following}`);
    this.source = source;
    source.onmessage = ({ data }) => {
      this.reach();
      this.state = JSON.parse(data);
      this.settle();
    };
    source.addEventListener("end", () => {
      this.isOver = true;
      this.close();
      this.state = { mark: "ended" };
      setTimeout(() => this.settle(), REST); // whoever has ended it has drawn the page without it
    });
    source.onerror = () => {
      this.lost ??= setTimeout(() => this.page.say("Connection lost. It comes back by itself."), LOST);
      // After an answer that is none, such as a proxy's 502, a browser does not try again.
      if (source.readyState !== EventSource.CLOSED || this.source !== source) return;
      this.close();
      setTimeout(() => this.open(), AGAIN * (1 + Math.random()));
    };
  }

  reach() {
    clearTimeout(this.lost);
    this.lost = null;
    this.page.say("");
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  /** Numbers go straight to the screen: 60 answers are no 60 runs. */
  count() {
    for (const name of ["here", "following", "answers"])
      for (const place of document.querySelectorAll(`[data-room=${name}]`))
        if (this.state[name] !== undefined && place.textContent !== `${this.state[name]}`)
          place.textContent = this.state[name];
  }

  settle() {
    if (!this.state || this.isWaiting) return;
    this.count();
    if (!idle() || performance.now() < this.waitsUntil) {
      this.isWaiting = true;
      requestAnimationFrame(() => {
        this.isWaiting = false;
        this.settle();
      });
      return;
    }
    if (!this.page.isThere()) return this.end();
    const { view, mark } = this.state;
    if (!view) this.led = ""; // nobody is led any more
    if (!this.led && !this.hasActed && view === this.shown) this.led = view; // whoever has just come
    if (this.following && !this.isTeacher && view && view !== this.led) this.lead(view);
    else if (mark !== this.drawn && !this.isAsked) {
      this.isAsked = true;
      this.page.ask();
      this.waitForRun();
    }
  }

  lead(view) {
    const grid = window.headlight?.grid, { head } = this.state, { stage } = onStage();
    const isHere = this.led && !this.hasActed && rest(view) === rest(this.led);
    if (this.hasActed) this.keepOwn();
    Object.assign(this, { led: view, hasActed: false });
    if (isHere && head && grid?.frame?.isConnected) {
      const { cell, ...tile } = head;
      grid.follow(tile, cell);
    } else if (isHere && stage?.root.getClientRects().length) {
      history.replaceState(history.state, "", view);
      stage.follow({ isLink: true });
    } else lead(view, true);
    this.waitForRun();
  }

  /** A run that was asked for a moment ago may not have begun. */
  waitForRun() {
    this.waitsUntil = performance.now() + BEGINS;
  }

  /** What a student typed is theirs: it waits for them, sent or not. */
  keepOwn() {
    const address = new URL(location.href);
    const box = document.querySelector(".st-key-source textarea");
    if (box && box === document.activeElement) address.searchParams.set("source", box.value);
    keepOwnView(address.pathname + address.search);
  }
}

const onStage = () => (globalThis.headlightStage ??= { mounts: 0, places: 0 }); // as its meeting.js has it
const PLACE = ["depth", "cell", "whole", "heads", "view", "stop", "number", "write", "scaling"]; // on the stage

/** An address without what is selected in the picture. */
const rest = (address) => {
  const url = new URL(address, location);
  for (const name of ["kind", "layer", "head", "follow", "to", ...PLACE]) url.searchParams.delete(name);
  return url.pathname + url.search;
};

/** The view of before, in the room, but not led. */
const inRoom = (address, code) => {
  const url = new URL(address, location);
  url.searchParams.set("room", code);
  url.searchParams.set("alone", "true");
  return url.pathname + url.search;
};

export default function ({ data, parentElement, setTriggerValue }) {
  const before = window.headlightRoom, isSame = before?.code === data.code;
  if (!isSame || before.isOver) {
    before?.end();
    window.headlightRoom = new Room(data.code, isSame ? before : {});
  }
  const room = window.headlightRoom;
  const status = parentElement.querySelector("[role=status]");
  room.draw(data, {
    ask: () => setTriggerValue("changed", true),
    isThere: () => parentElement.isConnected,
    say: (text) => (status.textContent = text),
  });
  let timer = null;
  onStage().kept = data.hearsPlace ? (place) => {
    clearTimeout(timer);
    timer = setTimeout(() => setTriggerValue("place", { place, selection: onStage().stage.state.selection() }), SETTLED);
  } : null;
  const [own, code, dialog] = [".own", ".code", "dialog"].map((name) => parentElement.querySelector(name));
  own.hidden = data.isTeacher || data.following || !ownView();
  own.onclick = () => whenIdle(() => lead(inRoom(ownView(), data.code)));
  code.hidden = !data.invitation;
  code.onclick = () => {
    const { address, qr_code } = data.invitation;
    dialog.querySelector(".address").textContent = address;
    dialog.querySelector(".letters").textContent = data.code;
    dialog.querySelector("img").src = qr_code;
    dialog.showModal();
  };
  // Left; on another page another mount has taken over.
  return () => setTimeout(() => room.page.isThere() || room.end(), AGAIN);
}
