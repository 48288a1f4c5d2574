// The page in a frame of another page: whether only the picture is shown, and what the two pages tell
// each other. Either may be a file, which has no origin, so messages go to any; what arrives is
// taken from the page around alone, and read as if somebody had typed it.

const TYPE = "headlight";

export const isEmbedded = new URLSearchParams(location.search).get("embed") === "true";

let told = "";

/** Tells the page around what is shown, unless it has been told. */
export function tell(shown) {
  const text = JSON.stringify(shown);
  if (parent === window || text === told) return;
  told = text;
  parent.postMessage({ type: TYPE, ...shown }, "*");
}

/** `hear` gets what the page around asks for: a sentence, a head, or both. */
export function hearParent(hear) {
  addEventListener("message", ({ source, data }) => {
    if (parent !== window && source === parent && data?.type === TYPE) hear(data);
  });
}
