/** Opens an address of the app, as the browser's Back would: in one run, in which the address decides
 * every setting that has a place in it. `isReplaced`: Back then leads past the present address. */
export function lead(address, isReplaced = false) {
  if (isReplaced) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate", { state: { isLink: true } }));
}
