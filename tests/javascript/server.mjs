// Calls functions in Node for tests/javascript: a line of JSON in, {files, code, argument}, and one
// out, {value} or {error}. `code` is a function of the argument; it sees all that the files export.

import { createInterface } from "node:readline";

const answer = async ({ files, code, argument }) => {
  const modules = await Promise.all(files.map((file) => import(file)));
  const { default: _, ...scope } = Object.assign({}, ...modules);
  const call = new Function(...Object.keys(scope), `return (${code});`);
  return call(...Object.values(scope))(argument);
};

for await (const line of createInterface({ input: process.stdin })) {
  const said = await answer(JSON.parse(line)).then(
    (value) => ({ value: value ?? null }), (error) => ({ error: String(error.stack) }));
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
