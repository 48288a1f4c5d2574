// The mount of a generation, step by step.

import { Walk } from "./steps.js";

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const text = JSON.stringify(data);
  if (parentElement.shown === text) return; // what is there is right
  parentElement.shown = text;
  new Walk(parentElement, data, setTriggerValue);
}
