// The mount that brings how to look at the weights. It sends its script along with its data, so
// the small one has a small script.

import { places } from "../shared/places.js";
import { meeting } from "./meeting.js";

const enter = places();

export default function ({ data, parentElement }) {
  return enter(parentElement, () => {
    meeting.look = data;
    meeting.grid?.setLook(data);
  });
}
