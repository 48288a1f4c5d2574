// Elements, and the mark that a picture is painted.

/** A node with attributes and children. */
export function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (name === "style") node.style.cssText = value; // a strict content policy forbids the attribute
    else node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export const element = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);

/** Leaves the time in the browser's own record, for whoever measures: the last one of a picture. */
export function painted(picture, detail = null) {
  performance.clearMarks(`${picture} painted`);
  performance.mark(`${picture} painted`, { detail });
}

/** A node and what it stands in, out of shadow roots too. */
export function outwards(node) {
  const parent = node.parentElement ?? node.getRootNode().host;
  return parent ? [node, ...outwards(parent)] : [node];
}

/** Pixels from the top of a node to the foot of the window, while nothing is scrolled. */
export function roomBelow(node) {
  const scrolled = outwards(node).reduce((sum, { scrollTop }) => sum + scrollTop, 0);
  return window.innerHeight - node.getBoundingClientRect().top - scrolled;
}

/** Hears when the text of a node that is seen takes another colour, as all do when the page goes
 * dark. */
export function onRecolour(node, hear) {
  node.style.transition = "color 1ms";
  node.addEventListener("transitionend", ({ target, propertyName }) => {
    if (target === node && propertyName === "color") hear();
  });
}
