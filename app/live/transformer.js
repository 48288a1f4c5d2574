// The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the paper's order:
// attention (section 3.2), feed-forward (3.3), embeddings and softmax (3.4), positions (3.5), then
// the layers and stacks (3.1), and the model. Read it beside model/transformer.py: the same parts in
// the same order, named like its weights. It runs a trained model, so there is no dropout.
//
// Shapes are those of model/transformer.py, with one exception: heads stay behind the positions,
// (batch, length, heads, d_head), because a row of d_model already holds them side by side.

import {
  Tensor, add, layerNorm, linear, maskedSoftmax, mixture, products, relu,
} from "./arrays.js";

/** A part of a model. What you want to see is the output of a named part. `before` and `after` are
 * hooks: they may replace its inputs (a list) and its output. */
export class Module {
  before = [];
  after = [];

  run(...inputs) {
    for (const hook of this.before) inputs = hook(...inputs) ?? inputs;
    let output = this.forward(...inputs);
    for (const hook of this.after) output = hook(output) ?? output;
    return output;
  }

  /** [name, part] of itself and all the parts in it. */
  *parts(name = "") {
    yield [name, this];
    const below = (...path) => [name, ...path].filter((step) => step !== "").join(".");
    for (const [child, part] of Object.entries(this)) {
      if (part instanceof Module) yield* part.parts(below(child));
      else if (Array.isArray(part) && part[0] instanceof Module)
        for (const [index, layer] of part.entries()) yield* layer.parts(below(child, index));
    }
  }

  /** [name, tensor] of its weights, a shared one once. */
  *parameters() {
    const seen = new Set();
    for (const [name, part] of this.parts())
      for (const [key, tensor] of Object.entries(part))
        if (tensor instanceof Tensor && key !== "table" && !seen.has(tensor)) {
          seen.add(tensor);
          yield [`${name}.${key}`, tensor];
        }
  }
}

/** A weight before checkpoint.js fills it: a shape without numbers. */
export function parameter(...shape) {
  return new Tensor(shape, null);
}

export class Linear extends Module {
  constructor(inputs, outputs, hasBias = true) {
    super();
    this.weight = parameter(outputs, inputs);
    if (hasBias) this.bias = parameter(outputs);
  }

  forward(x) {
    return linear(x, this);
  }
}

export class LayerNorm extends Module {
  eps = 1e-5;

  constructor(d_model) {
    super();
    this.weight = parameter(d_model);
    this.bias = parameter(d_model);
  }

  forward(x) {
    return layerNorm(x, this);
  }
}

export class Identity extends Module {
  forward(x) {
    return x;
  }
}

// Attention (section 3.2)

/** QKᵀ / √d_head, the scores of equation 1. */
export class Scores extends Module {
  forward(q, k) {
    return products(q, k, q.width ** -0.5);
  }
}

/** From scores to weights, the softmax of equation 1 under a mask. Each row of weights sums to 1
 * over the keys it may attend to; a row that may attend to nothing is all zeros. */
export class MaskedSoftmax extends Module {
  forward(scores, mask = null) {
    return maskedSoftmax(scores, mask);
  }
}

/** softmax(QKᵀ / √d_head) V in each head, side by side (sections 3.2.1 and 3.2.2). */
export class MultiHeadAttention extends Module {
  constructor(d_model, n_heads) {
    super();
    this.n_heads = n_heads;
    this.query = new Linear(d_model, d_model);
    this.key = new Linear(d_model, d_model);
    this.value = new Linear(d_model, d_model);
    this.scores = new Scores();
    this.softmax = new MaskedSoftmax();
    this.output = new Linear(d_model, d_model);
  }

  forward(query, key, value, mask = null) {
    const q = this.split(this.query.run(query));
    const [k, v] = this.keys_values(key, value);
    const weights = this.softmax.run(this.scores.run(q, k), mask); // (batch, heads, query, key)
    const heads = mixture(weights, v); // (batch, query, heads, d_head)
    const [batch, length, n_heads, d_head] = heads.shape;
    return this.output.run(heads.as(batch, length, n_heads * d_head));
  }

  /** Projected keys and values, each (batch, key, heads, d_head). */
  keys_values(key, value) {
    return [this.split(this.key.run(key)), this.split(this.value.run(value))];
  }

  /** (batch, length, width) → (batch, length, heads, d_head) */
  split(x) {
    return x.as(...x.shape.slice(0, 2), this.n_heads, x.width / this.n_heads);
  }
}

// Feed-forward (section 3.3)

/** max(0, x W1 + b1) W2 + b2, the same at every position (section 3.3). */
export class FeedForward extends Module {
  constructor(d_model, d_ff) {
    super();
    this.linear1 = new Linear(d_model, d_ff);
    this.linear2 = new Linear(d_ff, d_model);
  }

  forward(x) {
    return this.linear2.run(relu(this.linear1.run(x)));
  }
}

// Embeddings and softmax (section 3.4); the matrix before the softmax is Transformer.generator

/** A learned vector per token, times √d_model (section 3.4). ids: (batch, length), as lists. */
export class TokenEmbedding extends Module {
  constructor(vocab_size, d_model, scale = Math.sqrt(d_model)) {
    super();
    this.weight = parameter(vocab_size, d_model);
    this.scale = scale;
  }

  forward(ids) {
    const vectors = this.weight.rows(ids.flat());
    for (let i = 0; i < vectors.data.length; i++) vectors.data[i] *= this.scale;
    return vectors.as(ids.length, ids[0].length, vectors.width);
  }
}

// Positions (section 3.5)

/** Sines and cosines of wavelengths from 2π to 10000·2π (section 3.5): the table alone, (position,
 * d_model); the embedding adds it. */
export class PositionalEncoding extends Module {
  constructor(max_length, d_model) {
    super();
    this.table = new Tensor([max_length, d_model]);
    const wavelengths = Array.from({ length: d_model }, (_, i) =>
      10000 ** ((i - (i % 2)) / d_model)); // in units of 2π
    for (let position = 0, at = 0; position < max_length; position++)
      for (let i = 0; i < d_model; i++) {
        const angle = position / wavelengths[i];
        this.table.data[at++] = i % 2 ? Math.cos(angle) : Math.sin(angle);
      }
  }

  forward(length) {
    const { width, data } = this.table;
    return new Tensor([length, width], data.subarray(0, length * width));
  }
}

/** What enters layer 1: token embedding + positional encoding (sections 3.4 and 3.5). */
export class Embedding extends Module {
  constructor({ vocab_size, d_model, max_length }) {
    super();
    this.token = new TokenEmbedding(vocab_size, d_model);
    this.position = new PositionalEncoding(max_length, d_model);
  }

  forward(ids) {
    return add(this.token.run(ids), this.position.run(ids[0].length));
  }
}

// Layers and stacks (section 3.1)

/** Self-attention, then feed-forward; after each: add, then norm (section 3.1). */
export class EncoderLayer extends Module {
  constructor({ d_model, n_heads, d_ff }) {
    super();
    this.self_attn = new MultiHeadAttention(d_model, n_heads);
    this.norm1 = new LayerNorm(d_model);
    this.feed_forward = new FeedForward(d_model, d_ff);
    this.norm2 = new LayerNorm(d_model);
  }

  forward(x, mask) {
    x = this.norm1.run(add(x, this.self_attn.run(x, x, x, mask)));
    return this.norm2.run(add(x, this.feed_forward.run(x)));
  }
}

/** Causal self-attention, attention to the encoder's output, feed-forward (section 3.1). */
export class DecoderLayer extends Module {
  constructor({ d_model, n_heads, d_ff }) {
    super();
    this.self_attn = new MultiHeadAttention(d_model, n_heads);
    this.norm1 = new LayerNorm(d_model);
    this.cross_attn = new MultiHeadAttention(d_model, n_heads);
    this.norm2 = new LayerNorm(d_model);
    this.feed_forward = new FeedForward(d_model, d_ff);
    this.norm3 = new LayerNorm(d_model);
  }

  forward(x, memory, mask, memory_mask) {
    x = this.norm1.run(add(x, this.self_attn.run(x, x, x, mask)));
    x = this.norm2.run(add(x, this.cross_attn.run(x, memory, memory, memory_mask)));
    return this.norm3.run(add(x, this.feed_forward.run(x)));
  }
}

/** A stack of encoder layers. `norm` is empty here: post-norm layers end in their own. */
export class Encoder extends Module {
  constructor(config, Layer = EncoderLayer) {
    super();
    this.layers = Array.from({ length: config.n_encoder_layers }, () => new Layer(config));
    this.norm = new Identity();
  }

  forward(x, mask) {
    for (const layer of this.layers) x = layer.run(x, mask);
    return this.norm.run(x);
  }
}

/** A stack of decoder layers. `norm` is empty here: post-norm layers end in their own. */
export class Decoder extends Module {
  constructor(config, Layer = DecoderLayer) {
    super();
    this.layers = Array.from({ length: config.n_decoder_layers }, () => new Layer(config));
    this.norm = new Identity();
  }

  forward(x, memory, mask, memory_mask) {
    for (const layer of this.layers) x = layer.run(x, memory, mask, memory_mask);
    return this.norm.run(x);
  }
}

// Where attention happens (model/sites.py)

/** The sites of one kind: the sublayer `attention` of each layer. */
export function sitesOf(kind, title, stack, layers, [query_side, key_side], attention, masks) {
  return layers.map((layer, i) => ({
    kind, title, layer: i, name: `${stack}.layers.${i}.${attention}`, query_side, key_side, masks,
    n_heads: layer[attention].n_heads,
  }));
}

// The model (figure 1)

/** Encoder and decoder with one matrix for both embeddings and the output (section 3.4).
 *
 * src, tgt: token ids, (batch, length), as lists. Logits: (batch, length, vocab_size); the row of
 * target position i scores the token at i + 1. */
export class Transformer extends Module {
  constructor(config) {
    super();
    this.config = config;
    this.src_embedding = new Embedding(config);
    this.tgt_embedding = new Embedding(config);
    this.encoder = new Encoder(config);
    this.decoder = new Decoder(config);
    this.generator = new Linear(config.d_model, config.vocab_size, false);
    this.tgt_embedding.token.weight = this.src_embedding.token.weight;
    this.generator.weight = this.src_embedding.token.weight;
  }

  sides() {
    return [
      { name: "src", title: "source", stack: "encoder", ends: true },
      { name: "tgt", title: "target", stack: "decoder", begins: true, writes: true,
        predicts: "next token" },
    ];
  }

  /** Every attention: the encoder's, the decoder's to itself, the decoder's to the source. */
  sites() {
    const [encoder, decoder] = [this.encoder.layers, this.decoder.layers];
    return [
      ...sitesOf("encoder", "encoder self-attention", "encoder", encoder, ["src", "src"],
        "self_attn", ["src_padding"]),
      ...sitesOf("decoder", "decoder self-attention", "decoder", decoder, ["tgt", "tgt"],
        "self_attn", ["causal", "tgt_padding"]),
      ...sitesOf("cross", "cross-attention", "decoder", decoder, ["tgt", "src"],
        "cross_attn", ["memory_padding"]),
    ];
  }

  /** Logits from the final vectors of the predicted side, (batch, length, d_model). */
  logits(x) {
    return this.generator.run(x);
  }

  /** Source ids → memory, (batch, src, d_model). */
  encode(src, src_mask) {
    return this.encoder.run(this.src_embedding.run(src), src_mask);
  }

  /** Target ids and memory → (batch, tgt, d_model), what the generator turns into logits. */
  decode(tgt, memory, tgt_mask, memory_mask) {
    return this.decoder.run(this.tgt_embedding.run(tgt), memory, tgt_mask, memory_mask);
  }

  /** Everything but the logits: the target's last vectors, (batch, tgt, d_model). */
  hidden(src, tgt, src_mask, tgt_mask, memory_mask) {
    return this.decode(tgt, this.encode(src, src_mask), tgt_mask, memory_mask);
  }

  forward(src, tgt, ...masks) {
    return this.logits(this.hidden(src, tgt, ...masks), tgt);
  }
}
