"""The pages there are, in the order of the menu."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """`script` is its file in views/, `path` its place in the address, `help` its one sentence."""

    title: str
    script: str
    path: str
    help: str

    @property
    def file(self) -> str:
        """Its script, as st.page_link names it."""
        return f"views/{self.script}.py"


HOME, TAKE_AWAY = "Attention", "Take away"
PAGES = {
    page.title: page
    for page in (
        Page(
            HOME,
            "attention",
            "",
            "Where every head of every layer looks, for your sentence.",
        ),
        Page(
            "Heads",
            "heads",
            "heads",
            "Every head in numbers, and the textbook names it is nearest to.",
        ),
        Page(
            "Model",
            "model_page",
            "model",
            "The whole model in one picture, with its parameters and shapes.",
        ),
        Page(
            "Inside",
            "inside",
            "inside",
            "One head step by step: formula, numbers and code.",
        ),
        Page(
            "Positions",
            "positions",
            "positions",
            "How the model knows the order of words: the positional encodings it adds.",
        ),
        Page(
            "Look-up",
            "lookup",
            "lookup",
            "Attention as a dictionary that answers by similarity: vectors to drag, then the "
            "queries and keys of a head.",
        ),
        Page(
            "Residual",
            "residual",
            "residual",
            "Each piece's vector from layer to layer, and what the model would answer there.",
        ),
        Page(
            "Compare",
            "compare",
            "compare",
            "The same weights in torch.nn.Transformer, side by side.",
        ),
        Page(
            "Family",
            "family",
            "family",
            "The systems that describe a Transformer from scratch, and what each does its own way, "
            "measured on your sentence.",
        ),
        Page(
            "BertViz",
            "bertviz_page",
            "bertviz",
            "BertViz's head, model and neuron view, without internet.",
        ),
        Page(
            TAKE_AWAY,
            "take_away",
            "take-away",
            "Pictures, tables and a page of your own, and one ZIP that holds all of it and can be "
            "checked.",
        ),
    )
}
