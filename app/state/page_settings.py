"""The settings that pages draw themselves, by page; those of the bar are in settings.py."""

from collections.abc import Sequence

from headlight.app.state import options
from headlight.app.state.setting import Context, Setting
from headlight.model.analysis.lineage import LINE, PAPER_MODEL
from headlight.model.probing.sweeps import NEED_ANOTHER

# Of several pages.
FOLLOW = Setting(
    "follow",
    "Query",
    options.CLEAREST_ROW,
    "select",
    "The query to follow. It starts with the row that *Heads* marks, or that you selected there.",
    look={"width": 260},
)
KEY = Setting("to", "Key", options.LARGEST_WEIGHT, "select", look={"width": 260})
PICTURE = Setting(
    "picture",
    "Picture",
    "",
    "segmented",
    "Which picture this page shows.",
    look={"label_visibility": "collapsed", "width": "content"},
)


def _bertviz(context: Context) -> Sequence[str]:
    """Neuron shows queries and keys, which weights alone do not tell."""
    return [view for view in options.BERTVIZ if not (context.lacks and view == "neuron")]


def _sweeps(context: Context) -> Sequence[str]:
    return [
        title
        for title, name in options.SWEEPS.items()
        if context.has_other or name not in NEED_ANOTHER
    ]


WRITING = (  # what the model writes, on the stage
    Setting(
        "beginning",
        "Start of the output",
        "",
        "line",
        "Token ids that the output starts with, such as “12-45”. The model continues from there.",
    ),
    Setting("width", "Beams", 5, "number", least=2, most=10),
    Setting(
        "temperature",
        "Temperature",
        1.0,
        "number",
        "Divides the logits. Below 1, the probabilities become more peaked.",
        least=0.1,
        most=5.0,
        look={"step": 0.1},
    ),
    Setting("seed", "Seed", 0, "number", "A new seed draws new tokens.", most=9999),
)
STAGE_CONTROLS = (
    FOLLOW,
    KEY,
    *WRITING,
    Setting(
        "measured_on",
        "Measured on",
        options.SURVEY,
        "select",
        "Source of the numbers: this sentence, the model's examples, or its survey of many "
        "sentences, with 95% intervals.",
        options=options.MEASURED_ON,
    ),
    Setting("numbers", "Weights of the selected head", False, "expander"),
    Setting("all_heads", "Every head in numbers", False, "expander"),
    Setting("clearest", "Sentences that show this head best", False, "expander"),
    Setting("all_effects", "What each part is needed for", False, "expander"),
    Setting(
        "sweep",
        "Change one at a time",
        "Heads off",
        "segmented",
        "Choose a comparison under *More changes* to patch heads or the residual stream from it.",
        options=_sweeps,
        among=tuple(options.SWEEPS),
    ),
)
INSIDE_CONTROLS = (
    Setting(
        "at",
        "Step",
        options.STEPS[2],
        "segmented",
        options=options.STEPS,
        look={"label_visibility": "collapsed"},
    ),
    FOLLOW,
    KEY,
)
LOOKUP_CONTROLS = (
    Setting(
        "scaled",
        "Divide scores by √2",
        True,
        "toggle",
        "√2, because these vectors have two numbers. Off: the same order, but more peaked weights.",
        look={"width": "content"},
    ),
)
TOKENIZER_CONTROLS = (
    Setting(
        "text",
        "Text",
        "source",
        "segmented",
        "The encoder reads the source, the decoder the target.",
        look={"label_visibility": "collapsed", "width": "content"},
    ),
    Setting(
        "word", "Pre-token", "", "select", look={"label_visibility": "collapsed", "width": 260}
    ),
)
LINEAGE_CONTROLS = (
    Setting(
        "swap",
        "Last change",
        PAPER_MODEL,
        "select",
        "The last part that is replaced; those before it are, too.",
        options=(PAPER_MODEL, *LINE),
    ),
)
BERTVIZ_CONTROLS = (
    Setting(
        "bertviz",
        "View",
        "head",
        "segmented",
        "Head: one layer, all heads overlaid. Model: every head, small. Neuron: how queries "
        "and keys produce one head's weights.",
        options=_bertviz,
        among=options.BERTVIZ,
    ),
    Setting(
        "leave_out",
        "Layers to leave out",
        [],
        "several",
        "The fewer layers, the faster the drawing.",
        item=int,
        look={"placeholder": "none", "width": 300},
    ),
    Setting(
        "draw",
        "Draw",
        False,
        "toggle",
        "BertViz draws every weight as a line. Texts of more than "
        f"{options.DRAWN_AT_ONCE} tokens are drawn only on request.",
    ),
)
BARE = {"label_visibility": "collapsed"}
EXPORT_CONTROLS = (
    Setting("format", "Format", "PDF", "segmented", options=options.FORMATS, look=BARE),
    Setting("heads_of", "Heads", options.ONE, "segmented", options=options.HEADS_OF, look=BARE),
    Setting("size", "Width", "16 cm", "segmented", options=options.WIDTHS_ON_PAPER, look=BARE),
    Setting(
        "weights_of",
        "Weights of",
        options.ALL,
        "segmented",
        options=(options.ALL, options.ONE),
        look=BARE,
    ),
)
