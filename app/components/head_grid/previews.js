// The mount that brings what the acts on the cards would give.

import { places } from "../shared/places.js";
import { meeting } from "./meeting.js";

const enter = places();

export default function ({ data, parentElement, setTriggerValue }) {
  return enter(parentElement, () => {
    meeting.ask = (acts) => setTriggerValue("asked", acts);
    if (data?.found) meeting.grid?.strip?.setPreviews(data.found);
  });
}
