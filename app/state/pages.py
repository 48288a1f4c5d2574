"""All pages, in the order of the menu."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page. `path`: its path in the address; `script`: its file in views/; `group`: its entry in
    the menu, of which it is a view; `view`: its name among the group's views, "" where it is the
    only one; `help`: one sentence. `head`: it shows the selected head; `reading`: the display
    options apply; `idle`: other controls without effect there."""

    title: str
    group: str
    view: str
    script: str
    path: str
    help: str
    head: bool = False
    reading: bool = False
    idle: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The page's name in code and in files."""
        return self.path or HOME

    @property
    def file(self) -> str:
        """The page's script, as st.page_link takes it."""
        return f"views/{self.script}.py"


HOME, EXPORT = "attention", "take-away"
PADDING_MASKS = "src_padding", "tgt_padding", "memory_padding"
CHANGES = "what_if", "shows"
LEARN, ATTENTION, GENERATE, INSIDE = "Learn", "Attention", "Generate", "Inside a head"
EXPERIMENTS, MODEL, CHECK, SHARE = "Experiments", "Model", "Check", "Share"
PAGES = {
    page.key: page
    for page in (
        Page(
            "Learn",
            LEARN,
            "",
            "learn",
            "learn",
            "Seven lessons on the live model: predict, then see.",
            idle=("switches", "hold", *CHANGES),
        ),
        Page(
            "Attention",
            ATTENTION,
            "Matrix",
            "attention",
            "",
            "What every head of every layer attends to, for your sentence.",
            head=True,
            reading=True,
        ),
        Page(
            "Alignment",
            ATTENTION,
            "Alignment",
            "alignment",
            "alignment",
            "Which words of source and target go together, as lines between them.",
            head=True,
        ),
        Page(
            "Heads",
            ATTENTION,
            "Find a head",
            "heads",
            "heads",
            "Every head in numbers, and the patterns it is nearest to.",
            head=True,
        ),
        Page(
            "Generate",
            GENERATE,
            "",
            "generate",
            "generate",
            "How the output comes about, token by token: the probabilities of each next token, and "
            "what every head attends to for it.",
            head=True,
            idle=("hold",),
        ),
        Page(
            "Inside a head",
            INSIDE,
            "By hand",
            "inside",
            "inside",
            "One head step by step: formula, numbers and code.",
            head=True,
        ),
        Page(
            "Query–key–value",
            INSIDE,
            "Query, key, value",
            "lookup",
            "lookup",
            "Attention as a dictionary that answers by similarity: vectors to drag, then the "
            "queries and keys of a head.",
            head=True,
        ),
        Page(
            "Ablation",
            EXPERIMENTS,
            "Without it",
            "ablation",
            "ablation",
            "What every head, sublayer and token is for: each is changed by itself, and you see "
            "what that does to the output.",
        ),
        Page(
            "Attribution",
            EXPERIMENTS,
            "What adds up",
            "attribution",
            "attribution",
            "Where a predicted token comes from: the parts of the model that add up to its logit, "
            "and the source words, by attention, by gradient and by removal.",
            head=True,
        ),
        Page(
            "Residual stream",
            EXPERIMENTS,
            "Residual stream",
            "residual",
            "residual",
            "Each token's vector from layer to layer, and what the model would predict there.",
        ),
        Page(
            "Architecture",
            MODEL,
            "Architecture",
            "model_page",
            "model",
            "The paper's figure 1 of this model, with the shapes and parameters of its blocks.",
            head=True,
            idle=("head", "switch_head", *PADDING_MASKS),
        ),
        Page(
            "Tokenizer",
            MODEL,
            "Tokenizer",
            "tokenizer",
            "tokenizer",
            "From the typed text to token ids: normalisation, pre-tokens, and the merges of BPE.",
            idle=("causal", *PADDING_MASKS, *CHANGES),
        ),
        Page(
            "Positional encoding",
            MODEL,
            "Positions",
            "positions",
            "positions",
            "How the model knows the order of words: the positional encodings it adds.",
            idle=CHANGES,
        ),
        Page(
            "From 2017 to Llama",
            MODEL,
            "From 2017 to Llama",
            "lineage",
            "lineage",
            "What a Llama does differently from the Transformer of 2017, one change at a time.",
            idle=("switches", "hold", "step", "player", *CHANGES),
        ),
        Page(
            "PyTorch",
            CHECK,
            "PyTorch",
            "compare",
            "compare",
            "The same weights in torch.nn.Transformer, side by side.",
            head=True,
        ),
        Page(
            "Implementations",
            CHECK,
            "Implementations",
            "family",
            "family",
            "Systems that describe a Transformer from scratch, and what each does its own way, "
            "measured on your sentence.",
            idle=("switches", "hold", "step", "player", *CHANGES),
        ),
        Page(
            "BertViz",
            CHECK,
            "BertViz",
            "bertviz_page",
            "bertviz",
            "BertViz's head, model and neuron view, without internet.",
            head=True,
        ),
        Page(
            "Export",
            SHARE,
            "",
            "take_away",
            "take-away",
            "Pictures, tables and a web page, and one ZIP that holds all of it and can be checked.",
            head=True,
            reading=True,
        ),
    )
}
GROUPS = {  # entry of the menu → its views; Share is a menu of its own
    group: [page for page in PAGES.values() if page.group == group]
    for group in (LEARN, ATTENTION, GENERATE, INSIDE, EXPERIMENTS, MODEL, CHECK)
}
