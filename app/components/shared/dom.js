// Elements, and the mark that a picture is painted.

/** A node with attributes and children. */
export function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
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
