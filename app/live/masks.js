// Which query may attend to which key (model/masks.py). A mask is {shape, data}, (heads or 1, query
// or 1, key), 1 = may attend. null: every query may attend to every key.

/** All masks on, as the model was trained. */
export const TRAINED = {
  causal: true, src_padding: true, tgt_padding: true, memory_padding: true,
};

/** A mask for each kind of attention of `model`, in their order; ids: side → (length,). */
export function masksFor(model, ids, masks) {
  const kinds = new Map(model.sites().map((site) => [site.kind, site]));
  return [...kinds.values()].map((site) =>
    maskOf(ids[site.query_side], ids[site.key_side], site.masks, masks, model.config.pad_id));
}

/** The mask of an attention governed by these `switches`, from query and key ids. */
export function maskOf(query, key, switches, masks, pad_id) {
  const isCausal = switches.includes("causal") && masks.causal;
  const hidesPadding = switches.some((name) => name !== "causal" && masks[name]) &&
    key.includes(pad_id);
  if (!isCausal && !hidesPadding) return null;
  const rows = isCausal ? query.length : 1;
  const data = new Uint8Array(rows * key.length);
  for (let i = 0, at = 0; i < rows; i++)
    for (let j = 0; j < key.length; j++, at++)
      data[at] = (!isCausal || j <= i) && (!hidesPadding || key[j] !== pad_id);
  return { shape: [1, rows, key.length], data };
}

/** The rows of a mask from `start` on. */
export function rowsFrom(mask, start) {
  if (!mask || mask.shape[1] === 1) return mask;
  const [, rows, keys] = mask.shape;
  return { shape: [1, rows - start, keys], data: mask.data.subarray(start * keys) };
}
