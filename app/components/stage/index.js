// The one large script. It comes without data, so that Streamlit (1.67), which sends a component's script
// again with every change of its data, never does.

import { StreamlitEngine } from "./engine.js";
import { meeting } from "./meeting.js";
import { Stage } from "./stage.js";

/** The picture ends above what stands at the foot of the page. */
let foot = null;

function watchFoot() {
  const found = document.querySelector(".st-key-lesson_region"), { style } = document.documentElement;
  foot ??= new ResizeObserver(([{ target }]) => style.setProperty("--hl-lesson", `${target.offsetHeight}px`));
  if (found === foot.of) return;
  foot.disconnect();
  foot.of = found;
  if (found) foot.observe(found);
  else style.removeProperty("--hl-lesson");
}

let isOpen = false;

function enterDrawer() {
  const close = document.querySelector(".st-key-close_drawer button");
  if (close) close.focus();
  else if (isOpen) requestAnimationFrame(enterDrawer);
}

/** The drawer gets the focus, and gives it back to what opened it. */
function watchDrawer({ look }) {
  if (!look || look.drawer === isOpen) return;
  isOpen = look.drawer;
  if (isOpen) enterDrawer();
  else if (document.activeElement?.matches("body, .st-key-drawer *")) meeting.stage.parts.more.focus();
}

export default function ({ parentElement, setTriggerValue }) {
  meeting.mounts += 1;
  meeting.engine ??= new StreamlitEngine();
  meeting.engine.send = (name, value) => setTriggerValue(name, value);
  if (!meeting.stage) {
    meeting.stage = new Stage(meeting.engine);
    meeting.stage.paint(meeting.guess ?? null);
    meeting.engine.heard(watchDrawer);
    meeting.engine.heard(() => requestAnimationFrame(watchFoot));
  }
  if (meeting.stage.root.parentNode === parentElement) return;
  meeting.places += 1;
  parentElement.append(meeting.stage.root);
  meeting.stage.size();
}
