// The mount of the predictions and the tools, which stand in the panel.

import { meeting } from "./meeting.js";

export default function ({ parentElement }) {
  meeting.answers = parentElement;
  meeting.grid?.placeAnswers(parentElement);
}
