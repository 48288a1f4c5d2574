/** An address from the app's root, on the page whose path is `here`. */
export function fromRoot(address, here) {
  const root = location.pathname.replace(/\/+$/, "").slice(0, -here.length || undefined);
  return `${root.replace(/\/+$/, "")}/${address}`;
}

/** Whether a click opens a link in another tab or window. */
export const opensElsewhere = ({ button, ctrlKey, metaKey, shiftKey, altKey }) =>
  button !== 0 || ctrlKey || metaKey || shiftKey || altKey;
