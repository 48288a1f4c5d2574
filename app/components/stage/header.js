// The header, which other pages have too: depths, one sentence of what is seen, and views.

import { fromRoot } from "../shared/address.js";
import { element } from "../shared/dom.js";
import { addressed, leadsTo } from "../shared/lead.js";
import { button } from "./button.js";
import { findingOf } from "./finding.js";
import { DEPTHS, HEAD, HEADS, MODEL, NUMBER, PATHS, ROW, VIEWS, WHOLES, WORD } from "./state.js";
import { instead, writeFinding, writeNames } from "./write.js";

export const HERE = ""; // path of its own page
const LONG_TEXT = [170, 90]; // letters of a question or a text from which on they are smaller, on a phone
const NAMED = 2; // acts in the finding; further ones are counted
const VIEW_NAMES = { maps: "Maps", after: "After each layer", needs: "Needs", paths: "Paths", positions: "Positions", input: "+ word", layer: "By layer", habit: "By habit", effect: "By effect", matrix: "Matrix", lines: "Lines", best: "Best heads", pytorch: "PyTorch", order: "In order", largest: "Largest first", why: "Why" };

/** Parts of a sentence of the server's as nodes. */
const nodes = (parts) => parts.map((part) => (Array.isArray(part) && part[1] ? element(part[1], {}, part[0]) : [part].flat()[0]));

export function toPage(stage, path, picture = null) {
  const query = new URLSearchParams(location.search);
  if (picture) query.set("picture", picture);
  else query.delete("picture");
  return `${fromRoot(path, stage.state.page?.path ?? HERE)}?${query}`;
}

/** In a frame of another page one link, which leads out of it, takes the place of all others. */
export const unframedLink = () => addressed(element("a", { target: "_blank", rel: "noopener" }, "Open in Headlight"), () => {
  const address = new URL(location.href);
  address.searchParams.delete("embed");
  return address.href;
});

/** On another page there is the header alone. */
export function showPage(stage) {
  const { page } = stage.state;
  stage.root.toggleAttribute("data-page", Boolean(page));
  for (const [link, path] of [[stage.parts.learn, "learn"], [stage.parts.share, "take-away"]]) {
    link.href = toPage(stage, path);
    if (page?.path === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** What another page says, and its views. */
export function drawPage(stage, acts = []) {
  const { state: { page, said }, parts: { finding, views } } = stage;
  const paragraphs = said?.page === page.path ? said.finding : [];
  if (!drawSlide(stage, acts))
    finding.replaceChildren(...acts.flatMap((act) => [act, " "]),
      ...(paragraphs.length ? paragraphs.map((parts) => element("span", { class: "paragraph" }, ...nodes(parts))) : [page.title]));
  const drawn = JSON.stringify(page.views);
  if (views.drawn === drawn) return; // a link that is being clicked stays
  views.drawn = drawn;
  const ofHead = (page.ofHead && stage.state.isSeen ? stage.state.views : []).map((view) => button(VIEW_NAMES[view], () => stage.leave({ depth: DEPTHS[HEAD], view })));
  views.replaceChildren(...ofHead, ...page.views.map(([name, path, picture, isShown]) => leadsTo(
    element("a", isShown ? { "aria-current": "page" } : {}, name), () => toPage(stage, path, picture), picture === null)));
}

export function drawRail(stage) {
  const { state, parts: { rail } } = stage, { lesson } = state.look;
  if (lesson && (!state.isSeen || state.page || DEPTHS[state.depth] === lesson.depth)) {
    const dots = Array.from({ length: lesson.steps }, (_, at) => element("i", { class: "dot", ...(at + 1 === lesson.step ? { "data-on": "" } : at + 1 < lesson.step ? { "data-done": "" } : {}) }));
    rail.replaceChildren(element("b", {}, lesson.title), element("span", { role: "img", "aria-label": `step ${lesson.step} of ${lesson.steps}` }, ...dots));
    return;
  }
  const names = state.isSeen ? state.places() : ["Model", "Heads", "Head", "Row", "Number"];
  const hadFocus = rail.contains(rail.getRootNode().activeElement);
  rail.replaceChildren(...names.flatMap((name, depth) => {
    if (depth < state.shallowest) return [];
    const isHere = state.page ? state.page.ofHead && depth === HEAD : depth === state.depth;
    const place = button(name, () => stage.go(depth), isHere ? { "aria-current": "true" } : { tabindex: "-1" });
    return depth > state.shallowest ? [element("i", { "aria-hidden": "true" }, "›"), place] : [place];
  }));
  if (state.page) rail.querySelector("button").tabIndex = 0;
  if (hadFocus) rail.querySelector("[aria-current]")?.focus();
}

/** What a class or a lesson says in the place of a finding, after some acts; whether it says anything. */
export function drawSlide(stage, acts = []) {
  const { look: { slide } } = stage.state, { finding } = stage.parts, isSaid = Boolean(slide && (slide.stays || stage.left !== slide.text));
  finding.classList.toggle("long", isSaid && slide.text.length > LONG_TEXT[Number(stage.camera.isNarrow)]);
  if (isSaid)
    finding.replaceChildren(...acts.flatMap((act) => [act, " "]), ...slide.paragraphs.map((parts) => element("span", { class: "paragraph" }, ...nodes(parts))));
  return isSaid;
}

/** The name of a head, which leads to a cell of it. */
function wayTo(stage, [name, , { place, row, column }]) {
  const { state } = stage;
  return button(name, () => {
    stage.choose(place);
    state.token = null;
    state.chooseRow(row);
    state.key = column;
    if (state.depth === HEAD) stage.selected();
    else stage.go(HEAD);
  }, { class: "done", translate: "no" });
}

export function drawFinding(stage) {
  const { state, parts: { finding, canvas } } = stage, { done } = state.look;
  const actOf = (text, undoes) => {
    if (!undoes) return element("span", { class: "done" }, text);
    return element("span", { class: "done" }, text, " ", button("×", undoes, { "aria-label": `Undo: ${text}` }));
  };
  const acts = done.slice(0, NAMED).map(({ text, undo }) => actOf(text, undo && (() => stage.engine.act({ ...undo, selection: state.selection() }))));
  const branched = state.write === 0 && state.look.write?.beginning ? instead(state) : "";
  if (branched) acts.push(actOf(branched, () => stage.branch("")));
  if (done.length > NAMED) acts.push(element("span", { class: "done" }, `and ${done.length - NAMED} more`));
  const { preview } = state;
  if (state.page) return drawPage(stage, acts);
  if (drawSlide(stage, state.look.lesson ? acts : [])) return;
  if (preview) {
    finding.replaceChildren(...nodes(preview.now?.length ? preview.rest : preview.said ?? [preview.why]));
    return;
  }
  const isOfPaths = state.depth === MODEL && state.seen === PATHS;
  const isSaid = stage.isAnswering && !isOfPaths && !state.isBeside && !state.isWriting && state.depth < ROW && state.mix > 0.5 && state.effect?.said.length;
  const parts = isSaid ? nodes(state.effect.said)
    : (state.isWriting ? writeFinding : findingOf)(state).map((part) => (!Array.isArray(part) ? part : part[1] === "go" ? wayTo(stage, part) : element("b", { class: part[1], translate: "no" }, part[0])));
  finding.replaceChildren(...acts.flatMap((act) => [act, " "]), ...parts);
  canvas.setAttribute("aria-label", `${state.isWriting ? "" : `${state.name()}. `}${finding.textContent}`);
}

export function drawViews(stage) {
  const { state, parts: { views } } = stage;
  const root = `÷ √${state.vectors?.v?.columns || "d"}`, isRow = state.depth === ROW && !state.isBare && !state.isWriting;
  const { wholes } = state, named = { [MODEL]: wholes.length > 1 ? wholes : [], [HEADS]: state.orders, [HEAD]: state.views, [NUMBER]: state.numbers }[state.depth] ?? [];
  const word = state.stops[WORD] ? [`→ ${state.run.answers.rows[state.writing()][0][0].trim() || "␣"}`] : [];
  const names = state.isWriting ? writeNames(state) : isRow ? ["q · k", root, "softmax", "mix", ...word] : named.map((view) => VIEW_NAMES[view]);
  const now = state.isWriting ? state.write : [wholes.indexOf(WHOLES[state.seen]), state.order, state.views.indexOf(VIEWS[state.view]), state.stopped, state.number][state.depth];
  const hadFocus = views.contains(views.getRootNode().activeElement);
  views.drawn = null;
  views.replaceChildren(...names.map((name, at) => button(name, () => stage.see(state.depth === HEAD && !state.isWriting ? VIEWS.indexOf(named[at]) : at),
    { "aria-pressed": String(at === now), tabindex: at === now ? "0" : "-1" })));
  if (hadFocus) views.children[now]?.focus();
  if (state.depth === HEAD && !state.isWriting && !state.isBare && !state.look.veil?.length && !stage.isFramed && stage.engine.hasPages !== false)
    views.append(leadsTo(element("a", {}, "All steps"), () => toPage(stage, "inside"), true));
  if (isRow && state.stopped && !state.isAdding)
    views.append(button(state.isScaled ? `without ${root}` : `with ${root}`, () => stage.scale(), { class: "scaling" }, " ", element("kbd", {}, "D")));
}
