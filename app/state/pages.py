"""All pages, in the order of the menu."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page. `path`: its path in the address; `script`: its file in views/; `group`: its entry in
    the menu, of which it is a view; `view`: its name among the group's views, "" where it is the
    only one. `head`: it shows the selected head; `reading`: the display options apply; `idle`:
    other controls without effect there."""

    title: str
    group: str
    view: str
    script: str
    path: str
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
        Page("Learn", LEARN, "", "learn", "learn", idle=("switches", "hold", *CHANGES)),
        Page("Attention", ATTENTION, "Matrix", "attention", "", head=True, reading=True),
        Page("Lines", ATTENTION, "Lines", "lines", "lines", head=True, reading=True),
        Page("Alignment", ATTENTION, "Alignment", "alignment", "alignment", head=True),
        Page("Heads", ATTENTION, "Find a head", "heads", "heads", head=True),
        Page("Generate", GENERATE, "", "generate", "generate", head=True, idle=("hold",)),
        Page("Inside a head", INSIDE, "By hand", "inside", "inside", head=True),
        Page("Query–key–value", INSIDE, "Query, key, value", "lookup", "lookup", head=True),
        Page("Ablation", EXPERIMENTS, "Without it", "ablation", "ablation"),
        Page("Attribution", EXPERIMENTS, "What adds up", "attribution", "attribution", head=True),
        Page("Residual stream", EXPERIMENTS, "Residual stream", "residual", "residual"),
        Page(
            "Architecture",
            MODEL,
            "Architecture",
            "model_page",
            "model",
            head=True,
            idle=("head", "switch_head", *PADDING_MASKS),
        ),
        Page(
            "Tokenizer",
            MODEL,
            "Tokenizer",
            "tokenizer",
            "tokenizer",
            idle=("causal", *PADDING_MASKS, *CHANGES),
        ),
        Page("Positional encoding", MODEL, "Positions", "positions", "positions", idle=CHANGES),
        Page(
            "From 2017 to Llama",
            MODEL,
            "From 2017 to Llama",
            "lineage",
            "lineage",
            idle=("switches", "hold", "step", "player", *CHANGES),
        ),
        Page("PyTorch", CHECK, "PyTorch", "compare", "compare", head=True),
        Page(
            "Implementations",
            CHECK,
            "Implementations",
            "family",
            "family",
            idle=("switches", "hold", "step", "player", *CHANGES),
        ),
        Page("BertViz", CHECK, "BertViz", "bertviz_page", "bertviz", head=True),
        Page("Export", SHARE, "", "take_away", "take-away", head=True, reading=True),
    )
}
GROUPS = {  # entry of the menu → its views; Share is a menu of its own
    group: [page for page in PAGES.values() if page.group == group]
    for group in (LEARN, ATTENTION, GENERATE, INSIDE, EXPERIMENTS, MODEL, CHECK)
}
