"""All settings, each declared once: its values, its widget and its page.

A setting's widget, its place in the address, its clamping, its line in an export's header and
whether a run depends on it follow from its declaration. No Streamlit here: code that reads files
uses it, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from headlight.app.state.lines import lines_of
from headlight.app.state.options import (
    AFTER,
    AVERAGES,
    BEFORE,
    DIFFERENCE,
    ORDERS,
    OTHER,
    SCALES,
    SHOWN,
    THIS,
    TO_OTHER,
)
from headlight.app.state.page_settings import MAX_POSITION, PAGE_SETTINGS
from headlight.app.state.setting import ABSENT, LONGEST_TEXT, MANY, Catalog, Context, Setting
from headlight.model.analysis.head_metrics import ANY, RULES, THRESHOLD
from headlight.model.analysis.reading import SPECIAL_TOKENS
from headlight.model.masks import Masks
from headlight.model.probing.run import FINAL

RENAMED = {"With the changes": AFTER, "Without": BEFORE}  # of "shows"; addresses: server/heirs.py
MAX_PADDED = 64  # enough to see padding with any one sentence
MOST_STEPS = 100  # of a lesson
MOST_HIDDEN = 0.5  # weights above it are always shown


def _lines(context: Context) -> list[str]:
    return list(dict.fromkeys(lines_of(context["source"]))) or [""]


def _models(context: Context) -> Sequence[str]:
    return context.catalog.models() or [""]


def _steps(context: Context) -> Sequence[str]:
    return context.catalog.steps(context["model"]) or (FINAL,)


def _shown(context: Context) -> Sequence[str]:
    """The options for which weights to show."""
    differs = context["changes"].strip() or not all(context[key] for key in MASKS)
    here = (BEFORE, AFTER, DIFFERENCE) if differs else (THIS,)
    return (*here, OTHER, TO_OTHER) if context.has_other else here


def _other_models(context: Context) -> Sequence[str]:
    """ "" is the same model."""
    return ["", *context.catalog.alike(context["model"])]


def _other_steps(context: Context) -> Sequence[str]:
    """ "" is the same step, where the other model has it."""
    return ["", *context.catalog.steps(context["other_model"] or context["model"])]


def _opening(context: Context, key: str, options: Sequence, otherwise) -> Any:
    """The default from the model's card. It depends on the model alone: the address omits default
    values, so defaults must not change while the user selects."""
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


# The order matters: each setting may depend on those before it.
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
            address=False,  # it affects where the model runs, not its results
        ),
        Setting(
            "step",
            "Training step",
            FINAL,
            "select",
            "The same sentence and head, earlier in training.",
            options=_steps,
            concerns=lambda context: len(_steps(context)) > 1,
            name="the training step",
            run=True,
            header="step {}",
            badge="Step {}",
            look={"format_func": lambda step: f"step: {step}"},
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
            "What the encoder reads. Enter runs the model, Shift+Enter begins a new line. Several "
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
            "Pad to length",
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
            "Before the changes, after them, or the difference. With another run, also that one "
            "and the difference from it.",
            options=_shown,
            among=(THIS, BEFORE, AFTER, DIFFERENCE, OTHER, TO_OTHER),
            opens=lambda context: AFTER if AFTER in _shown(context) else THIS,
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
            most=MAX_POSITION,
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
            badge="Heads: {}",
        ),
        Setting(
            "projector",
            "Present",
            False,
            "toggle",
            "The picture alone, with letters to be read from the last row. Esc leaves it.",
        ),
        Setting("lesson", "Lesson", "", "line", "The lesson that runs."),
        Setting(
            "step_of_lesson",
            "Step of the lesson",
            1,
            "number",
            least=1,
            most=MOST_STEPS,
            concerns=lambda context: bool(context["lesson"]),
        ),
        *PAGE_SETTINGS,
    )
}
MASKS = tuple(Masks.__dataclass_fields__)


def valid(chosen: Mapping, catalog: Catalog, address: Mapping[str, Sequence[str]] = {}) -> Context:
    """Valid values of all settings of the top bar, and of the pages' own as far as they are known,
    each given those before it. Chosen values are clamped; invalid values in the address are
    ignored, as Streamlit does."""
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


def as_named_now(settings: Mapping) -> dict:
    """The settings of a file that may be older: what a mask does had no before and after then, and
    both had other names."""
    shows = settings.get("shows")
    if isinstance(shows, str):
        shows = RENAMED.get(shows, shows)
    if shows == THIS and not all(settings.get(key, True) for key in MASKS):
        shows = AFTER
    return {**settings, **({"shows": shows} if "shows" in settings else {})}


def shared(values: Mapping, page: str) -> dict:
    """The settings in a link or a file: those of the top bar, and the page's own that differ from
    their default."""
    return {
        key: values[key]
        for key, setting in SETTINGS.items()
        if key in values
        and setting.address
        and (not setting.pages or (page in setting.pages and values[key] != setting.default))
    }


def badges(context: Context) -> list[tuple[str, str]]:
    """Key and label of each setting that differs from the model as trained."""
    return [
        (key, setting.badge.format(context[key]))
        for key, setting in SETTINGS.items()
        if setting.badge and setting.concerns(context) and context[key] != setting.default
    ]


def headers(values: Mapping) -> list[str]:
    """Short texts on each setting of a run that differs from its default."""
    return [
        setting.header.format(values[key])
        for key, setting in SETTINGS.items()
        if setting.header and key in values and values[key] != setting.default
    ]
