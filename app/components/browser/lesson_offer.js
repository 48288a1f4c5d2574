// Whether the offer was answered is known to the browser alone, so that it costs the server no run.

import { attempt } from "../shared/attempt.js";

const KEY = "headlight lesson offered";

// Where nothing is kept it would come back for ever.
const answered = () => attempt(() => localStorage.getItem(KEY) !== null, true);

export default function ({ data, parentElement, setTriggerValue }) {
  const line = parentElement.querySelector("p");
  const [start, no] = [".start", ".no"].map((name) => line.querySelector(name));
  start.textContent = `${data.title}, ${data.minutes} minutes`;
  line.hidden = answered();
  const close = () => {
    attempt(() => localStorage.setItem(KEY, "yes"));
    line.hidden = true;
  };
  no.onclick = close;
  start.onclick = () => {
    close();
    setTriggerValue("start", true);
  };
}
