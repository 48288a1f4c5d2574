"""Every setting, declared once: what it may be, how it is drawn, and where it belongs.

A setting's widget, its place in the address, its clamping, its line in an export's header and
whether a run depends on it follow from its declaration. No Streamlit here: files read it too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.pages import EXPORT, HOME
from app.setting import ABSENT, LONGEST_TEXT, MANY, Catalog, Context, Setting
from model.analysis import lineage
from model.analysis.head_metrics import ANY, RULES, THRESHOLD
from model.analysis.reading import SPECIAL_TOKENS
from model.masks import Masks
from model.presets import PRESETS
from model.probing import position_tables
from model.probing.head_steps import ABLATIONS
from model.probing.run import FINAL
from model.probing.sweeps import PATCHING as NEED_ANOTHER

SHOWN = ("all", "one kind", "joint")
SCALES = ("linear", "square root", "per row")
ABLATION, PATCHING = "ablation", "patching"
SWEEPS = {  # as the page Ablation calls them → as probing/sweeps.py does
    "Heads off": "heads",
    "Sublayers skipped": "sublayers",
    "Tokens hidden": "tokens",
    "Heads patched": "patches",
    "Heads, by token": "patches by position",
    "Residual stream, by token": "residual by position",
}
ORDERS = ("layer and head", "entropy", "distance", "change", ABLATION, PATCHING)
AVERAGES = {"one head": "", "heads": "heads", "layers": "layers", "both": "both"}
MAX_PADDED = 64  # enough to see padding with any one sentence
MOST_HIDDEN = 0.5  # weights above it are always shown
BASES = (*(int(f) * 10**z for z in range(4) for f in (1, 2, 5)), 10_000)
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
    "Residual, norm",
    "Feed-forward",
)
LAB = ("What is added", "Wavelengths", "Distance", "Rotation", "Other positions", "Swap two words")
GREEDY, BEAM, SAMPLING = DECODING = ("Greedy", "Beam search", "Sampling")
BEST_HEADS, SELECTED, OF_LAYER, INFLUENCE = ALIGNED_BY = (
    "Best heads",
    "Selected head",
    "Mean of its layer",
    "Influence",
)
AT_ROWS = ("as measured", "is read", "is predicted")
SYSTEMS, LINEAGE = IMPLEMENTATIONS = ("Systems", "2017 to today")
BERTVIZ = ("head", "model", "neuron")
DRAWN_AT_ONCE = 40  # tokens that BertViz draws without being asked
ALL, ONE = "all heads", "selected head"
MEASURED_ON = THIS_SENTENCE, EXAMPLES, SURVEY = "This sentence", "Example sentences", "Survey"
TABLE, SCATTER, SENTENCES = HEADS_AS = ("Table", "Scatter", "Sentences")
THIS, WITH, WITHOUT, DIFFERENCE = "This run", "With the changes", "Without", "Difference"
OTHER, TO_OTHER = "Other run", "Difference to it"
WORDS, SELECTED_HEAD = "Three words", "The selected head"
SECOND_TOKEN, LARGEST_WEIGHT = "the second token", "largest weight"

MOST_TOKENS = 100_000


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def pairs_of(text: str) -> list[tuple[str, str]]:
    """Source and target of the lines of a text; "" where a line has no tab, which parts the two.
    Files of sentence pairs may have more columns, which are left out."""
    columns = ((*line.split("\t"), "") for line in lines_of(text))
    return [(source.strip(), target.strip()) for source, target, *_ in columns]


def _lines(context: Context) -> list[str]:
    return list(dict.fromkeys(lines_of(context["source"]))) or [""]


def _models(context: Context) -> Sequence[str]:
    return context.catalog.models() or [""]


def _steps(context: Context) -> Sequence[str]:
    return context.catalog.steps(context["model"]) or (FINAL,)


def _shown(context: Context) -> Sequence[str]:
    """Whose weights there are to see."""
    here = (WITH, WITHOUT, DIFFERENCE) if context["changes"].strip() else (THIS,)
    return (*here, OTHER, TO_OTHER) if context.has_other else here


def _other_models(context: Context) -> Sequence[str]:
    """ "" is the same model."""
    return ["", *context.catalog.alike(context["model"])]


def _other_steps(context: Context) -> Sequence[str]:
    """ "" is the same step, where the other model has it."""
    return ["", *context.catalog.steps(context["other_model"] or context["model"])]


def _sweeps(context: Context) -> Sequence[str]:
    return [
        title for title, name in SWEEPS.items() if context.has_other or name not in NEED_ANOTHER
    ]


def _opening(context: Context, key: str, options: Sequence, otherwise) -> Any:
    """What the model is opened on. It depends on the model alone: the address leaves out what is
    the default, which must not change while one selects."""
    opened = context.structure.opens.get(key) if context.structure else None
    return opened if opened in options else otherwise


def _kinds(context: Context) -> Sequence[str]:
    return list(context.structure.kinds) if context.structure else [context.values.get("kind", "")]


def _layers(context: Context) -> Sequence[int]:
    if context.structure is None:
        return range(1, MANY + 1)
    return [site.layer + 1 for site in context.structure.kinds[context["kind"]]]


def _heads(context: Context) -> Sequence[int]:
    if context.structure is None:
        return range(1, MANY + 1)
    return range(1, context.structure.kinds[context["kind"]][0].n_heads + 1)


def _mask(key: str, label: str, name: str, help: str) -> Setting:
    return Setting(
        key,
        label,
        True,
        "toggle",
        help,
        concerns=lambda context: context.masks(key),
        name=name,
        run=True,
        header=f"without {name}",
        badge=f"{label} off",
    )


# In this order each may depend on those before it.
SETTINGS = {
    setting.key: setting
    for setting in (
        Setting(
            "model",
            "Model",
            "",
            "select",
            "Each was trained for one task; untrained ones have random weights.",
            options=_models,
            opens=lambda context: _models(context)[0],
            name="the model",
            run=True,
        ),
        Setting(
            "device",
            "Device",
            "auto",
            "select",
            "Where the model runs. Auto takes the first GPU, else the CPU.",
            options=lambda context: context.catalog.devices(),
            address=False,  # it decides where the model runs, not what it computes
        ),
        Setting(
            "step",
            "Training step",
            FINAL,
            "steps",
            "The same sentence and head, earlier in training.",
            options=_steps,
            concerns=lambda context: len(_steps(context)) > 1,
            name="the training step",
            run=True,
            header="step {}",
            badge="Step {}",
        ),
        Setting(
            "hold",
            "Hold the translation",
            True,
            "toggle",
            "The decoder reads what the final model writes, at every step, so that steps compare. "
            "Off: it reads what this step writes.",
            concerns=lambda context: context.writes and context["step"] != FINAL,
            name="whether the translation is held",
            run=True,
            header="with its own translation",
        ),
        Setting(
            "source",
            "Source sentence",
            "",
            "area",
            "What the encoder reads. Ctrl+Enter, or a click elsewhere, runs the model. Several "
            "lines are offered as a list. What stands after a tab is taken for the target.",
            opens=lambda context: (context.catalog.examples(context["model"]) or [""])[0],
            name="the source",
            run=True,
            look={"height": 100, "max_chars": LONGEST_TEXT},
        ),
        Setting(
            "line",
            "Which line",
            "",
            "select",
            "The line the model reads.",
            options=_lines,
            opens=lambda context: _lines(context)[0],
            concerns=lambda context: len(_lines(context)) > 1,
            name="the line",
            run=True,
        ),
        Setting(
            "target",
            "Target",
            "",
            "line",
            "What the decoder reads. Leave it empty and the model writes it; type to see how it "
            "reads your own.",
            concerns=lambda context: context.writes,
            name="the target",
            run=True,
            badge="Target typed",
        ),
        _mask(
            "causal",
            "Causal mask",
            "the causal mask",
            "Decoder self-attention: no target token may attend to a later one. Off: it attends "
            "to the token that it is to predict.",
        ),
        _mask(
            "src_padding",
            "Source padding mask",
            "the source padding mask",
            "Encoder self-attention: nobody may attend to source padding. Pad the sentence to see "
            "it.",
        ),
        _mask(
            "tgt_padding",
            "Target padding mask",
            "the target padding mask",
            "Decoder self-attention: nobody may attend to target padding. With the causal mask on, "
            "only padding itself could.",
        ),
        _mask(
            "memory_padding",
            "Cross padding mask",
            "the cross-attention padding mask",
            "Cross-attention: no target token may attend to source padding. Pad the sentence to "
            "see it.",
        ),
        Setting(
            "pad_to",
            "Pad to",
            0,
            "number",
            "Adds padding to source and target, so that the padding masks have something to do.",
            most=MAX_PADDED,
            name="the padding",
            run=True,
            header="padded to {} tokens",
            badge="Padding {}",
        ),
        Setting(
            "changes",
            "Changes",
            "",
            "line",
            name="what is changed",
            run=True,
            header="changed: {}",
        ),
        Setting(
            "other",
            "Other sentence",
            "",
            "line",
            name="the other sentence",
            run=True,
            header="other sentence: {}",
            look={"placeholder": "the same"},
        ),
        Setting(
            "other_model",
            "Its model",
            "",
            "select",
            "Models that read the same tokens.",
            options=_other_models,
            concerns=lambda context: len(_other_models(context)) > 1,
            name="the model of the other run",
            run=True,
            header="other run: model {}",
            look={"format_func": lambda name: name or "the same"},
        ),
        Setting(
            "other_step",
            "Its training step",
            "",
            "select",
            options=_other_steps,
            concerns=lambda context: len(_other_steps(context)) > 1,
            name="the training step of the other run",
            run=True,
            header="other run: step {}",
            look={"format_func": lambda step: step or "the same"},
        ),
        Setting(
            "other_masks",
            "Its masks as trained",
            False,
            "toggle",
            "All masks on; off: the same masks as here.",
            concerns=lambda context: not all(context[key] for key in MASKS),
            name="the masks of the other run",
            run=True,
            header="other run: all masks",
        ),
        Setting(
            "shows",
            "Weights",
            THIS,
            "segmented",
            "Of the model with the changes or without, of the other run, or a difference.",
            options=_shown,
            among=(THIS, WITH, WITHOUT, DIFFERENCE, OTHER, TO_OTHER),
            opens=lambda context: _shown(context)[0],
            name="which weights are shown",
            run=True,
            header="shown: {}",
            concerns=lambda context: len(_shown(context)) > 1,
        ),
        Setting(
            "kind",
            "Attention",
            "cross",
            "segmented",
            "Encoder: source attends to source. Decoder: target to target. Cross: target to "
            "source.",
            options=_kinds,
            opens=lambda context: _opening(context, "kind", _kinds(context), _kinds(context)[-1]),
        ),
        Setting(
            "layer",
            "Layer",
            1,
            "segmented",
            "Layer 1 reads the embeddings, every other layer the one before it.",
            options=_layers,
            least=1,
            most=MANY,
            opens=lambda context: _opening(context, "layer", _layers(context), _layers(context)[0]),
        ),
        Setting(
            "head",
            "Head",
            1,
            "segmented",
            "The heads of a layer read the same text side by side, each in its own way.",
            options=_heads,
            opens=lambda context: _opening(context, "head", _heads(context), 1),
            least=1,
            most=MANY,
        ),
        Setting(
            "show",
            "Grid",
            "all",
            "segmented",
            "Encoder, decoder and cross-attention together; that of the selected head alone; or "
            "source and target in one square.",
            options=SHOWN,
        ),
        Setting(
            "scale",
            "Scale",
            "linear",
            "segmented",
            "Square root lifts small weights out of the dark; per row makes the largest weight of "
            "every row the brightest.",
            options=SCALES,
        ),
        Setting(
            "order",
            "Order of heads",
            "layer and head",
            "select",
            "The smallest entropy or distance first; what masks and changes move most; what costs "
            "the score most, off (ablation) or patched from the other run.",
            options=lambda context: ORDERS if context.has_other else ORDERS[:-1],
            among=ORDERS,
        ),
        Setting(
            "score_at",
            "Score",
            0,
            "select",
            "What an effect is measured on: the log-probability of the whole target, or of one "
            "token at one row.",
            most=MOST_TOKENS,
            concerns=lambda context: context.predicts_tokens,
        ),
        Setting(
            "score_token",
            "Token",
            "",
            "line",
            "Its log-probability at that row. Empty: the most probable one.",
            concerns=lambda context: context["score_at"] > 0,
            look={"placeholder": "most probable"},
        ),
        Setting(
            "score_against",
            "less token",
            "",
            "line",
            "With a second token, the difference of both logits.",
            concerns=lambda context: context["score_at"] > 0,
            look={"placeholder": "none"},
        ),
        Setting(
            "average",
            "Mean over",
            "one head",
            "segmented",
            "The selected head, or a mean over the heads of its layer, over its head number in all "
            "layers, or over both.",
            options=tuple(AVERAGES),
        ),
        Setting(
            "special",
            "Special tokens",
            "show",
            "segmented",
            "<s>, </s> and padding: shown; hidden; or hidden and each row scaled to 1 again.",
            options=SPECIAL_TOKENS,
        ),
        Setting(
            "words",
            "Whole words",
            False,
            "toggle",
            "Tokens of a word are merged: rows averaged, columns summed.",
        ),
        Setting(
            "least",
            "Hide weights below",
            0.0,
            "slider",
            "Smaller weights are drawn as 0.",
            most=MOST_HIDDEN,
            look={"step": 0.01},
        ),
        Setting(
            "pattern",
            "Pattern",
            ANY,
            "select",
            f"Only heads with a score of {THRESHOLD:.0%} or more for it; 100% is the head of the "
            "textbook.",
            options=(ANY, *RULES),
        ),
        Setting(
            "projector",
            "Projector",
            False,
            "toggle",
            "Large letters and thick lines, to be read from the last row.",
        ),
        Setting("numbers", "The weights as a table", False, "expander", pages=(HOME,)),
        Setting("zoom", "The weights with zoom and hover", False, "expander", pages=(HOME,)),
        *(
            Setting(
                f"first_{axis}",
                f"From {axis}",
                1,
                "number",
                f"A long text is shown in part: from this {axis} on.",
                least=1,
                most=MOST_TOKENS,
                pages=(HOME,),
                look={"width": 140},
            )
            for axis in ("query", "key")
        ),
        Setting(
            "measured_on",
            "Measured on",
            SURVEY,
            "segmented",
            "What the numbers are of: this sentence; the example sentences of this model; or the "
            "many sentences of its survey, with 95 % intervals. Pictures are of this sentence.",
            options=MEASURED_ON,
            pages=("heads",),
        ),
        Setting(
            "heads_as",
            "Heads as",
            TABLE,
            "segmented",
            "A table that sorts; any two of its numbers as a scatter plot; or the sentences in "
            "which the selected head does most what it is named for.",
            options=HEADS_AS,
            pages=("heads",),
        ),
        Setting(
            "across",
            "Across",
            "entropy",
            "select",
            pages=("heads",),
        ),
        Setting(
            "up",
            "Up",
            "ablation",
            "select",
            pages=("heads",),
        ),
        Setting(
            "how",
            "Decoding",
            GREEDY,
            "segmented",
            "Greedy: the most probable next token. Beam search: several targets side by side. "
            "Sampling: tokens drawn by their probability.",
            options=DECODING,
            pages=("generate",),
            look={"label_visibility": "collapsed"},
        ),
        Setting(
            "beginning",
            "Beginning",
            "",
            "line",
            "Token ids that the output begins with, as in “12-45”; the model goes on from there. A "
            "click on another next token writes them.",
            pages=("generate",),
        ),
        Setting(
            "branches",
            "Branches",
            "",
            "line",
            "All beginnings that were tried, separated by semicolons.",
            pages=("generate",),
        ),
        Setting("width", "Beams", 4, "number", least=2, most=10, pages=("generate",)),
        Setting(
            "alpha",
            "Penalty α",
            0.6,
            "number",
            "Of the length: a log-probability is divided by ((5 + length) / 6)^α; 0 prefers short "
            "targets.",
            most=2.0,
            pages=("generate",),
            look={"step": 0.1},
        ),
        Setting(
            "temperature",
            "Temperature",
            1.0,
            "number",
            "Logits are divided by it: below 1 the softmax is sharper.",
            least=0.1,
            most=5.0,
            pages=("generate",),
            look={"step": 0.1},
        ),
        Setting(
            "top_k",
            "Top k",
            0,
            "number",
            "Only the k most probable tokens are drawn from; 0: all.",
            most=MOST_TOKENS,
            pages=("generate",),
        ),
        Setting(
            "top_p",
            "Top p",
            1.0,
            "number",
            "Only the fewest tokens that together have this probability are drawn from.",
            least=0.05,
            most=1.0,
            pages=("generate",),
            look={"step": 0.05},
        ),
        Setting(
            "seed",
            "Seed",
            0,
            "number",
            "Another one draws other tokens.",
            most=9999,
            pages=("generate",),
        ),
        Setting(
            "aligned_by",
            "Aligned by",
            BEST_HEADS,
            "segmented",
            "What a target word attends to, or the source word without which its log-probability "
            "falls most (influence).",
            options=ALIGNED_BY,
            pages=("alignment",),
        ),
        Setting(
            "aligned_at",
            "At the row where the word",
            AT_ROWS[0],
            "segmented",
            "A row of the decoder reads a token and predicts the next one. Some heads attend to "
            "what goes with the first, others to what goes with the second.",
            options=AT_ROWS,
            pages=("alignment",),
        ),
        Setting(
            "sweep",
            "Changed, one by one",
            "Heads off",
            "segmented",
            "With another run (under “What if”) heads and the residual stream can be patched from "
            "it.",
            options=_sweeps,
            among=tuple(SWEEPS),
            pages=("ablation",),
            look={"label_visibility": "collapsed"},
        ),
        Setting(
            "at",
            "Step",
            STEPS[0],
            "segmented",
            options=STEPS,
            pages=("inside",),
            look={"label_visibility": "collapsed"},
        ),
        Setting(
            "follow",
            "Query",
            SECOND_TOKEN,
            "select",
            "The query that is followed. A token that is selected on the page Attention is too.",
            pages=("inside", "lookup"),
            look={"width": 260},
        ),
        Setting(
            "to",
            "Key",
            LARGEST_WEIGHT,
            "select",
            pages=("inside",),
            look={"width": 260},
        ),
        Setting(
            "without",
            "Leave out",
            [],
            "pills",
            "Positions are left out of the whole model, the others of this attention.",
            options=ABLATIONS,
            pages=("inside",),
        ),
        Setting(
            "side",
            "Side",
            "source",
            "segmented",
            "The encoder reads the source, the decoder the target.",
            pages=("positions",),
        ),
        Setting(
            "lab",
            "Lab",
            LAB[0],
            "segmented",
            "The table and what it is added to; what is in the table; what the model does without "
            "it.",
            options=LAB,
            pages=("positions",),
        ),
        Setting(
            "base",
            "Scale N",
            10_000,
            "steps",
            "The paper's table with another number in the place of 10,000. The model keeps its "
            "own.",
            options=BASES,
            format="{:,}",
            pages=("positions",),
        ),
        Setting(
            "pair",
            "Pair of dimensions",
            8,
            "slider",
            "Pair 0 is dimensions 0 and 1, the quickest hand.",
            most=MOST_TOKENS,
            pages=("positions",),
        ),
        Setting(
            "k",
            "k, how many positions further",
            3,
            "slider",
            "How far apart the two positions are.",
            least=1,
            most=MOST_TOKENS,
            pages=("positions",),
        ),
        Setting(
            "instead",
            "Positions",
            "none",
            "segmented",
            "What is added to source and target in the place of the model's own table. The words, "
            "weights and masks stay.",
            options=position_tables.KINDS,
            pages=("positions",),
        ),
        Setting(
            "shift",
            "Shifted by",
            10,
            "slider",
            "The first row that is used.",
            least=1,
            most=100,
            pages=("positions",),
        ),
        Setting(
            "first",
            "Swap",
            "",
            "select",
            "A token of the source. The target stays.",
            pages=("positions",),
        ),
        Setting(
            "second",
            "with",
            "",
            "select",
            "A token of the source. The target stays.",
            pages=("positions",),
        ),
        Setting(
            "vectors",
            "Vectors",
            SELECTED_HEAD,
            "segmented",
            "Three words with vectors to drag, or the queries and keys of the selected head.",
            options=(SELECTED_HEAD, WORDS),
            pages=("lookup",),
        ),
        Setting(
            "scaled",
            "Divide scores by √2",
            True,
            "toggle",
            "√ of how many numbers a vector has. Off: the same order, but sharper.",
            pages=("lookup",),
            look={"width": "content"},
        ),
        Setting(
            "stack",
            "Stack",
            "decoder",
            "segmented",
            "The encoder reads the source, the decoder the target.",
            pages=("residual",),
        ),
        Setting("ranks", "Its rank", False, "expander", pages=("residual",)),
        Setting(
            "all_layers",
            "All layers",
            False,
            "toggle",
            "Off: layers that are built alike are drawn once, with N × beside them.",
            pages=("model",),
        ),
        Setting(
            "text",
            "Text",
            "source",
            "segmented",
            "The encoder reads the source, the decoder the target.",
            pages=("tokenizer",),
            look={"label_visibility": "collapsed", "width": "content"},
        ),
        Setting(
            "word",
            "Pre-token",
            "",
            "select",
            pages=("tokenizer",),
            look={"label_visibility": "collapsed", "width": 260},
        ),
        Setting(
            "implementations",
            "View",
            SYSTEMS,
            "segmented",
            "Systems that Headlight grew out of; or how the paper became Llama, one part at a "
            "time.",
            options=IMPLEMENTATIONS,
            pages=("family",),
            look={"label_visibility": "collapsed", "width": "content"},
        ),
        Setting(
            "swap",
            "Part",
            next(iter(lineage.LINE)),
            "segmented",
            "One part in the place of another, all else the same.",
            options=tuple(lineage.LINE),
            pages=("family",),
            look={"label_visibility": "collapsed", "width": "content"},
        ),
        Setting(
            "system",
            "System",
            "paper",
            "segmented",
            "Text, code and ours side by side, and what was built as meant.",
            options=tuple(PRESETS),
            pages=("family",),
            look={"label_visibility": "collapsed", "width": "content"},
        ),
        Setting(
            "bertviz",
            "View",
            "head",
            "segmented",
            "Head: one layer, its heads over each other. Model: all heads small. Neuron: how "
            "queries and keys make the weights of one head.",
            options=BERTVIZ,
            pages=("bertviz",),
        ),
        Setting(
            "leave_out",
            "Layers to leave out",
            [],
            "several",
            "Fewer layers are drawn sooner.",
            item=int,
            pages=("bertviz",),
            look={"placeholder": "none", "width": 300},
        ),
        Setting(
            "draw",
            "Draw",
            False,
            "toggle",
            f"BertViz draws every weight as a line: a text of more than {DRAWN_AT_ONCE} tokens is "
            "drawn when you ask for it.",
            pages=("bertviz",),
        ),
        Setting(
            "weights_of",
            "Weights of",
            ALL,
            "segmented",
            "As the model used them, whatever the pictures hide or merge.",
            options=(ALL, ONE),
            pages=(EXPORT,),
        ),
    )
}
MASKS = tuple(Masks.__dataclass_fields__)


def valid(chosen: Mapping, catalog: Catalog, address: Mapping[str, Sequence[str]] = {}) -> Context:
    """All settings of the top bar, and what is known of the pages' own, each as it may be given
    those before it. What was chosen is clamped; what the address asks for in vain is ignored, as
    Streamlit does."""
    context = Context({}, catalog)
    for key, setting in SETTINGS.items():
        value = chosen.get(key, ABSENT)
        asked = setting.parse(address[key]) if value is ABSENT and key in address else ABSENT
        if setting.pages:
            value = asked if value is ABSENT else value
            if value is not ABSENT and setting.could_be(value):
                context.values[key] = value
            continue
        limits = setting.limits(context)
        if value is ABSENT:
            value = asked if limits.allows(asked) else limits.default
        concerns = setting.concerns(context)
        context.values[key] = limits.nearest(value) if concerns else limits.default
    return context


def shared(values: Mapping, page: str) -> dict:
    """The settings that a link or a file holds: those of the top bar, and of one page's own what
    was chosen there."""
    return {
        key: values[key]
        for key, setting in SETTINGS.items()
        if key in values
        and setting.address
        and (not setting.pages or (page in setting.pages and values[key] != setting.default))
    }


def badges(context: Context) -> list[tuple[str, str]]:
    """Key and a few words for each setting that makes the model other than it was trained."""
    return [
        (key, setting.badge.format(context[key]))
        for key, setting in SETTINGS.items()
        if setting.badge and setting.concerns(context) and context[key] != setting.default
    ]


def headers(values: Mapping) -> list[str]:
    """What of a run is not as it would be by default, in a few words each."""
    return [
        setting.header.format(values[key])
        for key, setting in SETTINGS.items()
        if setting.header and key in values and values[key] != setting.default
    ]
