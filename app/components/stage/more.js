// The mount in a fragment of its own, which runs alone for questions.

import { answersOf } from "../shared/packed.js";
import { bytesOf, once } from "./meeting.js";

export default function ({ data, setTriggerValue }) {
  if (!data) return;
  const [{ session }, answers] = answersOf(bytesOf(data));
  once((engine) => {
    engine.answersBy((asked) => setTriggerValue("ask", asked), session);
    for (const { of, found } of answers) engine.answer(of, found);
  });
}
