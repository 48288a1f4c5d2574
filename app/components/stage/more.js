// The mount in a fragment of its own, which runs alone for a question about one head.

import { headerOf } from "../shared/packed.js";
import { bytesOf, once } from "./meeting.js";

export default function ({ data, setTriggerValue }) {
  if (!data) return;
  const [header, start] = headerOf(bytesOf(data));
  once((engine) => {
    engine.answersBy((what) => setTriggerValue("ask", what), header.session);
    if (header.of) engine.answer(header.of, header.none ?? numbersOf(header, bytesOf(data), start));
  });
}

/** Name → { rows, columns, data } of each array. */
function numbersOf({ shapes }, bytes, start) {
  const first = bytes.byteOffset + start;
  const floats = new Float32Array(bytes.buffer.slice(first, bytes.byteOffset + bytes.length));
  let at = 0;
  return Object.fromEntries(Object.entries(shapes).map(([name, [rows, columns]]) =>
    [name, { rows, columns, data: floats.subarray(at, (at += rows * columns)) }]));
}
