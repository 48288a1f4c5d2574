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
                "section 5.4 names sublayer outputs and sums of embeddings and positions only",
                "the authors' tensor2tensor later dropped attention weights too",
                "as that code",
            ),
            Disagreement(
                "where the norm stands",
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
                "where the norm stands",
                "after the sum: LayerNorm(x + Sublayer(x))",
                "before the sublayer, and one more on each stack",
                "as the code",
            ),
            Disagreement(
                "embeddings and generator",
                "one matrix for both embeddings and the output",
                "three matrices, and a bias on the last",
                "as the code",
            ),
            Disagreement(
                "kind of norm",
                "layer normalisation, cited",
                "divides by the unbiased standard deviation, and eps is added outside the root",
                "as the code",
            ),
            Disagreement(
                "masked scores", "minus infinity", "−1e9, which half precision cannot hold", "−1e9"
            ),
            Disagreement(
                "what the generator says",
                "probabilities, by a softmax",
                "logarithms of probabilities",
                "as the code",
            ),
            Disagreement(
                "dropout",
                "on sublayer outputs and on sums of embeddings and positions",
                "also on attention weights and after the ReLU",
                "as the code",
            ),
        ),
        (
            Repair(
                "`make_model(dropout=…)` does not reach the attention weights: their rate stays "
                "0.1 whatever is given.",
                "One rate for all; at the default of 0.1 nothing changes.",
            ),
        ),
    ),
    "hyunwoongko": Source(
        "github.com/hyunwoongko/transformer",
        (
            Disagreement(
                "size of embeddings",
                "the original paper's settings",
                "no factor √d_model",
                "as the code",
            ),
            Disagreement(
                "one vocabulary or two",
                "the original paper's settings: one",
                "one for each language, and no matrix shared",
                "as the code",
            ),
            Disagreement("longest sentence", "256 in the table, 512 in a comment", "256", "256"),
            Disagreement(
                "BLEU of 26.4",
                "beside the paper's on another data set",
                "the target's true beginning is given, and matches are counted in letters of words "
                "at the same place",
                "not comparable: ours is sacreBLEU on what the model wrote by itself",
            ),
        ),
        (
            Repair(
                "The target's padding mask hides rows (queries) in place of columns (keys).",
                "No query may attend to padding. Behind a causal mask no real word could attend "
                "to padding at the end anyway, so logits of real words stay the same.",
            ),
        ),
    ),
    "vanilla": Source(
        "github.com/mr-raccoon-97/vanilla-transformer",
        (
            Disagreement(
                "first frequency",
                "the formula begins at k = 0, the matrix under it at k = 1",
                "k = 1",
                "k = 1",
            ),
            Disagreement(
                "first weights",
                "normal, after Xavier, in the text's code",
                "PyTorch's own for linear layers",
                "as the repository's code",
            ),
        ),
        (
            Repair(
                "The decoder's second attention takes queries and keys from the encoder and values "
                "from the decoder.",
                "Queries come from the decoder, keys and values from the encoder. As it stood it "
                "fails, unless source and target are equally long.",
            ),
            Repair(
                "The positional table is cut along its dimensions in place of its positions.",
                "The table's first rows are added. As it stood the sum fails, unless the sentence "
                "is at least as long as the model is wide and the table as long as the sentence. "
                "A sentence of one word passes with a wrong shape: it comes out as long as the "
                "table.",
            ),
            Repair(
                "Masked scores are −∞ and nothing else is done, so that a row that may attend "
                "to nothing is NaN, which the next layers spread.",
                "Such a row is all zeros, as in the paper's model here.",
            ),
        ),
        "It has layers only: embeddings × √d_model, the stacks and the generator are the paper's, "
        "but sums of embeddings and positions are not dropped: dropout stands in the feed-forward "
        "alone, as in its layers.",
    ),
    "van_dijck": Source(
        "Max van Dijck: an interpretation of the paper, after The Annotated Transformer",
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
                "3 in the second, whose keys are lists, which a dictionary refuses",
                "−3",
            ),
            Disagreement(
                "position of one word",
                "exponents doubled: 0.01 where the paper has 0.1",
                "the paper's, in the vectorised form",
                "the paper's",
            ),
            Disagreement(
                "width of a word",
                "3 numbers a word",
                "layers that expect 3 numbers for each of 6 heads",
                "18 numbers a word, 3 a head",
            ),
        ),
        (
            Repair(
                "Heads stand in plain lists, which PyTorch does not search.",
                "They are registered: trained, saved and moved with the model.",
            ),
            Repair(
                "An encoder layer runs `heads` and `fc_out`, which it does not own.",
                "It runs its own heads. In a notebook the names of an earlier example would be "
                "found, and every layer would share them unnoticed.",
            ),
            Repair(
                "A head projects `x`, which it never received, in place of Q, K and V.",
                "It projects what it is given.",
            ),
            Repair(
                "`torch.split(x, num_heads)` cuts slices that are num_heads wide, not num_heads "
                "slices.",
                "As many slices as heads. They agree where there are as many heads as numbers a "
                "head, as in the example of 3.",
            ),
            Repair(
                "The decoder's two attentions both run `masked_heads`, a name that it lacks; the "
                "heads made for the second are never used.",
                "Each attention runs its own.",
            ),
            Repair(
                "The causal mask is made and handed to the decoder, but not to its heads, and the "
                "function fills `scores`, a name that does not exist.",
                "The mask reaches the softmax. As it stood a word could attend to the next one, "
                "which it is to predict.",
            ),
            Repair("Dropout is applied to `p_attn`, which does not exist.", "None, as its model."),
            Repair(
                "The decoder's parameter is `encoder_out`, its body reads `encoder_output`.",
                "One name.",
            ),
            Repair(
                "The decoder stands in `nn.Sequential`, which passes one argument on, not three.",
                "A stack that passes memory and masks on.",
            ),
            Repair(
                "The table is called `postitional_encoding` where it is read.",
                "One name.",
            ),
            Repair(
                "The vectorised table fails for an odd width, as in its own example of 3: one "
                "cosine column, two columns of angles.",
                "The last cosine is left out.",
            ),
            Repair(
                "The last linear layer lacks its second size and its closing parenthesis.",
                "It gives one score a word of the vocabulary.",
            ),
            Repair(
                "`nn.Softmax()` names no dimension; of three PyTorch then takes the first, "
                "so probabilities would add up over sentences.",
                "Logits; the page takes the softmax over the vocabulary.",
            ),
        ),
        "Its text leaves padding masks out and says so; ours are there.",
    ),
    "bloem": Source(
        "peterbloem.nl/blog/transformers",
        (
            Disagreement(
                "mean over positions",
                "over the sequence",
                "over padding too, which attention reads as well",
                "over words alone, and no token attends to padding",
            ),
            Disagreement(
                "a stack of layers without positions",
                "called invariant under permutation",
                "each layer permutes along; only the mean does not change",
                "as the code",
            ),
        ),
        (
            Repair(
                "Positions are counted on the CPU, wherever the words are.",
                "The table lies with the model, so that it runs on a GPU.",
            ),
        ),
        "The notebook has no dropout and names no sizes but 8 heads, and 4 times the width in the "
        "feed-forward. Ours can drop weights, sublayers and whole tokens of the text, which "
        "`reviews` was trained with; the rate is 0 unless another is chosen. `reviews` also "
        "began with smaller tables (standard deviation 1/√d_model, PyTorch's own is 1).",
    ),
    "decoder_only": Source(
        "arxiv.org/abs/1801.10198",
        completed="Radford et al. 2018 took the same decoder with learned positions and GELU; "
        "positions and ReLU are the paper's here.",
    ),
}
