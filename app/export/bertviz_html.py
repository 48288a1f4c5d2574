"""BertViz's head, model and neuron views of one trace, as an HTML page that makes no requests.

The drawing is done by BertViz's own JavaScript, read from the installed package and adapted: packed
data (unpacked by bertviz_html.js), inlined libraries, and sizes for a projector. Its Python part is
not used: it writes every weight twice, in 45 bytes, and requires encoder and decoder to be equally
deep.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from headlight.app.text import part_names
from headlight.app.theme import INK, PAPER
from headlight.model.extras import missing
from headlight.model.probing.trace import Trace

HERE = Path(__file__).resolve().parent
VENDOR = HERE.parents[1] / "assets" / "vendor"
DIGITS = 4  # decimals of a weight; queries and keys are sent unrounded
WIDTH = 960  # of the model view; every view is then scaled to the page
LETTER = 0.6  # mean width of a letter ÷ its size


class CannotDraw(Exception):
    """Why BertViz cannot draw, and what to do."""


@dataclass(frozen=True)
class Size:
    """What a view costs: the `shapes` that the browser draws, and the `bytes` it is sent."""

    shapes: int
    bytes: int


def size(trace: Trace, view: str, kind: str, layers: Sequence[int]) -> Size:
    """The cost of a view, known before it is drawn."""
    _, heads, query, key = trace.attention[kind].shape
    d_head = trace.query[kind].shape[-1] if view == "neuron" else 0
    all_heads, cells = len(layers) * heads, query * key
    shapes = {
        "head": heads * (cells + query + key),  # one layer at a time
        "model": (all_heads + 1) * cells,  # one head large
        "neuron": 7 * cells + d_head * (query + 2 * key),  # one head with all its lines
    }
    numbers = 2 * all_heads * cells  # bytes
    if view == "neuron":
        numbers += 4 * all_heads * d_head * (query + key)
    return Size(shapes[view], numbers * 4 // 3)


def page(
    trace: Trace,
    view: str,
    kind: str,
    layers: Sequence[int],
    layer: int,
    head: int,
    theme: str = "light",
    larger: float = 1.0,
    compared: tuple[np.ndarray, np.ndarray] | None = None,
) -> str:
    """The whole page, opened at a layer and head (at the first layer if that one is not among
    `layers`), with text `larger` times as large. Layers and heads count from 0 here and from 1 in
    the page. `compared`: queries and keys for the neuron view, (layers, heads, query or key,
    d_head), where scores do not compare the plain projections (see
    headlight.model.probing.head_steps.compared). Raises CannotDraw."""
    weights = trace.attention[kind][list(layers)]
    query, key = part_names.shared_row_labels(trace, kind, layers), trace.texts_of(kind)[1].tokens
    layer = layers.index(layer) if layer in layers else 0
    heads = range(1, weights.shape[1] + 1)
    data = {"attn": _weights(weights), "left_text": query, "right_text": key}
    if view == "neuron":
        queries, keys = compared or (trace.query[kind], trace.key[kind])
        data["queries"], data["keys"] = (
            _exact(vectors[list(layers)]) for vectors in (queries, keys)
        )
    sizes, width = _sizes(view, max(map(len, (*query, *key))), larger)
    numbers = [part_names.layer_number(trace, kind, i) for i in layers]
    params = {
        "attention": {"all": data},
        "default_filter": "all",
        "root_div_id": "bertviz",
        "display_mode": theme,
        "include_layers": numbers,
        "include_heads": [*heads],
        "total_heads": len(heads),
        # The head view addresses a layer by its label, the neuron view by its index.
        "layer": layer if view == "neuron" else numbers[layer],
        "head": head,
        "heads": [head],
        "bidirectional": not ("causal" in trace.kinds[kind][0].masks and trace.masks.causal),
        "width": width,
        "click": {
            "head": None,
            "model": f"g:has(> #attn_background_{layer}_{head}) > rect:last-child",
            # expanded: queries and keys are shown
            "neuron": "#collapsed #leftText rect:last-child",
        }[view],
    }
    return _page(params, _script(view, sizes), SELECTS[view], theme, width, larger)


def _weights(values: np.ndarray) -> dict:
    """Fixed point: two bytes a weight."""
    if not np.isfinite(values).all():
        raise CannotDraw(
            "Some weights of this attention are NaN or infinite, so nothing can be drawn."
        )
    return _packed(np.rint(values.astype(float) * 10**DIGITS), "<u2", 10**DIGITS)


def _exact(values: np.ndarray) -> dict:
    return _packed(values, "<f4", 1)


def _packed(values: np.ndarray, dtype: str, per: int) -> dict:
    """Data for unpack() in bertviz_html.js; the value `per` stands for 1."""
    raw = base64.b64encode(values.astype(dtype).tobytes()).decode()
    return {"shape": values.shape, "type": dtype, "per": per, "base64": raw}


# The page

SELECTS = {
    "head": '<label>Layer <select id="layer"></select></label>',
    "model": "",
    "neuron": '<label>Layer <select id="layer"></select></label> '
    '<label>Head <select id="att_head"></select></label>',
}


def _page(
    params: Mapping, script: str, selects: str, theme: str, width: float, larger: float
) -> str:
    libraries = [_read(VENDOR / f"{name}.min.js") for name in ("jquery", "d3")]
    scripts = [*libraries, _read(HERE / "bertviz_html.js"), script]
    # Only these scripts may run, and nothing may be fetched, whatever the tokens contain.
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}"
    data = json.dumps(params, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en" translate="no" data-theme="{theme}">
<head><meta charset="utf-8"><title>BertViz</title>
<meta http-equiv="Content-Security-Policy" content="{policy}">
<style>:root {{ --ink: {INK[theme]}; --paper: {PAPER[theme]}; --width: {width};
  --larger: {larger}; }}
{_read(HERE / "bertviz_html.css")}</style></head><body>
<div id="bertviz">{selects}<div id="vis"></div></div>
<script type="application/json" id="params">{data}</script>
{"".join(f"<script>{script}</script>" for script in scripts)}
</body></html>"""


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# BertViz's JavaScript


def _sizes(view: str, letters: int, larger: float) -> tuple[dict[str, float], float]:
    """Constants of BertViz's script by name, for tokens of this length, and the width of the
    drawing in units that are scaled to the page."""
    text = round(17 * larger)
    box = round(min(max(letters, 7), 17) * text * LETTER + text)
    if view == "head":
        sizes = {"BOXHEIGHT": 1.5 * text, "BOXWIDTH": box, "MATRIX_WIDTH": 230}
        sizes |= {"CHECKBOX_SIZE": 1.3 * text, "TEXT_TOP": 2 * text}
        width = 2 * box + 230
    elif view == "model":
        sizes = {"DIV_WIDTH": WIDTH, "DETAIL_BOX_WIDTH": box, "DETAIL_WIDTH": 2 * box + 140}
        sizes |= {"DETAIL_BOX_HEIGHT": 1.4 * text, "DETAIL_HEADING_HEIGHT": 1.9 * text}
        sizes |= {"HEADING_TEXT_SIZE": text, "DETAIL_ATTENTION_WIDTH": 140, "ATTN_PADDING": 5}
        width = WIDTH
    else:
        sizes = {"BOXHEIGHT": 1.6 * text, "BOXWIDTH": box, "HEADING_TEXT_SIZE": text}
        sizes |= {"MATRIX_WIDTH": 180, "PADDING_WIDTH": 25, "HEIGHT_PADDING": 50}
        width = 2 * box + 3 * 180 + 5.5 * 25 + 1.6 * text
    return {**sizes, "TEXT_SIZE": text}, width


def _script(view: str, sizes: Mapping[str, float]) -> str:
    """BertViz's script for a view, adapted. Raises CannotDraw if it is another version."""
    script = _installed(view)
    for old, new in ADAPTED[view]:
        script = _replace(view, script, re.escape(old), new)
    for name, value in sizes.items():
        script = _replace(view, script, rf"const {name} = [^;]+;", f"const {name} = {value};")
    return script


def _installed(view: str) -> str:
    spec = find_spec("bertviz")  # finds the package without importing it
    for folder in (spec and spec.submodule_search_locations) or ():
        if (path := Path(folder) / f"{view}_view.js").is_file():
            return _read(path)
    raise CannotDraw(missing("bertviz", "This view"))


def _replace(view: str, script: str, pattern: str, new: str) -> str:
    script, times = re.subn(pattern, lambda _: new, script)
    if times != 1:
        sought = pattern.replace("\\", "")
        raise CannotDraw(
            f"Headlight cannot adapt this version of BertViz: {view}_view.js has “{sought}” "
            f'{times} times, not once. Run: pip install "headlight-attention[bertviz]"'
        )
    return script


SCALED = ".append('svg').attr('viewBox', `0 0 ${params.width} ${%s}`)"
ADAPTED = {  # view → replacements in its script
    "head": [
        ("const params = PYTHON_PARAMS;", "const params = window.bertviz_params;"),
        (".append('svg')", SCALED % "height"),
    ],
    "model": [
        ("const params = PYTHON_PARAMS;", "const params = window.bertviz_params;"),
        (".append('svg')", SCALED % "config.divHeight"),
        # The whole model at a glance: tiles are higher than wide only for a long text.
        (
            "config.thumbnailBoxHeight = 7 * (12 / config.totalHeads);",
            "config.thumbnailBoxHeight = Math.min(7 * (12 / config.totalHeads), Math.max(3, 0.8 * "
            "(DIV_WIDTH / config.totalHeads) / Math.max(config.leftText.length,"
            " config.rightText.length)));",
        ),
        # A head shown large stays inside the picture, and the first layer keeps its colour.
        (
            "x = leftPos + THUMBNAIL_PADDING - DETAIL_WIDTH + 8;",
            "x = Math.max(MIN_X, leftPos + THUMBNAIL_PADDING - DETAIL_WIDTH + 8);",
        ),
        ("config.layers[layer] % 10", "(config.layers[layer] - 1) % 10"),
    ],
    "neuron": [
        (".append('svg')", SCALED % "height"),
        # BertViz assumes that both sides are equally long.
        (
            "var height = config.initialTextLength * BOXHEIGHT",
            "var height = Math.max(leftText.length, rightText.length) * BOXHEIGHT",
        ),
        (
            'layerSelect.append($("<option />").val(i).text(i))',
            'layerSelect.append($("<option />").val(i).text(params.include_layers[i]))',
        ),
        (
            'headSelect.append($("<option />").val(i).text(i))',
            'headSelect.append($("<option />").val(i).text(params.include_heads[i]))',
        ),
        ("q \\u00D7 k (elementwise)", "q \\u00D7 k"),  # room for larger letters
        # A tooltip that ends before the keys.
        ("No token selected", "Hover over a token"),
        ("posProduct + 55", "posProduct"),
    ],
}
