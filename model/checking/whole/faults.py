"""The faults of a whole model that a check-up names: what is wrong, the code that usually mends it,
the lesson that explains it, and what follows from it."""

from dataclasses import dataclass

MASKS, CROSS, DECODING, SCORE = "4-masks", "5-cross-attention", "6-decoding", "3-score"


@dataclass(frozen=True)
class Fault:
    """`cure`: code; `lesson`: a file of app/lessons/en, without its ending; `look`: works, but is
    seldom meant, so that nothing fails."""

    sentence: str
    cure: str = ""
    lesson: str = ""
    look: bool = False


FAULTS = {
    # Calling it
    "NaN": Fault("Its output holds NaN: some row may attend to nothing.",
        "let every query attend to some key, or masked_fill(~mask, -1e9)", MASKS),
    "without the diagonal": Fault("The first row may attend to nothing. A token may attend to "
        "itself.", "hide torch.triu(ones, diagonal=1)", MASKS),
    "dropout in eval": Fault("Two calls in eval mode differ: dropout is always on.",
        "F.dropout(x, p, training=self.training), or nn.Dropout; in scaled_dot_product_attention "
        "dropout_p=self.p if self.training else 0.0"),
    "random in eval": Fault("Two calls in eval mode differ, and not by dropout."),
    "returns probabilities": Fault("It returns probabilities. CrossEntropyLoss applies the softmax "
        "itself.", "return logits", look=True),
    "activation on the logits": Fault("No logit is negative: an activation follows the output "
        "layer.", "return self.out(x)", look=True),
    # Who sees the batch
    "sees the batch": Fault("A text's output depends on the other texts of its batch."),
    "batch and length swapped": Fault("Texts of a batch attend to each other: the first axis is "
        "read as the length.", "nn.MultiheadAttention(…, batch_first=True), or x.transpose(0, 1)"),
    "positions by batch": Fault("A text's output depends on its place in the batch: the table of "
        "positions is cut by the batch size.", "x + self.pe[:, : x.size(1)], not [: x.size(0)]"),
    # Who sees the future
    "no causal mask": Fault("Every row sees all later tokens, so it can copy the next one.",
        "hide all but torch.ones(n, n).tril() in the decoder's self-attention; or is_causal=True",
        MASKS),
    "causal mask missing in a layer": Fault("Some layers or heads have a causal "
        "mask, and others have none.", "hand the mask to every layer", MASKS),
    "causal mask with holes": Fault("The causal mask hides some later tokens, but not all.",
        "torch.ones(n, n).tril() is what a row may attend to", MASKS),
    "rows for columns": Fault("The causal mask is upside down: a token attends to itself and "
        "to what follows.", "tril, not triu; a row is the token that attends", MASKS),
    "True for False": Fault("The mask is inverted: it hides what may be seen.",
        "masked_fill(mask == 0, -inf), or ~mask: True means hidden in nn.MultiheadAttention, and "
        "seen in scaled_dot_product_attention", MASKS),
    "mask one too far": Fault("Each row sees one token too many: the one that it should predict.",
        "tril(diagonal=0) is what to see, triu(diagonal=1) what to hide", MASKS),
    "mask too weak": Fault("Later tokens are less likely, but not hidden.",
        "masked_fill(mask == 0, -inf), not a small number", MASKS),
    "mask added as numbers": Fault("Zeros and ones are added to the scores, which hides nothing.",
        "scores.masked_fill(mask == 0, -inf)", MASKS),
    "scores times the mask": Fault("A score of 0 hides nothing: its weight is e⁰, before the sum.",
        "scores.masked_fill(mask == 0, -inf)", MASKS),
    "zero after the softmax": Fault("The mask acts after the softmax, whose sum still counts later "
        "tokens.", "scores.masked_fill(mask == 0, -inf).softmax(-1)", MASKS),
    "softmax over the wrong axis": Fault("The softmax does not run over the keys.",
        "softmax(dim=-1)", SCORE),
    "heads split without transpose": Fault("view alone makes the heads, which mixes tokens.",
        "x.view(batch, length, heads, d_head).transpose(1, 2)", "2-query-key-value"),
    "encoder reads the target": Fault("The encoder reads the target, so the decoder sees its "
        "answer.", "self.encoder(src)", CROSS),
    "sees the future": Fault("It sees the future: later tokens change earlier rows.",
        lesson=MASKS),
    "reads the future elsewhere": Fault("A step outside of attention mixes positions.",
        "norms over the last axis alone: nn.LayerNorm(d_model)"),
    "length changes rows": Fault("A row changes when more tokens follow: decoding computes other "
        "numbers than training.", lesson=DECODING),
    "cache differs": Fault("Decoding with a cache gives other numbers than one whole pass.",
        "positions start at the length of the cache", DECODING),
    # Who sees too little
    "reads nothing before": Fault("A row depends on its own token alone: self-attention has no "
        "effect.", "x = x + self.attn(x)"),
    "attention over the heads": Fault("The heads of a token attend to each other, and tokens do "
        "not.", "x.view(batch, length, heads, d_head).transpose(1, 2)", "2-query-key-value"),
    "reads a part of what came before": Fault("Rows miss some of the earlier tokens, and not as a "
        "window does."),
    "causal mask in an encoder": Fault("A text to be read in both directions has a causal mask.",
        "no causal mask in an encoder", MASKS, look=True),
    "never reads the source": Fault("No source token changes the output: nothing is translated.",
        "self.cross_attn(x, memory, memory), where memory is the encoder's output", CROSS),
    "reads a part of the source": Fault("Some source tokens change nothing.", lesson=CROSS),
    "causal mask in cross-attention": Fault("Row 1 of the target attends to source token 1 alone, "
        "row 2 to two of them.", "in cross-attention hide padding alone", CROSS),
    "memory of the wrong layer": Fault("The encoder's last layers have no effect: the decoder "
        "reads an earlier one.", "return x after the loop over the layers", CROSS),
    "residual left out": Fault("Without attention a row forgets its own token: a residual "
        "connection is missing.", "x = x + self.attn(…)"),
    # Padding
    "encoder sees padding": Fault("Source tokens attend to padding.",
        "src_key_padding_mask=(src == pad), or a mask for the encoder's self-attention", MASKS),
    "cross-attention sees padding": Fault("The decoder attends to the source's padding.",
        "memory_key_padding_mask=(src == pad), or src_mask for the cross-attention, too", CROSS),
    "both see padding": Fault("Encoder and cross-attention attend to the source's padding.",
        "src_key_padding_mask and memory_key_padding_mask", MASKS),
    "sees padding": Fault("Padding changes the output.", "hide padding from every query", MASKS),
    "padding mask along the queries": Fault("The mask hides the rows of padding, and not its "
        "columns.", "mask[:, None, None, :], not mask[:, None, :, None]", MASKS),
    "another id for padding": Fault("The mask hides another id than that of padding.",
        "src == self.embed.padding_idx", MASKS),
    "padding mask inverted": Fault("With padding, the text is hidden and the padding is read.",
        "True means hidden in the …_key_padding_mask of nn.Transformer", MASKS),
    "pooling counts padding": Fault("Each row is right, but what is made of them all "
        "counts padding.",
        "(x * real).sum(1) / real.sum(1)"),
    # Positions
    "source without positions": Fault("The order of the source's tokens changes nothing.",
        "embed(src) + positions", "2-query-key-value"),
    "target without positions": Fault("Without the causal mask, the order of tokens would change "
        "nothing: there are no positions.", "embed(tgt) + positions", look=True),
    "text without positions": Fault("The order of tokens changes nothing.",
        "embed(ids) + positions"),
    "too few positions": Fault("Longer texts fail.", look=True),
    "tokens drowned by positions": Fault("Token vectors are much smaller than the positions added "
        "to them.", "self.embed(ids) * math.sqrt(d_model)", look=True),
    "positions drowned by tokens": Fault("Positions are much smaller than the token vectors.",
        "nn.init.normal_(embed.weight, std=d_model**-0.5) before multiplying by √d_model",
        look=True),
    "frequencies grow": Fault("Neighbouring positions have little in common: from column to column "
        "the sines become faster, not slower.",
        "torch.exp(torch.arange(0, d, 2) * -(math.log(10000) / d))", "2-query-key-value"),
    "sines without cosines": Fault("Every second column of the positions says nothing new.",
        "pe[:, 0::2], pe[:, 1::2] = angle.sin(), angle.cos()", "2-query-key-value", look=True),
    "no rotation": Fault("The score of two tokens depends on where they stand, not only on how far "
        "apart they are: q and k are not rotated alike.",
        "x * cos + rotate_half(x) * sin, where rotate_half gives (−x2, x1)"),
    "bias favours the far": Fault("The further away a token is, the higher is its score.",
        "scores - slope * distance"),
    # Scores and weights
    "√d left out": Fault("Scores are not divided by √d.",
        "q @ k.transpose(-2, -1) / math.sqrt(d_head)", SCORE, look=True),
    "divided by d": Fault("Scores are divided by d, not by its square root.",
        "/ math.sqrt(d_head)", SCORE, look=True),
    "√d_model": Fault("Scores are divided by the root of the model's width, not of one head's.",
        "/ math.sqrt(d_model // heads)", SCORE, look=True),
    "multiplied by √d": Fault("Scores are multiplied by √d.", "/ math.sqrt(d_head)", SCORE,
        look=True),
    "no activation in the feed-forward": Fault("Two linear layers with nothing between them are no "
        "more than one.", "self.down(self.up(x).relu())"),
    "norm over the wrong axis": Fault("Normalizing one row uses numbers from other rows.",
        "x.mean(-1, keepdim=True), not over the length"),
    "norm of the wrong size": Fault("Twice the input of a norm gives another output.",
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)"),
    "zeros that stay": Fault("Two matrices in a row start at zero, so neither gets a gradient.",
        "nn.init.zeros_ for the second alone"),
    "layers not registered": Fault("model.parameters() lacks some of the weights in use: they are "
        "never trained or saved.", "nn.ModuleList([…]), not a Python list"),
    "weights without gradient": Fault("No gradient reaches these weights, so they never learn."),
    "weights without effect": Fault("Whatever these weights are, the output is the same.",
        "use what their module returns, or delete it", look=True),
    "layers not chained": Fault("Earlier layers have no effect: each reads the same input.",
        "for layer in self.layers: x = layer(x)"),
    "last layers left out": Fault("The last layers have no effect: the output comes from an "
        "earlier one.", "return x after the loop over the layers"),
    "frozen": Fault("These weights are frozen.", "requires_grad_(True)", look=True),
    "one layer, many times": Fault("Several layers are one module, and share their weights.",
        "nn.ModuleList(Layer(config) for _ in range(n)), not [layer] * n", look=True),
    "final norm missing": Fault("The output layer reads the bare sum of a pre-norm model.",
        "self.norm(x) after the last layer", look=True),
    "embeddings not tied": Fault("Embedding and output layer do not share their weights.",
        "self.output.weight = self.embed.weight"),
    # Loss, training and decoding
    "target not shifted": Fault("Repeating the token that is read makes the loss small: the target "
        "is not shifted.", "model(src, tgt[:, :-1]) against tgt[:, 1:]", DECODING),
    "target shifted backwards": Fault("A row is to predict a token that it has read.",
        "logits[:, :-1] against ids[:, 1:]", DECODING),
    "shifted twice": Fault("The loss is smallest for the token after the next one.",
        "model(src, tgt[:, :-1]) against tgt[:, 1:]", DECODING),
    "loss counts padding": Fault("Predictions at padding change the loss.",
        "nn.CrossEntropyLoss(ignore_index=pad)"),
    "softmax twice": Fault("The loss applies a softmax to probabilities.",
        "logits, not probabilities, into CrossEntropyLoss"),
    "loss does not start at ln V": Fault("A model that knows nothing should lose ln V.", look=True),
    "never stops": Fault("It writes on after the end token.", "if next == eos: break", DECODING),
    "start token missing": Fault("The decoder does not begin with the start token.", "ids = [bos]",
        DECODING),
    "not greedy": Fault("It does not write the most likely token.", "logits[:, -1].argmax(-1)",
        DECODING),
    "reads the wrong row": Fault("It does not take the next token from the last row.",
        "logits[:, -1]", DECODING),
    "beam prefers short texts": Fault("Beams of different lengths are compared by their sums.",
        "score / length", DECODING),
}  # fmt: skip

_PADDING = {"sees padding", "encoder sees padding", "both see padding",
            "cross-attention sees padding"}  # fmt: skip
_DEAD = {"memory of the wrong layer", "weights without gradient", "weights without effect",
         "layers not chained", "last layers left out"}  # fmt: skip
_IDLE = {"never reads the source", "reads nothing before", "reads a part of what came before"}
_LENGTH = {"length changes rows", "residual left out", "cache differs"}
_EMPTY = _IDLE | _DEAD | _LENGTH | {
    "no causal mask", "causal mask with holes", "sees the future", "random in eval",
    "sees the batch", "sees padding",
}  # fmt: skip
_WHERE = {"sees the future", "reads the future elsewhere", "reads a part of what came before",
          "reads a part of the source", "no rotation"} | _LENGTH | _PADDING  # fmt: skip
# Causes, and what follows from any of them.
CONSEQUENCES: tuple[tuple[set[str], set[str]], ...] = (
    ({"sees the future", "no causal mask", "causal mask missing in a layer", "rows for columns",
      "True for False", "mask one too far", "mask too weak", "mask added as numbers",
      "scores times the mask", "zero after the softmax", "causal mask with holes",
      "encoder reads the target", "reads the future elsewhere", "batch and length swapped",
      "positions by batch"}, _LENGTH | {"no rotation"}),
    ({"heads split without transpose", "softmax over the wrong axis", "norm over the wrong axis"},
     _WHERE),
    ({"softmax over the wrong axis"},
     {"no causal mask", "causal mask missing in a layer", "causal mask with holes", "mask too weak",
      "causal mask in cross-attention"}),
    ({"scores times the mask", "mask added as numbers", "zero after the softmax",
      "mask too weak"}, _PADDING),  # the same step hides padding
    ({"True for False", "rows for columns"},
     {"reads nothing before", "reads a part of what came before"}),
    ({"softmax over the wrong axis", "True for False"},
     _DEAD | {"NaN", "reads nothing before"}),
    ({"True for False"}, {"never reads the source"}),
    ({"batch and length swapped", "positions by batch"}, {"sees the batch"}),
    ({"sees the batch"}, _DEAD),  # a text alone tells little
    ({"never reads the source"}, _DEAD | {"source without positions"}),
    ({"reads a part of the source"}, {"source without positions"}),
    ({"padding mask inverted"},  # without padding it hides all
     _DEAD | {"never reads the source", "reads nothing before"}),
    ({"NaN", "without the diagonal"}, _EMPTY),
    ({"target without positions", "text without positions", "source without positions",
      "positions by batch", "final norm missing"}, _DEAD),
)  # fmt: skip


def following(causes: set[str]) -> set[str]:
    """The faults that follow from some of these."""
    return {each for some, many in CONSEQUENCES if some & causes for each in many}
