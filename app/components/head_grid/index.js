// The mount that brings the weights, as bytes, which travel again only when they change.

import { Grid } from "./grid.js";
import { meeting } from "./meeting.js";

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  meeting.grid ??= new Grid(true);
  meeting.grid.mount(parentElement);
  meeting.grid.report = (tile) => setTriggerValue("focus", tile);
  meeting.grid.act = (what) => setTriggerValue("act", what);
  meeting.grid.reportQuery = (index) => setTriggerValue("query", index);
  meeting.grid.setWeights(data instanceof ArrayBuffer ? new Uint8Array(data) : data);
  if (meeting.look) meeting.grid.setLook(meeting.look);
}
