// The mount of the words and their lines.

import { WordLines } from "./lines.js";

export default function ({ parentElement, data }) {
  if (!data) return;
  const text = JSON.stringify(data);
  if (parentElement.shown === text) return; // what is there is right
  parentElement.shown = text;
  new WordLines(parentElement, data).point(null);
}
