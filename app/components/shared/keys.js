// The keys of a page's picture.

/** The key of an event; of a letter the small one, or with Shift the large one, whatever Caps Lock says,
 * and where another script is typed the Latin one at its place. */
export function keyOf({ key, code, shiftKey }) {
  const letter = /^[a-z]$/i.test(key) ? key : key.length === 1 && /^Key([A-Z])$/.exec(code ?? "")?.[1];
  return !letter ? key : shiftKey ? letter.toUpperCase() : letter.toLowerCase();
}

/** For a picture that there is once on a page: `hear(event)`, which tells whether it used the key, is
 * called for keys in the frame, and for those that are pressed while nothing has the focus. */
export function keysOf(frame, hear) {
  const listen = (event) => {
    if (!frame.isConnected) return document.removeEventListener("keydown", listen);
    const path = event.composedPath();
    const isOurs = path.includes(frame) || path[0] === document.body || path[0].matches?.(".stMain");
    if (!isOurs || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!hear(event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  document.addEventListener("keydown", listen);
}
