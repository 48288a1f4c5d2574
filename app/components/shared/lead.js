import { opensElsewhere } from "./address.js";

/** Opens an address of the app, as the browser's Back would: in one run, in which the address decides
 * every setting that has a place in it. `isReplaced`: Back then leads past the present address. */
export function lead(address, isReplaced = false) {
  if (isReplaced) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate", { state: { isLink: true } }));
}

/** Makes a link lead to an address of the app, as `address` gives it by then. */
export function leadsTo(link, address) {
  const take = () => (link.href = address());
  take();
  for (const event of ["pointerdown", "focus", "contextmenu"]) link.addEventListener(event, take);
  link.onclick = (event) => {
    if (opensElsewhere(event)) return;
    event.preventDefault();
    lead(address());
  };
  return link;
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
