// The mount of the words and their lines.

import { WordLines } from "./lines.js";

export default function ({ parentElement, data, setTriggerValue }) {
  if (!data) return;
  const text = JSON.stringify(data);
  if (parentElement.shown === text) return; // what is there is right
  parentElement.shown = text;
  const lines = new WordLines(parentElement, data);
  if (data.tells) lines.onPin = (word) => setTriggerValue("pinned", { word });
  lines.point(null);
}
