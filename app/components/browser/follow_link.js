import { fromRoot } from "../shared/address.js";
import { lead, whenIdle } from "../shared/lead.js";

export default function ({ data }) {
  const { address, here, count } = data;
  if (window.headlightFollowed === count) return;
  window.headlightFollowed = count;
  // The run that has drawn this is under way.
  requestAnimationFrame(() => whenIdle(() => lead(fromRoot(address, here))));
}
