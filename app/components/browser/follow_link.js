// Not before the run has ended: Streamlit would join both, and the address would not win.

import { fromRoot } from "../shared/address.js";
import { lead } from "../shared/lead.js";

const PATIENCE = 10_000; // ms
const SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]';

export default function ({ data }) {
  const { address, here, count } = data;
  if (window.headlightFollowed === count) return;
  window.headlightFollowed = count;
  const until = performance.now() + PATIENCE;
  const follow = () => {
    if (document.querySelector(SETTLED)) lead(fromRoot(address, here));
    else if (performance.now() < until) requestAnimationFrame(follow);
  };
  requestAnimationFrame(follow);
}
