// The mount in a fragment of its own, which runs alone for questions.

import { headerOf } from "../shared/packed.js";
import { bytesOf, once } from "./meeting.js";

export default function ({ data, setTriggerValue }) {
  if (!data) return;
  const bytes = bytesOf(data), [{ session, answers }, start] = headerOf(bytes);
  const first = bytes.byteOffset + start, floats = new Float32Array(bytes.buffer.slice(first, bytes.byteOffset + bytes.length));
  once((engine) => {
    engine.answersBy((asked) => setTriggerValue("ask", asked), session);
    let at = 0;
    for (const { of, value, shapes = {} } of answers) {
      const arrays = Object.entries(shapes).map(([name, [rows, columns]]) =>
        [name, { rows, columns, data: floats.subarray(at, (at += rows * columns)) }]);
      engine.answer(of, value ?? Object.fromEntries(arrays));
    }
  });
}
