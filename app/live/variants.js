// The parts that other systems put in place of the paper's (model/variants.py), and the systems by
// name (model/presets.py): those of the shipped checkpoints.

import { Tensor, add, logSoftmax } from "./arrays.js";
import {
  Decoder, DecoderLayer, Embedding, Encoder, EncoderLayer, LayerNorm, Linear, Module,
  MultiHeadAttention, TokenEmbedding, Transformer, parameter, sitesOf,
} from "./transformer.js";

/** Norm before each sublayer, inside the residual branch (Xiong et al. 2020). */
class PreNormEncoderLayer extends EncoderLayer {
  forward(x, mask) {
    const y = this.norm1.run(x);
    x = add(x, this.self_attn.run(y, y, y, mask));
    return add(x, this.feed_forward.run(this.norm2.run(x)));
  }
}

class PreNormDecoderLayer extends DecoderLayer {
  forward(x, memory, mask, memory_mask) {
    let y = this.norm1.run(x);
    x = add(x, this.self_attn.run(y, y, y, mask));
    y = this.norm2.run(x);
    x = add(x, this.cross_attn.run(y, memory, memory, memory_mask));
    return add(x, this.feed_forward.run(this.norm3.run(x)));
  }
}

/** A learned vector per position. Returns the table, (position, d_model). */
class LearnedPositions extends Module {
  constructor(max_length, d_model) {
    super();
    this.weight = parameter(max_length, d_model);
  }

  forward(length) {
    const { width, data } = this.weight;
    return new Tensor([length, width], data.subarray(0, length * width));
  }
}

/** Heads as wide as the model, d_head = d_model, and projections without bias (Bloem 2019). It
 * divides queries and keys by ⁴√d_head each: the scores of equation 1. */
class WideAttention extends MultiHeadAttention {
  constructor(d_model, n_heads) {
    super(d_model, n_heads);
    const wide = n_heads * d_model;
    for (const name of ["query", "key", "value"]) this[name] = new Linear(d_model, wide, false);
    this.output = new Linear(wide, d_model);
  }
}

class LogSoftmaxLinear extends Linear {
  forward(x) {
    return logSoftmax(super.forward(x));
  }
}

/** Encoder layers, then the mean over the text's positions, then a class (Bloem 2019). Logits:
 * (batch, 1, n_classes). */
class Classifier extends Module {
  constructor(config) {
    super();
    this.config = config;
    this.src_embedding = new Embedding(config);
    this.encoder = new Encoder(config);
    this.generator = new Linear(config.d_model, config.n_classes);
  }

  sides() {
    return [{ name: "src", title: "source", stack: "encoder", ends: true, predicts: "class" }];
  }

  sites() {
    return sitesOf("encoder", "encoder self-attention", "encoder", this.encoder.layers,
      ["src", "src"], "self_attn", ["src_padding"]);
  }

  encode(src, src_mask) {
    return this.encoder.run(this.src_embedding.run(src), src_mask);
  }

  logits(x, ids) {
    const mean = new Tensor([ids.length, 1, x.width]);
    ids.forEach((text, b) => {
      const real = text.flatMap((id, i) => (id === this.config.pad_id ? [] : [i]));
      for (const i of real)
        for (let n = 0; n < x.width; n++)
          mean.data[b * x.width + n] += x.data[b * x.step + i * x.width + n] / real.length;
    });
    return this.generator.run(mean);
  }

  hidden(src, src_mask) {
    return this.encode(src, src_mask);
  }

  forward(src, src_mask) {
    return this.logits(this.hidden(src, src_mask), src);
  }
}

/** The paper's decoder without cross-attention: one text, and what may come next (Liu et al. 2018;
 * Radford et al. 2018). Such a layer is an encoder layer: that its tokens attend to no later ones
 * is the mask's doing. */
class DecoderOnly extends Module {
  constructor(config) {
    super();
    this.config = config;
    this.tgt_embedding = new Embedding(config);
    this.decoder = new Encoder({ ...config, n_encoder_layers: config.n_decoder_layers });
    this.generator = new Linear(config.d_model, config.vocab_size, false);
    this.generator.weight = this.tgt_embedding.token.weight;
  }

  sides() {
    return [{ name: "tgt", title: "text", stack: "decoder", begins: true, predicts: "next token" }];
  }

  sites() {
    return sitesOf("decoder", "decoder self-attention", "decoder", this.decoder.layers,
      ["tgt", "tgt"], "self_attn", ["causal", "tgt_padding"]);
  }

  logits(x) {
    return this.generator.run(x);
  }

  hidden(tgt, tgt_mask) {
    return this.decoder.run(this.tgt_embedding.run(tgt), tgt_mask);
  }

  forward(tgt, tgt_mask) {
    return this.logits(this.hidden(tgt, tgt_mask), tgt);
  }
}

function pre_norm(config) {
  const model = new Transformer(config);
  model.encoder = new Encoder(config, PreNormEncoderLayer);
  model.decoder = new Decoder(config, PreNormDecoderLayer);
  for (const stack of [model.encoder, model.decoder]) stack.norm = new LayerNorm(config.d_model);
  return model;
}

function bloem(config) {
  const model = new Classifier(config);
  const { vocab_size, max_length, d_model, n_heads, n_classes } = config;
  model.src_embedding.token = new TokenEmbedding(vocab_size, d_model, 1);
  model.src_embedding.position = new LearnedPositions(max_length, d_model);
  for (const layer of model.encoder.layers) layer.self_attn = new WideAttention(d_model, n_heads);
  model.generator = new LogSoftmaxLinear(d_model, n_classes);
  return model;
}

export const PRESETS = {
  paper: (config) => new Transformer(config),
  pre_norm,
  bloem,
  decoder_only: (config) => new DecoderOnly(config),
};
