// The keys of a page's picture.

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
