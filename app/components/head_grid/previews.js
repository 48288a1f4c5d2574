// The mount that brings what the acts on the cards would give.

import { meeting } from "./meeting.js";

export default function ({ data, setTriggerValue }) {
  meeting.ask = (acts) => setTriggerValue("asked", acts);
  if (data?.found) meeting.grid?.strip?.setPreviews(data.found);
}
