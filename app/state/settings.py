"""All settings, each declared once: its values, its widget and its page.

A setting's widget, its place in the address, its clamping, its line in an export's header and
whether a run depends on it follow from its declaration. No Streamlit here: code that reads files
uses it, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from headlight.app.state.lines import lines_of
from headlight.app.state.options import COLOURS, OTHER, THIS
from headlight.app.state.pages import PAGE_SETTINGS
from headlight.app.state.setting import (
    ABSENT,
    LONGEST_TEXT,
    MANY,
    MAX_POSITION,
    Catalog,
    Context,
    Setting,
)
from headlight.model.masks import Masks
from headlight.model.probing.run import FINAL

OF_ROOMS = "room", "alone"  # no part of a view
MAX_PADDED = 64  # enough to see padding with any one sentence
MOST_STEPS = 100  # of a lesson


def _lines(context: Context) -> list[str]:
    return list(dict.fromkeys(lines_of(context["source"]))) or [""]


def _models(context: Context) -> Sequence[str]:
    return context.catalog.models() or [""]


def _steps(context: Context) -> Sequence[str]:
    return list(context.catalog.steps(context["model"])) or [FINAL]


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
            "Each model was trained for one task. Untrained models have random weights.",
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
            "Where the model runs. Auto: the first GPU if there is one, otherwise the CPU.",
            options=lambda context: context.catalog.devices(),
            address=False,  # it affects where the model runs, not its results
        ),
        Setting(
            "step",
            "Training step",
            FINAL,
            "select",
            "Shows the same sentence and head earlier in training.",
            options=_steps,
            concerns=lambda context: len(_steps(context)) > 1,
            name="the training step",
            run=True,
            header="step {}",
            badge="Step {}",
        ),
        Setting(
            "hold",
            "Keep the final translation",
            True,
            "toggle",
            "On: at every step, the decoder reads the fully trained model's translation, so "
            "steps can be compared. Off: it reads the translation of this step.",
            concerns=lambda context: context.writes and context["step"] != FINAL,
            name="the choice of translation",
            run=True,
            header="with this step's own translation",
        ),
        Setting(
            "source",
            "Source sentence",
            "",
            "area",
            "What the encoder reads. Enter runs the model; Shift+Enter starts a new line. "
            "Pick one of several lines from a list. Text after a tab is the target.",
            opens=lambda context: (context.catalog.examples(context["model"]) or [""])[0],
            name="the source",
            run=True,
            look={"height": 100, "max_chars": LONGEST_TEXT},
        ),
        Setting(
            "line",
            "Line",
            "",
            "select",
            "The line that the model reads.",
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
            "The text that the decoder reads. Leave it empty to use the model's own output, or "
            "type your own.",
            concerns=lambda context: context.writes and context.can_change,
            name="the target",
            run=True,
            badge="Typed target",
        ),
        _mask(
            "causal",
            "Causal mask",
            "the causal mask",
            "Decoder self-attention: no token may attend to a later one. Off: each row can "
            "peek at the token it should predict.",
        ),
        _mask(
            "src_padding",
            "Source padding mask",
            "the source padding mask",
            "Encoder self-attention: no token may attend to source padding. Pad the sentence "
            "to see the effect.",
        ),
        _mask(
            "tgt_padding",
            "Target padding mask",
            "the target padding mask",
            "Decoder self-attention: no token may attend to target padding. With the causal "
            "mask on, only padding tokens could do so anyway.",
        ),
        _mask(
            "memory_padding",
            "Cross padding mask",
            "the cross-attention padding mask",
            "Cross-attention: no target token may attend to source padding. Pad the sentence "
            "to see the effect.",
        ),
        Setting(
            "pad_to",
            "Pad to length",
            0,
            "number",
            "Adds padding tokens, as in a batch of sentences of different lengths. The padding "
            "masks hide them.",
            most=MAX_PADDED,
            concerns=lambda context: context.structure is None or not context.structure.lacks,
            name="the padding",
            run=True,
            header="padded to {} tokens",
            badge="Padded to {}",
        ),
        Setting(
            "changes",
            "Changes",
            "",
            "line",
            name="the changes",
            run=True,
            header="changes: {}",
        ),
        Setting(
            "other",
            "Compare with sentence",
            "",
            "line",
            name="the comparison sentence",
            concerns=lambda context: context.can_change,
            run=True,
            header="comparison sentence: {}",
            badge="Another sentence",
            look={"placeholder": "same"},
        ),
        Setting(
            "other_model",
            "Compare with model",
            "",
            "select",
            "Models with the same tokenizer, layers and heads.",
            options=_other_models,
            concerns=lambda context: context.can_change and len(_other_models(context)) > 1,
            name="the comparison model",
            run=True,
            header="comparison model: {}",
            look={"format_func": lambda name: name or "same"},
        ),
        Setting(
            "other_step",
            "Compare with step",
            "",
            "select",
            options=_other_steps,
            concerns=lambda context: context.can_change and len(_other_steps(context)) > 1,
            name="the comparison step",
            run=True,
            header="comparison step: {}",
            look={"format_func": lambda step: step or "same"},
        ),
        Setting(
            "other_masks",
            "Compare with all masks on",
            False,
            "toggle",
            "On: the comparison uses every mask. Off: it uses the masks set here.",
            concerns=lambda context: not all(context[key] for key in MASKS),
            name="the comparison masks",
            run=True,
            header="comparison with all masks on",
        ),
        Setting(
            "shows",
            "Show",
            THIS,
            "segmented",
            options=(THIS, OTHER),
            name="which weights are shown",
            run=True,
            header="shown: {}",
            concerns=lambda context: context.has_other,
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
            "Layer 1 reads the embeddings. Each later layer reads the output of the layer before.",
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
            "The heads of a layer work in parallel on the same input, each with its own "
            "projections.",
            options=_heads,
            opens=lambda context: _opening(context, "head", _heads(context), 1),
            least=1,
            most=MANY,
        ),
        Setting(
            "colours",
            "Colours of weights",
            "ink",
            "segmented",
            "Ink: a large weight is dark on a light page and light on a dark one. Viridis: from "
            "violet to yellow on both.",
            options=COLOURS,
        ),
        Setting(
            "score_at",
            "Metric",
            0,
            "select",
            "How effects are measured: by the log-probability of the whole target, or of one "
            "token in one row.",
            most=MAX_POSITION,
            concerns=lambda context: context.predicts_tokens,
        ),
        Setting(
            "score_token",
            "Token",
            "",
            "line",
            "The token whose log-probability is measured in that row. Empty: the most probable "
            "token.",
            concerns=lambda context: context.predicts_tokens,
            look={"placeholder": "most probable"},
        ),
        Setting(
            "score_against",
            "minus token",
            "",
            "line",
            "With a second token, the metric is the difference of the two logits.",
            concerns=lambda context: context.predicts_tokens,
            look={"placeholder": "none"},
        ),
        Setting(
            "projector",
            "Present",
            False,
            "toggle",
            "Shows the picture alone, legible from the back row. Esc exits.",
        ),
        Setting("room", "Room", "", "line", "The room that this page belongs to."),
        Setting(
            "alone",
            "By myself",
            False,
            "toggle",
            "The teacher of the room does not lead this page.",
            concerns=lambda context: bool(context["room"]),
        ),
        Setting("lesson", "Lesson", "", "line", "The current lesson."),
        Setting(
            "step_of_lesson",
            "Step of the lesson",
            1,
            "number",
            least=1,
            most=MOST_STEPS,
            concerns=lambda context: bool(context["lesson"]),
        ),
        Setting("plan", "Place in the plan for a class", 0, "number", most=MOST_STEPS),
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


def shared(values: Mapping, page: str) -> dict:
    """The settings in a link or a file: those of the top bar, and the page's own that differ from
    their default."""
    return {
        key: values[key]
        for key, setting in SETTINGS.items()
        if key in values
        and setting.address
        and key not in OF_ROOMS
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
