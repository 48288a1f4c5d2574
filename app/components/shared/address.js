/** An address from the app's root, on the page whose path is `here`. */
export function fromRoot(address, here) {
  const root = location.pathname.replace(/\/+$/, "").slice(0, -here.length || undefined);
  return `${root.replace(/\/+$/, "")}/${address}`;
}

/** Of a page, from the one whose path is `here`: with these settings, all else as it is by now. */
export function pageWith(path, settings, here) {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(settings)) query.set(key, value);
  return fromRoot(`${path}?${query}`, here);
}

/** Whether a click opens a link in another tab or window. */
export const opensElsewhere = ({ button, ctrlKey, metaKey, shiftKey, altKey }) =>
  button !== 0 || ctrlKey || metaKey || shiftKey || altKey;
