/** Opens an address of the app, as the browser's Back would: in one run, in which the address decides
 * every setting that has a place in it. */
export function lead(address) {
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate", { state: { isLink: true } }));
}
