"""The options that settings offer, by the names that users read."""

PLACES = {  # of the stage: name in its address → what it may be, as in its state.js
    "depth": ("model", "heads", "head", "row", "number"),
    "whole": ("maps", "after", "needs", "paths", "positions", "input"),
    "heads": ("layer", "habit", "effect"),
    "view": ("matrix", "lines", "best", "pytorch"),
    "stop": ("scores", "scaled", "weights", "output", "word"),
    "number": ("order", "largest", "why"),
    "write": ("one", "beams", "sampled"),
}
FORMER_VIEWS = {  # page of a lesson's view, as they were → what took its place
    "attention": {"page": "stage"},
    "alignment": {"page": "stage", "view": "best"},
}
COLOURS = "ink", "viridis"  # names in theme.WEIGHTS
SWEEPS = {  # name on the page Ablation → name in probing/sweeps.py
    "Heads off": "heads",
    "Sublayers skipped": "sublayers",
    "Tokens hidden": "tokens",
    "Heads patched": "patches",
    "Heads patched, per token": "patches by position",
    "Residual stream patched, per token": "residual by position",
}
STEPS = (
    "Input",
    "Projections",
    "Scores",
    "Scaling",
    "Mask",
    "Softmax",
    "Values",
    "Concatenation",
    "Output",
    "Add & norm",
    "Feed-forward",
)
BERTVIZ = ("head", "model", "neuron")
DRAWN_AT_ONCE = 40  # tokens up to which BertViz draws at once
ALL, ONE = "all heads", "selected head"
FORMATS = "PDF", "SVG", "PNG"
HEADS_OF = ONE, ALL
WIDTHS_ON_PAPER = "8 cm", "16 cm", "as it is"  # the width of a picture on paper
MEASURED_ON = THIS_SENTENCE, EXAMPLES, SURVEY = "This sentence", "Example sentences", "Survey"
THIS, OTHER = "Current", "Comparison"
CLEAREST_ROW, LARGEST_WEIGHT = "clearest row", "largest weight"
