// Sentences as the app has them: lists of parts, each a text or [text, tag].

import { element } from "../shared/dom.js";

/** Parts of a sentence as nodes. */
export const nodes = (parts) => parts.map((part) =>
  (Array.isArray(part) ? (part[1] ? element(part[1], {}, part[0]) : part[0]) : part));
