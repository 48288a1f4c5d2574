// Elements of pictures that are SVG, apart from dom.js: a page that stands alone names no address.

import { filled } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element of an SVG picture. */
export const shape = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);
