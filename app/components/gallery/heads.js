// The mount that brings what is said of the heads; see head_grid/look.js.

import { meeting } from "../head_grid/meeting.js";

export default function ({ data }) {
  meeting.heads = data;
  meeting.gallery?.setHeads(data);
}
