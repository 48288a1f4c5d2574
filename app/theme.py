"""The visual language: every colour and size of the figures, in one place.

Weights are ink on paper, and light in the dark: zero is like the page, and lightness is ordered for
every kind of colour vision. Differences have a scale symmetric around zero, red against blue. The
selection is orange everywhere, and nothing else is.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

# A scale of colours: its stops, evenly spaced; or those for each colour scheme.
Palette = Sequence[str] | Mapping[str, Sequence[str]]


def stops_of(palette: Palette, scheme: str = "light") -> Sequence[str]:
    """The stops for a colour scheme; colours.js has the same."""
    return palette[scheme] if isinstance(palette, Mapping) else palette


def ramp(stops: Sequence[str], count: int, places: Sequence[float] | None = None) -> np.ndarray:
    """`count` colours evenly spaced over a scale, bytes (count, rgb). `places`: of its stops, from
    0 to 1, if they are not evenly spaced."""
    colours = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops])
    at = np.linspace(0, 1, len(stops)) if places is None else places
    shares = np.linspace(0, 1, count)
    channels = [np.interp(shares, at, channel) for channel in colours.T]
    return np.rint(np.stack(channels, axis=-1)).astype(np.uint8)


def ink_on(colours: np.ndarray) -> np.ndarray:
    """“black” or “white”, whichever can be read better on each of the colours (.., rgb) of 0 to
    255: at least 4.5 : 1. colours.js has the same."""
    shares = np.asarray(colours) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return np.where(linear @ (0.2126, 0.7152, 0.0722) > 0.179, "black", "white")


def _hex(colours: Iterable[Sequence[int]]) -> list[str]:
    return ["#{:02x}{:02x}{:02x}".format(*colour) for colour in colours]


# Where the stops of the ink stand: small weights differ more than large ones. With 18 evenly spaced
# ones no colour is more than 3 of 255 off.
_PLACES, _EVEN = (0, 0.07, 0.24, 0.45, 0.65, 0.82, 1), 18
_INK_STOPS = {
    "light": ("#f1efe9", "#dcefe3", "#a2dcbd", "#4fbcaf", "#338ba7", "#35629c", "#322a66"),
    "dark": ("#1c1f24", "#2a2b46", "#454692", "#3c6cb0", "#3594ad", "#52c2b0", "#dcf5e6"),
}
INKED = {scheme: _hex(ramp(stops, _EVEN, _PLACES).tolist()) for scheme, stops in _INK_STOPS.items()}
# Of Matplotlib, evenly spaced; RdBu below is of ColorBrewer.
VIRIDIS = [
    *("#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89"),
    *("#35b779", "#6ece58", "#b5de2b", "#fde725"),
]
# The scales of weights from 0 to 1 that one can choose from.
WEIGHTS: Mapping[str, Palette] = {"ink": INKED, "viridis": VIRIDIS}
DIFFERENCES = {  # the middle is like the paper
    "light": [
        *("#67001f", "#b2182b", "#d6604d", "#f4a582", "#fddbc7", "#f7f7f7"),
        *("#d1e5f0", "#92c5de", "#4393c3", "#2166ac", "#053061"),
    ],
    "dark": [
        *("#ffb9a6", "#f28a71", "#dc5f48", "#b23d2c", "#6b2a21", "#2a2927"),
        *("#1f3f63", "#2e69a6", "#4b93d6", "#7fb8f0", "#b5d8ff"),
    ],
}
FOCUS = "#e4572e"
# How masked cells and heads that are off are drawn, everywhere: lines of the ink, in pixels and
# shares of opacity; scripts read it, too.
MASKED = json.loads(Path(__file__).with_name("masked.json").read_text(encoding="utf-8"))
MARKED = "rgba(228, 87, 46, 0.25)"  # FOCUS behind text
# distinguishable in every kind of colour vision; lines also differ in dashes and markers
LINES = [
    *("#88ccee", "#cc6677", "#ddcc77", "#117733", "#332288", "#aa4499"),
    *("#44aa99", "#999933", "#882255", "#661100", "#888888"),
]
INK = {"light": "#1b1c1f", "dark": "#f4f5f7"}
PAPER = {"light": "#ffffff", "dark": "#171614"}  # as Streamlit draws it
STAGE_PAPER = {"light": "#fcfbf8", "dark": "#121417"}  # as stage/style.css has it
PRIMARY = {"light": "#0b5cad", "dark": "#7cc0ff"}  # as in app/.streamlit/config.toml

FONT = 16  # pixels
PROJECTOR = 1.5  # factor for text and lines of BertViz in Present
PAGE = 17  # pixels of the page's own text, as in app/.streamlit/config.toml
LARGER = 1.3  # factor for the text of figures in Present
# Pixels: the three lines of the bar (pages and sentence, state, the page's own controls), the
# finding, and the panel. They keep their height whatever stands in them, so that nothing moves.
BAR, STATE, ROW_OF_PAGE, FINDING, PANEL = 44, 28, 40, 52, 330
ROOM_LINE = 36  # pixels: the line of a room, for those who are in one
PANEL_FADE = 24  # pixels at its foot
PRESENT_STATE = 36  # pixels: STATE in Present
REMOTE = 42  # pixels: the line of a class at the foot of Present (class_steps/remote.css)
TOOLBAR = 26  # pixels: of Plotly, above a figure
TABLE_TOOLBAR = 38  # pixels: of a table, above it
CONTROL = 32  # pixels: the height of a control in the bar
FINDING_LETTERS = 20  # pixels
# Pixels: the height of a picture that is fully visible in a window 720 high; the least height of a
# row.
PICTURE_HEIGHT, ROW = 440, 12

# Seconds, once per session, if a page has a style beyond the document's: the browser fetches a
# script before it applies one, and what it has drawn by then would jump.
HEAD_START = 0.2

# The masks as one line of icons: what each hides of a matrix. The switch itself, without ink, lies
# over its icon, and its name and help come up beside it (Streamlit 1.67).
MASK_KEYS = ".st-key-causal, .st-key-src_padding, .st-key-tgt_padding, .st-key-memory_padding"
MASK_WORDS = {
    "causal": "causal", "src_padding": "source", "tgt_padding": "target", "memory_padding": "cross",
}  # fmt: skip
HATCHED = "repeating-linear-gradient(45deg, currentColor 0 1px, transparent 1px 4px)"
MASKS_STYLE = f"""
.stVerticalBlock.st-key-switches {{ flex-flow: row wrap; gap: 2px 6px; position: relative; }}
.st-key-switches > * {{ flex: 0 0 100%; }}
.st-key-switches .stButton {{ width: fit-content; }}
.st-key-switches > .stElementContainer:is({MASK_KEYS}) {{
  flex: none; width: 44px; height: 38px; position: static;
  &::after {{ font-size: 13px; line-height: 15px; width: 44px; text-align: center; }}

  label {{
    position: static; width: 44px; height: 22px; margin: 0; padding: 0; cursor: pointer;
    border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: 0.4rem;
  }}
  label > span:first-child {{
    position: absolute !important; width: 44px !important; height: 22px !important;
    clip: auto !important; clip-path: none !important; margin: 0 !important; opacity: 0;
  }}
  input {{ width: 100%; height: 100%; margin: 0; cursor: pointer; }}
  label > div:nth-child(2), .stTooltipIcon {{ display: none; }}
  [data-testid="stWidgetLabel"] p {{ position: absolute; clip-path: inset(50%); }}
  label::before {{
    content: ""; flex: none; width: 16px; height: 16px; margin: auto; box-sizing: border-box;
    border: 1px solid currentColor;
    background: {HATCHED} right / 6px 100% no-repeat;
  }}
  &.st-key-causal label::before {{
    background: linear-gradient(to top right, transparent 50%, currentColor 50%);
  }}
  label:has(input:not(:checked)) {{
    border-style: dashed;
    &::before {{ opacity: 0.45; background: none; }}
  }}
  label:has(input:focus-visible) {{ outline: 2px solid var(--st-primary-color, currentColor); }}
  label::after {{
    position: absolute; left: 0; right: 0; bottom: calc(100% - 1.3rem); z-index: 3;
    padding: 0.4rem 0.6rem; pointer-events: none; font-size: 0.82rem;
    line-height: 1.35; white-space: pre-line; border-radius: 0.4rem;
    color: light-dark({PAPER["light"]}, {PAPER["dark"]});
    background: light-dark({INK["light"]}, {INK["dark"]});
    visibility: hidden;
  }}
  label:is(:hover, :has(input:focus-visible))::after {{ visibility: visible; }}
}}
"""
MASKS_STYLE += "".join(
    f'.st-key-switches > .st-key-{key}::after {{ content: "{word}" / ""; }}\n'
    for key, word in MASK_WORDS.items()
)
SMALL = "0.82rem"  # letters of the bar and of the panel
# Streamlit's own header is not needed: the bar holds the menu (1.67).
STYLE = f"""
[data-testid="stHeader"] {{ display: none; }}
.stMainBlockContainer {{ padding: 0 1rem 1rem; }}
.stMainBlockContainer > .stVerticalBlock {{ gap: 0.3rem; }}
[data-testid="stCaptionContainer"] {{ opacity: 0.85; }}
.stElementContainer.st-key-remote {{ position: absolute; width: 1px; }}
.stElementContainer:is(.st-key-browser_events, .st-key-local_storage) {{
  position: absolute; visibility: hidden; width: 1px; overflow: hidden;
}}
.stMainBlockContainer :is(h2, h3) {{ font-size: 1.3rem; padding: 0.3rem 0; }}
.stMainBlockContainer h4 {{ font-size: 1.15rem; padding: 0.2rem 0; }}

.st-key-top_bar {{ font-size: {SMALL}; }}
.st-key-bar, .st-key-state, .st-key-page {{ gap: 0.35rem; }}
.st-key-top_bar .stHorizontalBlock {{ margin-block: 0; padding-block: 0; overflow: visible; }}
.stHorizontalBlock:is(.st-key-bar, .st-key-state, .st-key-page) {{ flex: none; }}
.st-key-top_bar button {{ vertical-align: top; }}
.stHorizontalBlock.st-key-bar {{ height: {BAR}px; }}
.stHorizontalBlock.st-key-state {{ height: {STATE}px; min-height: {STATE - 4}px; }}
.stHorizontalBlock.st-key-page {{ height: {ROW_OF_PAGE}px; }}
.st-key-state {{
  margin: 0 -1rem; padding: 0 1rem; width: calc(100% + 2rem); max-width: none;
  background: light-dark(#f5f6f8, #22211f);
}}
.stApp [data-testid="stBaseButton-primary"], .stApp [data-testid="stBaseButton-primary"] * {{
  color: light-dark(white, {PAPER["dark"]});
}}
.st-key-bar > .st-key-source {{ flex: 1 1 0; min-width: 6rem; }}
.st-key-bar > .st-key-projector {{ margin-left: auto; }} /* where a page has no texts */
.st-key-top_bar :is(p, label, input, button, textarea, [data-baseweb]) {{ font-size: {SMALL}; }}
.st-key-top_bar p {{ white-space: nowrap; margin: 0; line-height: 1.3; }}
.st-key-top_bar [data-testid="stMarkdownContainer"] {{ margin-bottom: 0; }}
.st-key-top_bar h1 {{ font-size: 1.25rem; padding: 0; white-space: nowrap; }}
.st-key-views {{
  border: 1px solid color-mix(in srgb, currentColor 22%, transparent); border-radius: 0.5rem;
  padding: 0 2px; min-height: {CONTROL - 4}px; align-content: center;
}}
.st-key-top_bar :is(button, .react-aria-ComboBox, .react-aria-ComboBox > div) {{
  min-height: {CONTROL}px; height: {CONTROL}px; padding-block: 0; white-space: nowrap;
}}
.st-key-top_bar .react-aria-ComboBox input {{ height: {CONTROL - 2}px; padding-right: 0; }}
.st-key-state :is(button, .react-aria-ComboBox, .react-aria-ComboBox > div) {{
  min-height: {STATE - 4}px; height: {STATE - 4}px;
}}
.st-key-state .react-aria-ComboBox input {{ height: {STATE - 6}px; }}
.st-key-state > .st-key-step [role="group"]::before {{
  content: "step:"; padding-left: 0.5rem; align-self: center; line-height: 1;
}}
.st-key-state > .st-key-step input {{ padding-left: 0.25em; }}
.st-key-bar label .stTooltipIcon {{ display: none; }}
.st-key-top_bar textarea {{
  field-sizing: content; min-height: 0; height: auto !important; max-height: {CONTROL}px;
  padding-block: 0.3rem;
}}
/* One line, not the upper half of a second one. */
.st-key-top_bar textarea:not(:focus) {{ white-space: nowrap; overflow: hidden; }}
.st-key-bar > .st-key-source {{ height: {CONTROL}px; overflow: visible; }}
.st-key-source [data-testid="InputInstructions"] {{ display: none; }}
/* While one types it is higher, over the bar below. */
.st-key-bar > .st-key-source:focus-within {{ z-index: 20; }}
.st-key-top_bar textarea:focus {{ max-height: 8rem; }}
.st-key-state :is(.stMarkdown, [data-testid="stCaptionContainer"]) {{
  white-space: nowrap; margin: 0; padding: 0;
}}
.st-key-state kbd {{ display: none; }} /* their help names the keys */
.st-key-state > .st-key-output {{ flex: 1000 1 16rem; min-width: 4rem; max-width: max-content; }}
/* As wide as with its label, which gives way first, all of it at once; still read out then. */
.st-key-state > .st-key-use_new_translation {{
  flex: 0 1000 calc(3.2rem + 9.9em); min-width: 2.6rem; container-type: inline-size;
}}
.st-key-use_new_translation button {{ width: fit-content; }}
@container (width < calc(3.1rem + 9.9em)) {{
  .st-key-use_new_translation [data-testid="stMarkdownContainer"] {{
    position: absolute; clip-path: inset(50%);
  }}
}}
.st-key-output button {{ max-width: 100%; }}
.st-key-output button p {{ overflow: hidden; text-overflow: ellipsis; }}

.st-key-body {{ align-items: flex-start; }}
.st-key-body > :has(> .st-key-content) {{ flex: 1 1 0; min-width: 0; }}
.st-key-body > :has(> .st-key-panel) {{ flex: 0 0 {PANEL}px; max-width: {PANEL}px; }}
.st-key-panel {{
  font-size: 0.88rem; border-left: 1px solid color-mix(in srgb, currentColor 18%, transparent);
  padding-left: 1rem; max-height: calc(100vh - {BAR + STATE + ROW_OF_PAGE + 12}px);
  overflow: hidden auto;
  /* What goes on below fades out; at its end the panel has room for that. */
  padding-bottom: {PANEL_FADE}px;
  mask-image: linear-gradient(to top, transparent, black {PANEL_FADE}px);
}}
/* Where a picture says all, there is nothing in it. */
.st-key-body > :has(> .st-key-panel):not(:has(.stElementContainer:not(.st-key-switches *))) {{
  display: none;
}}
.st-key-panel:has(.st-key-room_region) {{
  max-height: calc(100vh - {BAR + ROOM_LINE + STATE + ROW_OF_PAGE + 12}px);
}}
.st-key-panel :is(p, li, label) {{ font-size: 0.85rem; line-height: 1.42; }}
.stVerticalBlock.st-key-switches {{ gap: 1px; }}
{MASKS_STYLE}
.st-key-panel .stNumberInput {{
  display: flex; align-items: center; justify-content: space-between; gap: 0.5rem;
}}
.st-key-panel .stNumberInput > label {{ gap: 0.35rem; margin: 0; min-height: 0; }}
.st-key-panel [data-testid="stNumberInputContainer"] {{ width: 8rem; height: {CONTROL - 2}px; }}
.st-key-panel [data-testid="stNumberInputContainer"] * {{ min-height: 0; }}
.st-key-controls {{ gap: 0.5rem; }}
.st-key-controls .stButtonGroup button {{ padding-inline: 0.5rem; }}
.st-key-opened {{ display: none; }}
/* The line of a room stands below the first line of the bar. */
.st-key-top_bar > * {{ order: 1; }}
.st-key-top_bar > :is(.st-key-browser_events, .st-key-bar, :has(> .st-key-bar)) {{ order: -1; }}
.st-key-top_bar > :has(.st-key-room_line) {{ order: 0; }}
.stHorizontalBlock.st-key-room_line {{
  height: {ROOM_LINE}px; margin: 0 -1rem; padding: 0 1rem;
  width: calc(100% + 2rem); max-width: none;
  background: color-mix(in srgb, light-dark({PRIMARY["light"]}, {PRIMARY["dark"]}) 9%, transparent);
}}
.st-key-top_bar .st-key-room_line button {{
  min-height: {STATE}px; height: {STATE}px;
}}
.st-key-room_line > :last-child {{ margin-left: auto; }}
[class*="st-key-room_choice"] button :is(div, span) {{ justify-content: flex-start; }}
.st-key-room_panel:has(*) {{
  border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent);
  padding-bottom: 0.6rem;
}}
.stVerticalBlock.st-key-panel {{ gap: 0.5rem; }}
.st-key-content:has(.st-key-lesson_cards) .st-key-finding:not(:empty) {{
  min-height: 0;
}}
.st-key-page > :is(.st-key-picker, :has(> .st-key-picker)), .st-key-page .st-key-picker * {{
  flex-shrink: 1; min-width: 0;
}}
.st-key-page .st-key-head_picker p {{ overflow: hidden; text-overflow: ellipsis; }}
/* Lines of controls between the bar and the picture: outlined are those that are chosen from. */
:is(.st-key-page :is(.st-key-display, .st-key-explained), .st-key-state)
  :is([data-testid="stPopoverButton"], [data-testid="stBaseButton-secondary"]):not(
    :hover, :focus-visible) {{
  border-color: transparent; background: none;
}}
.st-key-page :is(.st-key-display, .st-key-explained) button {{ padding-inline: 0.35rem; }}
.st-key-page .st-key-explained {{ order: 1; }}
.st-key-switch_head button {{ min-height: 0; padding-block: 0.15rem; }}
.st-key-lesson_region:has(.st-key-lesson_ways) {{
  border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent);
  padding-bottom: 0.6rem;
}}
.hl-key {{ display: flex; flex-wrap: wrap; gap: 0 1.2rem; font-size: {SMALL}; }}
.hl-key i {{
  display: inline-block; box-sizing: border-box; width: 0.9em; height: 0.7em;
  border-radius: 0.15em;
}}
.hl-key .scale {{ width: 6em; }}
.st-key-panel .katex {{ font-size: 0.78em; }}
.st-key-panel .katex-display {{ overflow: visible !important; }}
.st-key-content {{ gap: 0.3rem; }}
.st-key-page > :has(> .st-key-controls) {{ flex: 0 1 auto; min-width: 0; }}
.st-key-page > :is(.st-key-what_if, :has(> .st-key-what_if)),
.st-key-page:not(:has(.st-key-what_if)) > :is(.st-key-display, :has(> .st-key-display)) {{
  margin-left: auto;
}}
.st-key-swap_effect {{ gap: 0.3rem; overflow: visible; padding-bottom: 6px; }}
.st-key-swap_effect :is(p, li) {{ font-size: 0.9rem; line-height: 1.4; margin-bottom: 0.4rem; }}
.st-key-swap_effect [data-testid="stMarkdownContainer"] {{ margin: 0; }}
.st-key-swap_effect .stElementContainer:has(.stPlotlyChart) {{ padding-top: 0; }}
.st-key-numbers_panel p {{ margin-bottom: 0.5rem; }}
.st-key-top_bar .stHorizontalBlock.st-key-controls {{ overflow-x: auto; }}
.st-key-walk_row :is(p, label, input, button) {{ font-size: {SMALL}; }}
.st-key-at button {{ padding: 0.1rem 0.4rem; min-height: 0; }}
.st-key-at button p {{ font-size: 0.75rem; }}
.st-key-finding:not(:empty) {{ min-height: {FINDING}px; }}
:is(.st-key-finding, .st-key-verdict) [data-testid="stMarkdownContainer"] {{ margin-bottom: 0; }}
:is(.st-key-finding, .st-key-verdict) p {{
    font-size: {FINDING_LETTERS}px; line-height: 1.3; margin: 0;
}}
.st-key-trials label > div > div:first-child {{ display: none; }} /* the circle */
.st-key-trials label {{ padding: 2px 8px; margin-left: -8px; border-radius: 6px; }}
.st-key-trials label[data-selected] {{
    background: color-mix(in srgb, currentColor 9%, transparent);
}}
.st-key-trials label[data-selected] p {{ font-weight: 600; }}
/* Plotly's toolbar stands above its figure, on nothing that is to be read. */
.stElementContainer:has(.stPlotlyChart) {{ padding-top: {TOOLBAR}px; box-sizing: content-box; }}
/* So does a table's, where words stand close above it. */
.st-key-panel .stElementContainer:has(.stDataFrame) {{
  padding-top: {TABLE_TOOLBAR}px;
}}
.js-plotly-plot {{ overflow: visible !important; }}
.js-plotly-plot .modebar-container {{ transform: translateY(-{TOOLBAR}px); }}
"""
# In every run Streamlit starts to fade all elements of a page, visible after half a second. Most
# runs are over by then, but each element has become a layer of its own to compose: a third of the
# time from a key press to the painted grid (1.67). Here elements fade only in slow runs, see
# browser_events.
STALE_STYLE = """
[data-testid="stElementContainer"] { opacity: 1 !important; transition: none !important; }
[data-slow] [data-testid="stElementContainer"][data-stale="true"] {
  opacity: 0.33 !important; transition: opacity 1s ease-in !important;
}
"""
NARROW = 639  # pixels, at most; as wide Streamlit stacks its columns, too
# The bar is folded into its first line. A figure keeps a width at which its labels do not overlap,
# and scrolls.
FOLDED = ".st-key-top_bar:not(:has(.hl-fold[open]))"
NARROW_STYLE = f"""
:has(> .stHtml > .hl-fold) {{ display: none; }}
@media (max-width: {NARROW}px) {{
  :has(> .stHtml > .hl-fold) {{ display: block; width: auto; flex: none; }}
  .hl-fold summary {{ cursor: pointer; padding: 0.6rem 0; white-space: nowrap; }}
  .stHorizontalBlock:is(.st-key-bar, .st-key-state, .st-key-page) {{
    height: auto; flex-wrap: wrap;
  }}
  .st-key-top_bar [data-testid="stLayoutWrapper"] {{ max-width: 100%; min-width: 0; }}
  .st-key-top_bar .stHorizontalBlock .stHorizontalBlock {{ overflow-x: auto; max-width: 100%; }}
  .st-key-menu {{ flex: 0 0 100%; }}
  {FOLDED} .st-key-bar > :not(.st-key-menu, .st-key-model, .st-key-source, :has(.hl-fold)),
  {FOLDED} :is(.st-key-state, .st-key-picker, .st-key-what_if, .st-key-display),
  {FOLDED} .st-key-page > :is(.st-key-explained, :has(> .st-key-explained)) {{ display: none; }}
  {FOLDED}:has([class*="st-key-badge_"]) summary::after {{ content: " ●"; }}
  {FOLDED} .st-key-bar > .st-key-model {{ flex: 0 0 7rem; width: auto; min-width: 0; }}
  .st-key-body {{ flex-direction: column; }}
  .st-key-body > :has(> .st-key-panel), .st-key-body > :has(> .st-key-content) {{
    flex: none; width: 100%; max-width: 100%;
  }}
  .st-key-panel {{ border: 0; padding: 0; max-height: none; mask-image: none; }}
  .stHorizontalBlock.st-key-room_line {{
    height: auto; flex-wrap: wrap !important; gap: 0 0.5rem;
  }}
  .st-key-room_line:has(.st-key-leave_room) .stHtml span {{ display: none; }}
  /* The step of a lesson stands above the picture that it is about. */
  .st-key-body:has(.st-key-panel :is(.st-key-lesson_ways, .st-key-room_panel > *))
    :is(.st-key-panel, :has(> .st-key-panel)) {{
    display: contents;
  }}
  .st-key-panel > * {{ width: 100%; }}
  .st-key-panel > :has(
    > .st-key-lesson_region .st-key-lesson_ways, > .st-key-room_region .st-key-room_panel > *
  ) {{ order: -1; }}
  [data-testid="stLayoutWrapper"]:has(> .st-key-top_bar .hl-fold[open]) {{ position: static; }}
  [class*="_figure"] {{ overflow-x: auto; }}
  [class*="_figure"] > [data-testid="stFullScreenFrame"] {{ min-width: 40rem; }}
  .st-key-swap_figure > [data-testid="stFullScreenFrame"] {{ min-width: 50rem; }}
  .stMarkdown table {{ font-size: 0.75rem; overflow-wrap: break-word; }}
  .stMarkdown table code {{ overflow-wrap: anywhere; }}
  .stMarkdown :is(th, td) {{ padding: 0.25rem !important; }}
}}
"""
BAR_STYLE = f"""
[data-testid="stLayoutWrapper"]:has(> .st-key-top_bar) {{
  position: sticky; top: 0; z-index: 5;
  background: light-dark({PAPER["light"]}, {PAPER["dark"]});
}}
"""
# Learn on paper: the plan for a class alone, all unfolded. Streamlit's boxes around it would add an
# empty sheet (1.67).
PLAN_STYLE = """
@page plan { size: A4; margin: 11mm 13mm; }
@media print {
  body:has(.st-key-class_steps) {
    page: plan; background: none;

    :is(.st-key-top_bar, .st-key-finding, :has(> .st-key-panel)) { display: none; }
    :has(.st-key-class_steps) {
      display: block !important; height: auto !important; min-height: 0 !important;
      padding: 0 !important; overflow: visible !important; background: none !important;
    }
  }
}
"""
# The stage lies over the page, and hides what the page draws, but for errors, notices and
# questions.
STAGE_STYLE = f"""
:root:not(:has(.st-key-stage_body)) .st-key-stage_place {{ display: none; }}
:root:has(.st-key-stage_body) .stElementContainer:has(iframe) {{ opacity: 1; }}
:root:has(.st-key-stage_body) {{ overflow: hidden; }}
.st-key-stage_body > :has(> .st-key-unseen), .st-key-stage_body .st-key-switches,
.st-key-stage_body .st-key-explain, .st-key-stage_body .st-key-finding {{ display: none; }}
.st-key-stage_body > :has(> .st-key-content) {{
  position: fixed; inset: 7rem calc(var(--hl-side, 0px) + 2rem) auto 2rem; width: auto;
  z-index: 6;
}}
:root:not([data-stage-covered]) .st-key-stage_body > :has(> .st-key-content) {{
  visibility: hidden;
}}
.st-key-stage_body > :has(> .st-key-panel) {{
  position: fixed; inset: 0 0 0 auto; width: {PANEL}px; z-index: 6; padding: 1rem 0;
  background: light-dark({STAGE_PAPER["light"]}, {STAGE_PAPER["dark"]});
}}
.st-key-stage_body > :has(> .st-key-panel):not(:has(.st-key-notices > *)) {{ display: none; }}
:root:has(.st-key-stage_body .st-key-notices > *) {{ --hl-side: {PANEL}px; }}
:root:has(.st-key-stage_body):has(.st-key-remote) {{ --hl-foot: {REMOTE}px; }}
/* What a lesson or a room is answered with, and the way on. */
.st-key-stage_body .stHorizontalBlock.st-key-lesson_region {{
  position: fixed; inset: auto var(--hl-side, 0px) var(--hl-foot, 0px) 0; z-index: 6; width: auto;
  margin: 0; padding: 6px 32px 10px; max-height: 60vh; overflow: auto; align-items: center;
  background-color: light-dark({STAGE_PAPER["light"]}, {STAGE_PAPER["dark"]});
  border: 0;

  &:not(:has(button, input, p, canvas, small)) {{ display: none; }}
  > :has(> .st-key-lesson_ways) {{ margin-left: auto; }}
  .st-key-room_panel {{
    flex-flow: row wrap; align-items: center; gap: 6px 1rem; padding: 0; border: 0; width: auto;

    > * {{ width: auto; flex: 0 1 auto; }}
    > :has(> .stHtml > div) {{ flex: 0 1 22rem; }}
    [class*="st-key-room_choices"] {{ flex-flow: row wrap; }}
  }}
  > [class*="st-key-paint"] {{ flex: 1 0 100%; }}
}}
@media (max-width: 640px) {{
  .st-key-stage_body .stHorizontalBlock.st-key-lesson_region {{
    padding: 4px 16px 8px; gap: 6px;

    > :has(> .st-key-lesson_choices), .st-key-room_panel > :has(> [class*="st-key-room_choices"]) {{
      flex: 1 0 100%;
    }}
  }}
  .st-key-stage_body :is(.st-key-lesson_choices, [class*="st-key-room_choices"]) {{
    display: grid; grid-template-columns: 1fr 1fr; gap: 6px; width: 100%;

    > div, button {{ width: 100% !important; }}
    button {{ min-height: 46px; }}
  }}
}}
:root:has(.st-key-stage_body .st-key-lesson_region) .st-key-stage_body > :has(> .st-key-content) {{
  top: 14rem;
}}
/* The line of a room stands at the foot, above the remote. */
.st-key-stage_body .stHorizontalBlock.st-key-room_line {{
  position: fixed; inset: auto 0 var(--hl-remote, 0px) 0; z-index: 7; width: auto; margin: 0;
  padding: 0 32px;
  background-color: light-dark({STAGE_PAPER["light"]}, {STAGE_PAPER["dark"]});
}}
:root:has(.st-key-stage_body .st-key-room_line) {{ --hl-foot: {ROOM_LINE}px; }}
:root:has(.st-key-stage_body .st-key-room_line):has(.st-key-remote) {{
  --hl-foot: {ROOM_LINE + REMOTE}px; --hl-remote: {REMOTE}px;
}}
.stVerticalBlock.st-key-drawer {{
  position: fixed; inset: 0 0 0 auto; width: min(400px, 100vw); z-index: 7;
  padding: 2.8rem 2rem 1.2rem;
  overflow: hidden auto;
  background: light-dark({STAGE_PAPER["light"]}, {STAGE_PAPER["dark"]});
  box-shadow: -24px 0 60px rgb(0 0 0 / 0.12);
}}
.st-key-drawer {{ --hl-wrap: wrap; }}
/* What the document has of the stage, see server/first_screen.py and stage/style.css. */
#hl-first {{
  position: fixed; inset: 0; z-index: 4; padding: 0 32px; color-scheme: light dark;
  background: light-dark({STAGE_PAPER["light"]}, {STAGE_PAPER["dark"]});
  color: light-dark(#1b1d22, #eceae4); font: 25px/1.5 "Source Sans", system-ui, sans-serif;
}}
#hl-first.present {{ font-size: 32px; }}
#hl-first b {{ display: block; font-size: 17px; line-height: 53px; }}
#hl-first p {{ margin: 4px 0 0; }}
#hl-first :is(i, p + p) {{ color: light-dark(#5d6068, #a9abb2); }}
#hl-first i {{ font-size: 14px; font-style: normal; }}
#hl-first p + p {{ margin-top: 35px; line-height: 1.25; }}
@media (max-width: 640px) {{ #hl-first {{ padding: 0 16px; font-size: 17.5px; }} }}
:root:has(.stException, [data-testid="stConnectionStatus"]) #hl-first {{ display: none; }}
.st-key-drawer :is(p, label, input, textarea, button) {{ font-size: 0.9rem; }}
.st-key-drawer p {{ margin: 0 0 0.2rem; }}
.st-key-drawer .st-key-close_drawer {{ position: absolute; right: 0.6rem; top: 0.4rem; }}
"""
# The style of every page. The bar's wrapper is sticky, because the bar itself would scroll away
# (Streamlit 1.67).
DOCUMENT_STYLE = STYLE + STALE_STYLE + BAR_STYLE + NARROW_STYLE + PLAN_STYLE + STAGE_STYLE
# Present: state, texts, finding and picture alone. B puts the bar above them and P the panel beside
# them, see browser_events.
PRESENT_STYLE = f"""
html {{ font-size: 20px !important; }}
:root:not([data-bar]) :is(.st-key-bar, .st-key-page),
:root:not([data-panel]) .st-key-body > :has(> .st-key-panel) {{ display: none; }}
.st-key-state, .st-key-state :is(p, label, input, button, textarea, [data-baseweb]) {{
  font-size: 20px;
}}
.stHorizontalBlock.st-key-state {{ height: {PRESENT_STATE}px; display: flex; }}
.st-key-state > .st-key-step {{ min-width: 160px; }}
.st-key-state > :is(.st-key-undo, .st-key-redo, .st-key-as_trained) {{ display: none; }}
@media (max-width: 1599px) {{ /* the finding tells where it is another one */
  .st-key-state:has(> .st-key-shows) > .st-key-output {{ display: none; }}
}}
:is(.st-key-finding, .st-key-verdict) p {{ font-size: 28px; }}
.st-key-finding:not(:empty) {{ min-height: 76px; }}
:root:has(.st-key-remote) {{ --hl-foot: {REMOTE}px; }}
.st-key-panel {{ max-height: calc(100vh - {PRESENT_STATE + 12}px); }}
.st-key-room_panel {{ zoom: 1.15; }}
.st-key-swap_effect [data-testid="stCaptionContainer"] {{ display: none; }}
[data-bar] .st-key-finding p {{ font-size: {FINDING_LETTERS}px; }}
[data-bar] .st-key-finding:not(:empty) {{ min-height: {FINDING}px; }}
[data-bar] :is(.st-key-menu, .st-key-views),
[data-bar] :is(.st-key-bar, .st-key-page) :is(p, label, input, button, textarea, [data-baseweb]) {{
  font-size: 0.7rem;
}}
[data-bar] .st-key-controls .stButtonGroup button {{ padding-inline: 0.4rem; }}
[data-bar] .st-key-panel {{ max-height: calc(100vh - {BAR + PRESENT_STATE + ROW_OF_PAGE + 12}px); }}
"""
# In a frame of another page: state, finding and picture alone, from 640 × 480 pixels on.
EMBED_STYLE = """
:root { --hl-menus: none; }
.st-key-stage_body .st-key-open_unframed {
  position: fixed; inset: 14px 32px auto auto; width: auto; z-index: 6;
}
.st-key-bar, .st-key-page, .st-key-body > :has(> .st-key-panel), [data-testid="stSkipToContent"],
.st-key-state > :is(.st-key-player, .st-key-step) { display: none; }
.st-key-state > .st-key-open_unframed { flex: none; }
@media (max-width: 899px) { /* keys undo as well */
  .st-key-state:has(> .st-key-shows) > .st-key-output,
  .st-key-state > :is(.st-key-undo, .st-key-redo, .st-key-as_trained) { display: none; }
}
"""


def language_style(code: str) -> str:
    """The language of the model's output, for browser_events to set: Streamlit's elements take no
    attributes."""
    return f":root {{ --output-language: {code or 'en'}; }}"


def tooltips(texts: Mapping[str, str]) -> str:
    """What comes up at the icon of a mask, by its key."""
    escaped = {key: text.replace('"', "'") for key, text in texts.items()}
    return "".join(
        f'.st-key-switches .st-key-{key} label::after {{ content: "{text}"; }}\n'
        for key, text in escaped.items()
    )


def style(present: bool, idle: Sequence[str]) -> str:
    """Further style of a page, or "". `idle` controls are hidden; if they were not drawn at all,
    they would leave the address."""
    hidden = "".join(f".st-key-{key} {{ display: none; }}\n" for key in idle)
    return hidden + PRESENT_STYLE * present
