// The step of a lesson in the panel: its text, its question, what was answered, and the way on.

import { element } from "../components/shared/dom.js";
import { quoted } from "../components/shared/names.js";
import { percent } from "../components/shared/numbers.js";
import { mark } from "./lesson.js";

/** Markdown of a lesson as nodes: paragraphs, **bold**, *italics*, `code`; placeholders are filled with
 * text. */
function formatted(markdown, values) {
  const filled = (text) => text.replace(/\{([^{}]+)\}/g, (whole, name) => values[name] ?? whole);
  const tags = [["**", "b"], ["*", "i"], ["`", "code"]];
  const inline = (text) => text.split(/(\*\*.+?\*\*|\*.+?\*|`.+?`)/s).map((piece) => {
    const [sign, tag] = tags.find(([s]) => piece.length > 2 * s.length && piece.startsWith(s)) ?? [];
    return tag ? element(tag, {}, ...inline(piece.slice(sign.length, -sign.length))) : filled(piece);
  });
  return markdown.split(/\n{2,}/).filter(Boolean).map((text) => element("p", {}, ...inline(text)));
}

const button = (text, onclick, attributes = {}) => {
  const box = element("button", { type: "button", ...attributes }, text);
  box.onclick = onclick;
  return box;
};

/** Whether a question still waits for an answer. */
export const isOpen = (question, given) => Boolean(question && !question.problem &&
  question.kind !== "read" && (!given || given.again));

/** Whether a wrong answer leaves something to try: it is then asked once more. */
export const leavesSome = ({ kind, choices }) => ["number", "find"].includes(kind) || choices?.length > 2;

/** Draws step `number` of `lesson`. given: {answer, shown, again}, `again` after a first wrong
 * answer, or null. focus:
 * the name of the selected head, such as “cross 0 1”; titleOf: a name in words. tell: answer(answer), show() for Show me, go(number), 0 to leave. */
export function drawStep(root, lesson, number, question, given, focus, titleOf, tell) {
  if (!number) return root.replaceChildren(button(`Start the lesson: ${lesson.title}`, () => tell.go(1)));
  const carried = lesson.steps.map((step, i) => ({ ...step, number: i + 1 })).filter((step) => step.carried);
  const at = carried.findIndex((step) => step.number === number);
  const step = carried[at];
  const nodes = [
    element("p", { class: "caption" }, element("i", {}, lesson.title), ` · step ${at + 1} of ${carried.length}`),
    element("h2", {}, step.title),
  ];
  const values = { ...lesson.common, ...question.given };
  const isLast = at === carried.length - 1;
  const open = isOpen(question, given);
  const isOver = isLast && !open && !question.problem;
  if (question.problem) nodes.push(element("p", { role: "status" }, question.problem));
  else nodes.push(...formatted(step.text, values));
  if (open) nodes.push(...asking(step, question, given, values, focus, titleOf, tell));
  if (given && !open) nodes.push(...feedback(step, question, given, values, titleOf));
  if (isOver)
    for (const [name, text] of [["Remember.", lesson.remember], ["But.", lesson.limit]])
      if (text) nodes.push(element("p", {}, element("b", {}, `${name} `)), ...formatted(text, values));
  const leftOut = lesson.steps.filter((other) => !other.carried).map(({ title }) => title);
  if (isLast && leftOut.length)
    nodes.push(element("p", { class: "caption" }, `Only in the app: ${leftOut.join(", ")}.`));
  nodes.push(element("div", { class: "ways" },
    ...(at ? [button("Back", () => tell.go(carried[at - 1].number))] : []),
    ...(isLast ? [] : [button("Next", () => tell.go(carried[at + 1].number))]),
    button(isOver ? "Finish" : "Leave", () => tell.go(0))));
  root.replaceChildren(...nodes);
}

/** What one answers with; `tried`: a first wrong answer, or null. */
function asking(step, question, tried, values, focus, titleOf, tell) {
  const nodes = [];
  if (tried)
    nodes.push(element("p", { role: "status" }, `${said(question, tried.answer)} Try once more.`),
      ...formatted(step.hint ?? "", values));
  if (question.kind === "choose")
    nodes.push(element("div", { class: "choices" }, ...question.choices
      .filter((choice) => choice !== tried?.answer)
      .map((choice) => button(choice, () => tell.answer(choice)))));
  if (question.kind === "number") {
    const box = element("input", { "aria-label": "Your answer", autocomplete: "off" }), wrong = element("p", { role: "alert" });
    const answer = () => { // no form: a sandbox may submit none
      try {
        mark(question, box.value);
        tell.answer(box.value);
      } catch (error) {
        wrong.textContent = error.message;
      }
    };
    box.onkeydown = ({ key, isComposing }) => void (key === "Enter" && !isComposing && answer());
    nodes.push(element("div", { class: "answer" }, box, button("Answer", answer)), wrong);
  }
  if (question.kind === "find") nodes.push(button(`Answer: ${titleOf(focus)}`, () => tell.answer(focus)));
  if (question.kind === "do") nodes.push(element("p", { class: "caption" }, "Waiting for your change."));
  if (step.hint && !tried) nodes.push(element("details", {}, element("summary", {}, "Hint"), ...formatted(step.hint, values)));
  return [...nodes, button("Show me", tell.show)];
}

const said = ({ kind }, answer) => (kind === "find" ? "That is not it." : ended(`You said ${quoted(answer)[0]}`));
const ended = (text) => (/[.?!]$/.test(text) ? text : `${text}.`);

/** Whether the answer was right, why not, and the reveal. */
function feedback(step, question, { answer, shown }, values, titleOf) {
  const everything = { ...values, ...question.shown };
  const right = { choose: () => quoted(question.answer)[0], number: () => percent(question.answer),
    find: () => titleOf(question.answer[0]) }[question.kind]?.();
  const answers = right ? ended(`The answer is ${right}`) : "";
  const reveal = formatted(step.reveal, everything);
  if (shown) return [element("p", { role: "status" }, `Shown, so it does not count. ${answers}`), ...reveal];
  if (question.kind === "do") return [element("p", { role: "status" }, "Done."), ...reveal];
  const { right: isRight, sentence, misconception } = mark(question, answer);
  if (isRight) return [element("p", { role: "status" }, sentence), ...reveal];
  const why = misconception ? step.sentences[misconception] : sentence === "No." ? "" : sentence;
  return [element("p", { role: "status" }, `${said(question, answer)} ${answers}`), ...formatted(why, everything), ...reveal];
}
