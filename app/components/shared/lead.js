import { opensElsewhere } from "./address.js";

/** Opens an address of the app, as the browser's Back would: in one run, in which the address decides
 * every setting that has a place in it. `isReplaced`: Back then leads past the present address.
 * `stays`: the server, which may know of acts that the address does not have yet, keeps all settings;
 * it alone is told so. */
export function lead(address, isReplaced = false, stays = false) {
  const told = stays ? `${address}${address.includes("?") ? "&" : "?"}stay=true` : address;
  if (isReplaced) history.replaceState(null, "", told);
  else history.pushState(null, "", told);
  dispatchEvent(new PopStateEvent("popstate", { state: { isLink: true } }));
  if (stays) history.replaceState(null, "", address);
}

/** A link with an address as `address` gives it by then. */
export function addressed(link, address) {
  const take = () => (link.href = address());
  take();
  for (const event of ["pointerdown", "focus", "contextmenu"]) link.addEventListener(event, take);
  return link;
}

/** Makes a link lead to an address of the app, as `address` gives it by then. `stays`: see lead. */
export function leadsTo(link, address, stays = false) {
  link.onclick = (event) => {
    if (opensElsewhere(event)) return;
    event.preventDefault();
    lead(address(), false, stays);
  };
  return addressed(link, address);
}

/** Whether no run is under way. One that meets such an opening would be joined with it by Streamlit
 * (1.67), and old values would win over the address. */
export const idle = () => {
  const { testScriptState, testConnectionState } =
    document.querySelector('[data-testid="stApp"]')?.dataset ?? {};
  return testScriptState === "notRunning" && testConnectionState === "CONNECTED";
};

export function whenIdle(act) {
  if (idle()) act();
  else requestAnimationFrame(() => whenIdle(act));
}
