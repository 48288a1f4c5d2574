// A browser may refuse to keep anything: then lessons run, and a reload forgets their answers.

import { attempt } from "../shared/attempt.js";

const KEY = "headlight lessons";

export default function ({ data, setTriggerValue }) {
  const isTold = window.headlightStored === data.session;
  window.headlightStored = data.session;
  if (data.text !== null) return attempt(() => localStorage.setItem(KEY, data.text));
  const stored = isTold ? null : attempt(() => localStorage.getItem(KEY));
  if (stored) setTriggerValue("stored", stored);
}
