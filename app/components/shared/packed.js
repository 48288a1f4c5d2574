// What the server packs into one array of bytes: length of the header, header as JSON, numbers.

/** The header, and where the numbers start. */
export function headerOf(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return [header, 4 + length];
}

/** The header of answers, see pack_answers of packing.py, and each with what was asked, `of`, and what was
 * `found`: a value, or matrices by name. */
export function answersOf(bytes) {
  const [header, start] = headerOf(bytes), first = bytes.byteOffset + start;
  const floats = new Float32Array(bytes.buffer.slice(first, bytes.byteOffset + bytes.length));
  let at = 0;
  const matrix = ([name, [rows, columns]]) => [name, { rows, columns, data: floats.subarray(at, (at += rows * columns)) }];
  return [header, header.answers.map(({ of, value, shapes = {} }) =>
    ({ of, found: value ?? Object.fromEntries(Object.entries(shapes).map(matrix)) }))];
}
