// The mount that brings what is said of the heads; see head_grid/look.js.

import { meeting } from "../head_grid/meeting.js";
import { places } from "../shared/places.js";

const enter = places();

export default function ({ data, parentElement }) {
  return enter(parentElement, () => {
    meeting.heads = data;
    meeting.gallery?.setHeads(data);
  });
}
