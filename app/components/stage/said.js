// The mount that brings what takes longer: what the changes did to the output.

import { once } from "./meeting.js";

export default function ({ data }) {
  if (data) once((engine) => engine.tell("said", data));
}
