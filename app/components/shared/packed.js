// What the server packs into one array of bytes: length of the header, header as JSON, numbers.

/** The header, and where the numbers start. */
export function headerOf(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return [header, 4 + length];
}
