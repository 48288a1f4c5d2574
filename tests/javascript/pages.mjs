// The pages that tests/javascript asks, as the app writes them: each is read once.

import { readFileSync } from "node:fs";
import { engineOf } from "./live_engine.js";

const engines = new Map();

function opened(file) {
  const text = readFileSync(file, "utf-8");
  const [data, weights] = ["data", "weights"].map((id) =>
    text.match(new RegExp(`id="${id}">(.*?)</script>`, "s"))[1]);
  return engineOf(JSON.parse(data), weights);
}

export function ask({ file, what, question }) {
  if (!engines.has(file)) engines.set(file, opened(file));
  return engines.get(file)[what](question);
}
