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

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** One stop of the Tab key for many buttons, `across` of them in a row: arrow keys go from one to
 * the next. In a single column, left and right are left to others. */
export function asOneStop(box, buttons, across = 1, first = buttons[0]) {
  const enter = (one) => buttons.forEach((button) => (button.tabIndex = button === one ? 0 : -1));
  enter(first);
  box.onkeydown = (event) => {
    const [x, y] = MOVES[event.key] ?? [0, 0];
    const at = buttons.indexOf(event.target);
    const to = buttons[at + (across > 1 ? x : 0) + y * across];
    if (at < 0 || !(y || (x && across > 1)) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (!to) return;
    enter(to);
    to.focus();
  };
}

/** A node and what it stands in, out of shadow roots too. */
export function outwards(node) {
  const parent = node.parentElement ?? node.getRootNode().host;
  return parent ? [node, ...outwards(parent)] : [node];
}

/** Pixels from the top of a node to the foot of the window, while nothing is scrolled. */
export function roomBelow(node) {
  const scrolled = outwards(node).reduce((sum, { scrollTop }) => sum + scrollTop, 0);
  const foot = parseFloat(getComputedStyle(node).getPropertyValue("--hl-foot")) || 0; // of a line there
  return window.innerHeight - foot - node.getBoundingClientRect().top - scrolled;
}

/** Pixels that what stands below a node takes, in the region of the page's main picture. */
export function heightBelow(node) {
  const hero = outwards(node).find(({ classList }) => classList.contains("st-key-hero"));
  return hero ? hero.getBoundingClientRect().bottom - node.getBoundingClientRect().bottom : 0;
}

/** Hears when the text of a node that is seen takes another colour, as all do when the page goes
 * dark. */
export function onRecolour(node, hear) {
  node.style.transition = "color 1ms";
  node.addEventListener("transitionend", ({ target, propertyName }) => {
    if (target === node && propertyName === "color") hear();
  });
}
