"""The systems that the presets come from: where their text and their code disagree, and what was
built as meant because it could not run or defeated its purpose. In our words; checked against the
published texts and code."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Disagreement:
    """What a source's text says, what its code does, and what our preset does."""

    what: str
    text: str
    code: str
    ours: str


@dataclass(frozen=True)
class Repair:
    """What stands in a source, and what building it as meant changes."""

    mistake: str
    changes: str


@dataclass(frozen=True)
class Source:
    """Where a system is described; `completed`: what the source leaves out and we added."""

    address: str
    disagreements: tuple[Disagreement, ...] = ()
    repairs: tuple[Repair, ...] = ()
    completed: str = ""


SOURCES = {
    "paper": Source(
        "arxiv.org/abs/1706.03762",
        (
            Disagreement(
                "dropout on attention weights",
                "Section 5.4 names only sublayer outputs and sums of embeddings and positions",
                "the authors' tensor2tensor later also dropped attention weights",
                "as in that code",
            ),
            Disagreement(
                "position of the norm",
                "after the sum (section 3.1)",
                "tensor2tensor later moved it before the sublayer",
                "after, as in the text; before, in `pre_norm`",
            ),
        ),
    ),
    "pre_norm": Source("arxiv.org/abs/2002.04745"),
    "annotated": Source(
        "nlp.seas.harvard.edu/annotated-transformer",
        (
            Disagreement(
                "position of the norm",
                "after the sum: LayerNorm(x + Sublayer(x))",
                "before the sublayer, plus one after each stack",
                "as in the code",
            ),
            Disagreement(
                "embeddings and generator",
                "one matrix for both embeddings and the output",
                "three matrices, and a bias on the last",
                "as in the code",
            ),
            Disagreement(
                "type of norm",
                "layer normalisation, cited",
                "divides by the unbiased standard deviation and adds eps outside the root",
                "as in the code",
            ),
            Disagreement(
                "masked scores", "minus infinity", "−1e9, which half precision cannot hold", "−1e9"
            ),
            Disagreement(
                "output of the generator",
                "probabilities, from a softmax",
                "log-probabilities",
                "as in the code",
            ),
            Disagreement(
                "dropout",
                "on sublayer outputs and on sums of embeddings and positions",
                "also on attention weights and after the ReLU",
                "as in the code",
            ),
        ),
        (
            Repair(
                "`make_model(dropout=…)` does not reach the attention weights: their rate is "
                "always 0.1.",
                "One rate for everything; at the default of 0.1 nothing changes.",
            ),
        ),
    ),
    "hyunwoongko": Source(
        "github.com/hyunwoongko/transformer",
        (
            Disagreement(
                "scale of embeddings",
                "the original paper's settings",
                "no factor √d_model",
                "as in the code",
            ),
            Disagreement(
                "one vocabulary or two",
                "the original paper's settings: one",
                "one for each language, and no shared matrix",
                "as in the code",
            ),
            Disagreement("longest sentence", "256 in the table, 512 in a comment", "256", "256"),
            Disagreement(
                "BLEU of 26.4",
                "compared with the paper's on another data set",
                "the target's true beginning is given, and matching letters are counted "
                "between words at the same place",
                "not comparable: ours is sacreBLEU on text that the model wrote by itself",
            ),
        ),
        (
            Repair(
                "The target's padding mask hides rows (queries) instead of columns (keys).",
                "No query may attend to padding. Behind a causal mask, no real word could "
                "attend to padding at the end anyway, so the logits of real words stay the "
                "same.",
            ),
        ),
    ),
    "vanilla": Source(
        "github.com/mr-raccoon-97/vanilla-transformer",
        (
            Disagreement(
                "first frequency",
                "k = 0 in the formula, k = 1 in the matrix below it",
                "k = 1",
                "k = 1",
            ),
            Disagreement(
                "initial weights",
                "Xavier normal, in the text's code",
                "PyTorch's own for linear layers",
                "as in the repository's code",
            ),
        ),
        (
            Repair(
                "The decoder's second attention takes queries and keys from the encoder and values "
                "from the decoder.",
                "Queries come from the decoder, keys and values from the encoder. The original "
                "fails unless source and target are equally long.",
            ),
            Repair(
                "The positional table is cut along its dimensions instead of its positions.",
                "The table's first rows are added. The original fails unless the sentence is "
                "at least as long as the model is wide, and the table as long as the sentence. "
                "A one-word sentence passes with a wrong shape: it comes out as long as the "
                "table.",
            ),
            Repair(
                "Masked scores are −∞, with no special case: a row without an allowed key "
                "is NaN, which the next layers spread.",
                "Such a row is all zeros here, as in the paper's model.",
            ),
        ),
        "It has layers only. Embeddings × √d_model, stacks and generator are the paper's. "
        "Dropout is applied only in the feed-forward, as in its layers, and not to sums of "
        "embeddings and positions.",
    ),
    "van_dijck": Source(
        "Max van Dijck: an interpretation of the paper, based on The Annotated Transformer",
        (
            Disagreement(
                "the blended value of “rollercoaster”",
                "5.65",
                "0.45 · 10 + 0.45 · 9 + 0.1 · (−3) = 8.25",
                "computed on this page",
            ),
            Disagreement(
                "the value of “boring”",
                "−3 in the first dictionary",
                "3 in the second, whose keys are lists, which a dictionary does not accept",
                "−3",
            ),
            Disagreement(
                "position of one word",
                "exponents doubled: 0.01 where the paper has 0.1",
                "the paper's, in the vectorised form",
                "the paper's",
            ),
            Disagreement(
                "width of a word vector",
                "3 numbers per word",
                "layers that expect 3 numbers for each of 6 heads",
                "18 numbers per word, 3 per head",
            ),
        ),
        (
            Repair(
                "Heads are kept in plain lists, which PyTorch does not search.",
                "They are registered, so they are trained, saved and moved with the model.",
            ),
            Repair(
                "An encoder layer runs `heads` and `fc_out`, which do not belong to it.",
                "It runs its own heads. In a notebook, Python would find the names of an "
                "earlier example, and all layers would share them unnoticed.",
            ),
            Repair(
                "A head projects `x`, which it never received, instead of Q, K and V.",
                "It projects what it receives.",
            ),
            Repair(
                "`torch.split(x, num_heads)` cuts slices of width num_heads, not num_heads slices.",
                "There are as many slices as heads. Both agree where a head has as many "
                "numbers as there are heads, as in the example of 3.",
            ),
            Repair(
                "The decoder's two attentions both run `masked_heads`, which it does not have; "
                "the heads made for the second are never used.",
                "Each attention runs its own heads.",
            ),
            Repair(
                "The causal mask reaches the decoder but not its heads, and the function fills "
                "`scores`, a name that does not exist.",
                "The mask reaches the softmax. In the original, a word could attend to the "
                "next one, which it should predict.",
            ),
            Repair(
                "Dropout is applied to `p_attn`, which does not exist.", "None, as in its model."
            ),
            Repair(
                "The decoder's parameter is `encoder_out`, but its body reads `encoder_output`.",
                "One name.",
            ),
            Repair(
                "The decoder is inside `nn.Sequential`, which passes on one argument, not three.",
                "A stack that passes on memory and masks.",
            ),
            Repair(
                "The table is spelt `postitional_encoding` where it is read.",
                "One name.",
            ),
            Repair(
                "The vectorised table fails for an odd width, as in its own example of 3: one "
                "cosine column, but two columns of angles.",
                "The last cosine is left out.",
            ),
            Repair(
                "The last linear layer lacks its second size and its closing parenthesis.",
                "It gives one logit per word of the vocabulary.",
            ),
            Repair(
                "`nn.Softmax()` names no dimension. Of three dimensions PyTorch takes the "
                "first, so probabilities would add up over sentences.",
                "Logits; the page takes the softmax over the vocabulary.",
            ),
        ),
        "Its text deliberately leaves out padding masks; ours has them.",
    ),
    "bloem": Source(
        "peterbloem.nl/blog/transformers",
        (
            Disagreement(
                "mean over positions",
                "over the sequence",
                "over padding too, which attention also reads",
                "over words only, and no token attends to padding",
            ),
            Disagreement(
                "a stack of layers without positions",
                "called permutation-invariant",
                "if the input is permuted, so is each output; only the mean stays the same",
                "as in the code",
            ),
        ),
        (
            Repair(
                "Positions are counted on the CPU, wherever the words are.",
                "The table is stored with the model, so it also runs on a GPU.",
            ),
        ),
        "The notebook has no dropout and names no sizes except 8 heads and 4 times the width "
        "in the feed-forward. Ours can drop weights, sublayers and whole tokens, which "
        "`reviews` was trained with; the default rate is 0. `reviews` also started with "
        "smaller tables (standard deviation 1/√d_model; PyTorch's own is 1).",
    ),
    "decoder_only": Source(
        "arxiv.org/abs/1801.10198",
        completed="Radford et al. 2018 used the same decoder with learned positions and GELU. "
        "Here, positions and ReLU are the paper's.",
    ),
    "window": Source(
        "arxiv.org/abs/2004.05150",
        completed="Longformer widens its windows from layer to layer and lets a few tokens attend "
        "to all. Here, every layer has the same window, and cross-attention has none.",
    ),
}
