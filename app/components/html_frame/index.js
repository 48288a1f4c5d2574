// A frame as high as the page in it says.

export default function ({ data, parentElement }) {
  const frame = parentElement.querySelector("iframe");
  frame.title = data.alt;
  const listen = (event) => {
    if (event.source !== frame.contentWindow) return;
    if (event.data?.height > 0) frame.style.height = `${event.data.height}px`;
  };
  window.addEventListener("message", listen);
  if (frame.srcdoc !== data.page) frame.srcdoc = data.page;
  return () => window.removeEventListener("message", listen);
}
