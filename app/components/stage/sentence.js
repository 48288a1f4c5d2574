// Another sentence, typed in place of the first text, and another model beside it.

import { element } from "../shared/dom.js";
import { leadsTo } from "../shared/lead.js";
import { button } from "./button.js";
import { toPage } from "./header.js";

export const pencilButton = (stage) => button("✎", () => typeSentence(stage), { class: "pencil", "aria-label": "Type another sentence", title: "Type another sentence" });

function typeSentence(stage) {
  const [box] = stage.boxes.values(), input = element("input", { class: "type", "aria-label": "Sentence", value: stage.state.look.line });
  const end = () => {
    stage.pencil.hidden = false;
    box.isWritten = false;
    stage.all();
    stage.pencil.focus();
  };
  [box.isWritten, box.buttons] = [true, null];
  const compare = button("compare", () => {
    if (input.value.trim() && input.value !== stage.state.look.line) stage.engine.choose({ other: input.value, selection: stage.state.isSeen ? stage.state.selection() : null });
    end();
  }, { class: "tokens", title: "Keep the sentence, and see what this one does otherwise" });
  box.replaceChildren(input, ...(stage.engine.hasPages === false ? [] : [compare, leadsTo(element("a", { class: "tokens" }, "its tokens"), () => toPage(stage, "tokenizer"), true)]));
  stage.pencil.hidden = true;
  input.focus();
  input.select();
  input.onkeydown = (event) => {
    if (event.key === "Escape" || hearSentence(stage, event, input)) end();
  };
}

/** Enter takes a typed sentence, if it is another one. */
export function hearSentence(stage, event, { value }) {
  event.stopPropagation();
  if (event.key !== "Enter" || event.isComposing) return false;
  event.preventDefault(); // else it presses the pencil, which has the focus next
  const selection = stage.state.isSeen ? stage.state.selection() : null;
  if (value.trim() && value !== stage.state.look.line) stage.engine.choose({ line: value, selection });
  return true;
}

export function drawModels(stage) {
  const { models, model } = stage.state.look, listed = JSON.stringify(models);
  if (stage.model.listed !== listed) stage.model.replaceChildren(...models.map((name) => element("option", {}, name)));
  stage.model.listed = listed;
  stage.model.value = model;
}

export function modelMenu(stage) {
  const menu = element("select", { class: "model", "aria-label": "Model" });
  menu.onchange = () => stage.engine.choose({ model: menu.value });
  return menu;
}
