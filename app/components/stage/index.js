// The one large script. It comes without data, so that Streamlit (1.67), which sends a component's script
// again with every change of its data, never does.

import { StreamlitEngine } from "./engine.js";
import { meeting } from "./meeting.js";
import { Stage } from "./stage.js";

export default function ({ parentElement, setTriggerValue }) {
  meeting.mounts += 1;
  meeting.engine ??= new StreamlitEngine();
  meeting.engine.send = (name, value) => setTriggerValue(name, value);
  meeting.stage ??= new Stage(meeting.engine);
  if (meeting.stage.root.parentNode === parentElement) return;
  meeting.places += 1;
  parentElement.append(meeting.stage.root);
  meeting.stage.size();
}
