// The live page: the stage with the engine of this file, a panel for a lesson and what else can be chosen, and
// what a page around hears.

import { element } from "../components/shared/dom.js";
import { Stage } from "../components/stage/stage.js";
import { hearParent, isEmbedded, tell } from "./embed.js";
import { LiveEngine } from "./engine.js";
import { RunningLesson } from "./running_lesson.js";

const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const data = JSON.parse(byId("data").textContent);
const hasAddress = location.protocol !== "about:"; // of srcdoc, which nobody else can open

// The worker

const worker = new Worker(URL.createObjectURL(new Blob([byId("worker").textContent], { type: "text/javascript" })));
const asked = new Map(); // id → who hears the answer
let newest = 0;

function ask(question, hear) {
  asked.set(++newest, hear);
  worker.postMessage({ ...question, id: newest });
}

worker.onmessage = ({ data: answer }) => {
  const hear = asked.get(answer.id);
  if (answer.done) asked.delete(answer.id);
  hear?.(answer);
};

// The stage

const { checkpoint, tokenizer, classes, continuation, alignment, characters, lesson } = data;
const engine = new LiveEngine(data, ask, { what: "load", weights: byId("weights").textContent, checkpoint, tokenizer, classes,
  continuation, alignment, characters, lesson });
const running = lesson ? new RunningLesson(engine, byId("lesson")) : null;
const stage = new Stage(engine);
document.querySelector("main").prepend(stage.root);
root.classList.toggle("embedded", isEmbedded);

// What the stage does not have: the panel

const FIELDS = ["target", "changes", "pad_to", "beam"];

/** Fields as the settings are; one that is being typed in stays. */
function refresh() {
  const { state, error, drawer, model } = engine;
  byId("error").textContent = error;
  byId("whole").href = location.pathname + engine.address;
  byId("more").hidden = !drawer;
  byId("lesson").hidden = !lesson || !model;
  byId("panel").hidden = !drawer && byId("lesson").hidden;
  for (const name of FIELDS) if (document.activeElement !== byId(name)) byId(name).value = state[name];
  for (const box of byId("masks").querySelectorAll("[type=checkbox]")) box.checked = !state.off.includes(box.name);
  const isOpen = engine.lesson().isOpen; // a question, whose answer a change could tell
  for (const field of byId("more").querySelectorAll("input, select, #reset")) field.disabled = isOpen;
  if (model && !byId("masks").dataset.model) offer(model);
  running?.draw();
  tellParent();
}

/** What this model can be asked. */
function offer({ sites, sides }) {
  const switches = new Set(sites.flatMap(({ masks }) => masks));
  byId("masks").dataset.model = data.name;
  for (const name of Object.keys(data.masks).filter((mask) => switches.has(mask))) {
    const [label, help] = data.masks[name];
    byId("pad_to").parentElement.before(element("label", { title: help }, element("input", { type: "checkbox", name, checked: "" }), ` ${label}`));
  }
  byId("target").parentElement.hidden = byId("decoding").hidden = !sides.at(-1).writes;
}

/** The length to pad to. Stepping up from no padding jumps to the shortest length that pads; stepping
 * down returns. */
function padding(before, now) {
  const shortest = Math.min(...Object.values(engine.run?.labels ?? {}).map((labels) => labels.filter((label) => label !== "<pad>").length));
  if (Math.abs(now - before) !== 1 || now > shortest) return now;
  return now > before ? shortest + 1 : 0;
}

for (const name of ["target", "changes"]) byId(name).onchange = ({ target }) => engine.change({ [name]: target.value });
byId("examples").append(element("option", { value: "" }, "Examples"), ...data.examples.map((text) => element("option", {}, text)));
byId("examples").parentElement.hidden = data.examples.length < 2;
byId("examples").onchange = ({ target }) => {
  engine.change({ source: target.value, target: "", beginning: "" });
  target.selectedIndex = 0;
};
byId("pad_to").max = String(checkpoint.sizes.max_length);
byId("pad_to").onchange = ({ target }) => {
  const length = padding(engine.state.pad_to, Math.max(0, Math.floor(Number(target.value)) || 0));
  engine.change({ pad_to: length });
  target.value = length;
};
byId("beam").onchange = ({ target }) => engine.change({ beam: Number(target.value) });
byId("masks").onchange = ({ target: { name, checked } }) =>
  name && engine.change({ off: checked ? engine.state.off.filter((other) => other !== name) : [...engine.state.off, name] });
byId("reset").onclick = () => engine.change({ off: [], pad_to: 0, changes: "", target: "" });
byId("theme").onclick = () => {
  const isDark = root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  root.classList.toggle("dark", !isDark);
  root.classList.toggle("light", isDark);
};
byId("link").hidden = !hasAddress;
byId("link").onclick = async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    byId("link").textContent = "Copied";
  } catch { // from file:// a browser may refuse
    prompt("Copy this link:", location.href);
  }
};
byId("close").onclick = () => engine.choose({ drawer: false });
byId("panel").addEventListener("keydown", ({ key }) => key === "Escape" && engine.choose({ drawer: false }));

// The page around

const finding = stage.root.querySelector(".finding");

/** What the page around a frame is told; layers and heads from 1, as in the address. */
function tellParent() {
  const [kind, layer, head] = (engine.place.cell ?? "").split(".");
  if (kind || engine.error) tell({ sentence: engine.state.source, output: engine.output ?? "", kind, layer: Number(layer), head: Number(head),
    finding: finding.textContent, error: engine.error });
}

/** What the page around a frame asks for. */
hearParent(({ sentence, kind, layer, head }) => {
  const isThere = engine.model?.sites.some((site) => site.kind === kind && site.layer === layer - 1 && head >= 1 && head <= site.n_heads);
  if (isThere) engine.lead({ depth: "head" }, { kind, layer: layer - 1, head: head - 1 });
  if (typeof sentence === "string" && sentence !== engine.state.source) engine.change({ source: sentence, target: "", beginning: "" });
  else if (isThere) engine.look();
});
new MutationObserver(tellParent).observe(finding, { childList: true });
engine.onNews = refresh;
refresh();
