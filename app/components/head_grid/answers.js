// The mount of the predictions and the tools, which stand in the panel.

import { places } from "../shared/places.js";
import { meeting } from "./meeting.js";

const enter = places();

export default function ({ parentElement }) {
  return enter(parentElement, () => {
    meeting.answers = parentElement;
    meeting.grid?.placeAnswers(parentElement);
  });
}
