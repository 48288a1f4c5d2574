// The mount that brings how to look at the weights. It sends its script along with its data, so
// the small one has a small script.

import { meeting } from "./meeting.js";

export default function ({ data }) {
  meeting.look = data;
  meeting.grid?.setLook(data);
}
