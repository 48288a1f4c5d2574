// A frame as high as the page in it says.

export default function ({ data, parentElement }) {
  let frame = parentElement.querySelector("iframe");
  if (frame.srcdoc && frame.srcdoc !== data.page) { // another page in the same frame would be a step of Back
    const next = frame.cloneNode();
    next.removeAttribute("srcdoc");
    window.removeEventListener("message", frame.listen);
    frame.replaceWith(next);
    frame = next;
  }
  frame.title = data.alt;
  // One for a frame: to add it once more does nothing.
  frame.listen ??= (event) => {
    if (event.source !== frame.contentWindow) return;
    if (event.data?.height > 0) frame.style.height = `${event.data.height}px`;
  };
  window.addEventListener("message", frame.listen);
  if (frame.srcdoc !== data.page) frame.srcdoc = data.page;
  return () => {
    // Streamlit calls it for a run that was overtaken, too.
    if (!frame.isConnected) window.removeEventListener("message", frame.listen);
  };
}
