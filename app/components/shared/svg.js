// Elements of SVG pictures. Apart from dom.js: a page that stands alone holds no address.

import { filled } from "./dom.js";

const NAMESPACE = "http://www.w3.org/2000/svg";

export const shape = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(NAMESPACE, tag), attributes, children);
