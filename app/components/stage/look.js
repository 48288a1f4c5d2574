// The mount that says, once in every run of the script, which weights may be seen and how.

import { meeting, once } from "./meeting.js";

export default function ({ data }) {
  // A script for old data may come after that for new.
  if (!data || (meeting.session === data.session && meeting.number >= data.number)) return;
  [meeting.session, meeting.number] = [data.session, data.number];
  once((engine) => engine.tell("look", data));
}
