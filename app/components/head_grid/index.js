// The mount that brings the weights, as bytes, which travel again only when they change.

import { places } from "../shared/places.js";
import { Cards } from "./cards.js";
import { Grid } from "./grid.js";
import { meeting } from "./meeting.js";

const enter = places();

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  return enter(parentElement, () => {
    meeting.grid ??= new Grid(true);
    meeting.grid.strip ??= new Cards(meeting.grid, (acts) => meeting.ask?.(acts));
    meeting.grid.mount(parentElement);
    meeting.grid.report = (tile) => setTriggerValue("focus", tile);
    meeting.grid.act = (what) => {
      // With the head that is selected by now: two messages in a row may come as one.
      const { look, count } = meeting.grid;
      setTriggerValue("act", { what, focus: { ...look.focus, count } });
    };
    meeting.grid.reportCell = (cell) => setTriggerValue("cell", cell);
    meeting.grid.setWeights(data instanceof ArrayBuffer ? new Uint8Array(data) : data);
    if (meeting.look) meeting.grid.setLook(meeting.look);
  });
}
