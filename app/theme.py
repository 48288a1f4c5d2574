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
# distinguishable in every kind of colour vision; lines also differ in dashes and markers
LINES = [
    *("#88ccee", "#cc6677", "#ddcc77", "#117733", "#332288", "#aa4499"),
    *("#44aa99", "#999933", "#882255", "#661100", "#888888"),
]
INK = {"light": "#1b1c1f", "dark": "#f4f5f7"}
PAPER = {"light": "#fcfbf8", "dark": "#121417"}  # as in config.toml and stage/style.css
PRIMARY = {"light": "#0b5cad", "dark": "#7cc0ff"}  # as in app/.streamlit/config.toml

FONT = 16  # pixels
PROJECTOR = 1.5  # factor for text and lines of BertViz in Present
PAGE = 17  # pixels of the page's own text, as in app/.streamlit/config.toml
LARGER = 1.3  # factor for the text of figures in Present
ROOM_LINE = 36  # pixels: the line of a room, for those who are in one
DRAWER, NOTICES = 400, 330  # pixels: the drawer, and notices beside the stage
REMOTE = 42  # pixels: the line of a class at the foot of Present (class_steps/remote.css)
TOOLBAR = 26  # pixels: of Plotly, above a figure
CONTROL = 32  # pixels: the height of a control
FINDING_LETTERS = 20  # pixels
SMALL = "0.82rem"  # letters of what explains a picture, and of its key
NARROW, WIDE = 640, 1600  # pixels: a phone, at most; a large screen, at least
# Streamlit's own header is not needed: ours holds the menu (1.67). What is left of the page and
# right of it is as wide as in stage/style.css.
STYLE = f"""
[data-testid="stHeader"] {{ display: none; }}
.stMainBlockContainer {{ padding: 0 32px 1rem; }}
@media (min-width: {WIDE}px) {{ .stMainBlockContainer {{ padding-inline: 48px; }} }}
@media (max-width: {NARROW}px) {{ .stMainBlockContainer {{ padding-inline: 16px; }} }}
/* Letters grow as those of the header do, in stage/style.css. */
:root[data-stage-present] {{ font-size: 20px !important; }}
@media (min-width: {WIDE}px) {{
  html {{ font-size: 20px !important; }}
  :root[data-stage-present] {{ font-size: 25px !important; }}
}}
.stMainBlockContainer > .stVerticalBlock {{ gap: 0.3rem; }}
[data-testid="stCaptionContainer"] {{ opacity: 0.85; }}
.stElementContainer.st-key-remote {{ position: absolute; width: 1px; }}
.stElementContainer:is(.st-key-browser_events, .st-key-local_storage, .st-key-stage_run,
  .st-key-stage_look, .st-key-stage_said) {{
  position: absolute; visibility: hidden; width: 1px; overflow: hidden;
}}
.stMainBlockContainer :is(h2, h3) {{ font-size: 1.3rem; padding: 0.3rem 0; }}
.stMainBlockContainer h4 {{ font-size: 1.15rem; padding: 0.2rem 0; }}
.stApp [data-testid="stBaseButton-primary"], .stApp [data-testid="stBaseButton-primary"] * {{
  color: light-dark(white, {PAPER["dark"]});
}}
.st-key-source [data-testid="InputInstructions"] {{ display: none; }}
.st-key-opened {{ display: none; }}

.st-key-content {{ gap: 0.3rem; }}
.st-key-controls {{ gap: 0.5rem; }}
/* What is chosen from is words: the chosen one is underlined, as on the stage. */
.stMain [data-variant="segmented_control"] {{
  border: 0; background: none; border-radius: 0; min-height: 1.6rem; padding: 0; margin-right: 1rem;
  color: inherit; opacity: 0.75;

  &[data-selected] {{
    opacity: 1; box-shadow: 0 2px 0 {FOCUS}; background: none !important; color: inherit !important;
  }}
  &[data-selected] p {{ font-weight: 650; }}
}}
.stMain :is([data-testid="stPopoverButton"], .react-aria-ComboBox > div):not(
  :hover, :focus-within, :focus-visible) {{
  border-color: transparent; background: none;
}}
.st-key-head_picker button {{ padding-inline: 0; }}
.st-key-page_body [data-testid="stBaseButton-tertiary"] {{
  color: light-dark({PRIMARY["light"]}, {PRIMARY["dark"]});
}}
/* Share: the picture as a sheet of paper; what can be taken in lines, with acts at their right. */
.st-key-printed {{
  background: white; border-radius: 12px; padding: 1rem 1.2rem; gap: 0.5rem;
  box-shadow: 0 1px 2px rgb(0 0 0 / 0.1), 0 8px 28px rgb(0 0 0 / 0.09);
}}
.st-key-printed img {{ max-height: calc(100vh - 19rem); object-fit: contain; }}
.st-key-printed [data-testid="stCaptionContainer"] {{ color: #5d6068; opacity: 1; }}
@media (max-width: {NARROW}px) {{ .st-key-printed img {{ max-height: 30vh; }}
  .st-key-printed p {{
    display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden;
  }} }}
.st-key-printed p {{ font-size: {SMALL}; line-height: 1.4; }}
[class*="st-key-way_"] button {{ padding-inline: 0; min-height: 0; }}
[class*="st-key-way_"] [data-variant]:last-child {{ margin-right: 0; }}
.st-key-way_open section, .st-key-way_open section button {{
  border: 0; padding: 0; min-height: 0; background: none; text-align: right;
  color: light-dark({PRIMARY["light"]}, {PRIMARY["dark"]});
}}
.st-key-way_open [data-testid="stFileUploaderDropzoneInstructions"] {{ display: none; }}
.st-key-controls:empty, .st-key-notices:empty {{ display: none; }}
.st-key-explain {{ max-width: 60rem; margin-top: 0.8rem; }}
.katex-display {{ padding-inline: 2px; }} /* its letters reach so far beyond it */
.st-key-explain :is(p, li, label) {{ font-size: {SMALL}; line-height: 1.42; }}
.st-key-numbers_panel p {{ margin-bottom: 0.5rem; }}
.hl-key {{ display: flex; flex-wrap: wrap; gap: 0 1.2rem; font-size: {SMALL}; }}
.hl-key i {{
  display: inline-block; box-sizing: border-box; width: 0.9em; height: 0.7em;
  border-radius: 0.15em;
}}
.hl-key .scale {{ width: 6em; }}
.st-key-swap_effect {{ gap: 0.3rem; overflow: visible; padding-bottom: 6px; }}
.st-key-swap_effect :is(p, li) {{ font-size: 0.9rem; line-height: 1.4; margin-bottom: 0.4rem; }}
.st-key-swap_effect [data-testid="stMarkdownContainer"] {{ margin: 0; }}
.st-key-swap_effect .stElementContainer:has(.stPlotlyChart) {{ padding-top: 0; }}
.st-key-page_body .stExpander details {{ border: 0; }}
.st-key-page_body .stExpander summary {{ padding-inline: 0; }}
.st-key-walk_row {{ gap: 0.5rem; }}
.st-key-at button p {{ font-size: {SMALL}; }}
.st-key-page_body .st-key-at button {{ padding: 0; margin-right: 0.9rem; }}
.st-key-verdict [data-testid="stMarkdownContainer"] {{ margin-bottom: 0; }}
.st-key-verdict p {{ font-size: {FINDING_LETTERS}px; line-height: 1.3; margin: 0; }}
.st-key-trials label > div > div:first-child {{ display: none; }} /* the circle */
.st-key-trials label {{ padding: 2px 8px; margin-left: -8px; border-radius: 6px; }}
.st-key-trials label[data-selected] {{
    background: color-mix(in srgb, currentColor 9%, transparent);
}}
.st-key-trials label[data-selected] p {{ font-weight: 600; }}
/* Plotly's toolbar stands above its figure, on nothing that is to be read. */
.stElementContainer:has(.stPlotlyChart) {{ padding-top: {TOOLBAR}px; box-sizing: content-box; }}
.js-plotly-plot {{ overflow: visible !important; }}
.js-plotly-plot .modebar-container {{ transform: translateY(-{TOOLBAR}px); }}
/* A figure keeps a width at which its labels do not overlap, and scrolls. */
@media (max-width: {NARROW}px) {{
  [class*="_figure"] {{ overflow-x: auto; }}
  [class*="_figure"] > [data-testid="stFullScreenFrame"] {{ min-width: 40rem; }}
  .st-key-swap_figure > [data-testid="stFullScreenFrame"] {{ min-width: 50rem; }}
  .stMarkdown table {{ font-size: 0.75rem; overflow-wrap: break-word; }}
  .stMarkdown table code {{ overflow-wrap: anywhere; }}
  .stMarkdown :is(th, td) {{ padding: 0.25rem !important; }}
}}
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
# Learn on paper: the plan for a class alone, all unfolded. Streamlit's boxes around it would add an
# empty sheet (1.67).
PLAN_STYLE = """
@page plan { size: A4; margin: 11mm 13mm; }
@media print {
  body:has(.st-key-class_steps) {
    page: plan; background: none;

    :is(.st-key-stage_place, .st-key-explain, .st-key-join) { display: none; }
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
:root:has(.st-key-stage_body) .stElementContainer:has(iframe) {{ opacity: 1; }}
:root:has(.st-key-stage_body) {{ overflow: hidden; }}
.st-key-stage_body :is(.st-key-explain, .st-key-controls, .st-key-numbers_panel) {{
  display: none;
}}
.st-key-stage_body > :has(> .st-key-content) {{
  position: fixed; inset: 7rem calc(var(--hl-side, 0px) + 2rem) auto 2rem; width: auto;
  z-index: 6;
}}
:root:not([data-stage-covered]) .st-key-stage_body > :has(> .st-key-content) {{
  visibility: hidden;
}}
.st-key-stage_body .st-key-notices {{
  position: fixed; inset: 0 0 0 auto; width: {NOTICES}px; z-index: 6; padding: 1rem;
  background: light-dark({PAPER["light"]}, {PAPER["dark"]}); visibility: visible;
}}
:root:has(.st-key-stage_body .st-key-notices > *) {{ --hl-side: {NOTICES}px; }}
:root:has(.st-key-remote) {{ --hl-foot: {REMOTE}px; }}
/* What a lesson or a room is answered with, and the way on. */
:is(.st-key-stage_body, .st-key-page_body) .stHorizontalBlock.st-key-lesson_region {{
  position: fixed; inset: auto var(--hl-side, 0px) var(--hl-foot, 0px) 0; z-index: 6; width: auto;
  margin: 0; padding: 6px 32px 10px; max-height: 60vh; overflow: auto; align-items: center;
  background-color: light-dark({PAPER["light"]}, {PAPER["dark"]});
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
  :is(.st-key-stage_body, .st-key-page_body) .stHorizontalBlock.st-key-lesson_region {{
    padding: 4px 16px 8px; gap: 6px;

    > :has(> .st-key-lesson_choices), .st-key-room_panel > :has(> [class*="st-key-room_choices"]) {{
      flex: 1 0 100%;
    }}
  }}
  .st-key-lesson_region :is(.st-key-lesson_choices, [class*="st-key-room_choices"]) {{
    display: grid; grid-template-columns: 1fr 1fr; gap: 6px; width: 100%;

    > div, button {{ width: 100% !important; }}
    button {{ min-height: 46px; }}
  }}
}}
:root:has(.st-key-stage_body .st-key-lesson_region) .st-key-stage_body > :has(> .st-key-content) {{
  top: 14rem;
}}
/* The line of a room stands at the foot, above the remote. */
:is(.st-key-stage_body, .st-key-page_body) .stHorizontalBlock.st-key-room_line {{
  position: fixed; inset: auto 0 var(--hl-remote, 0px) 0; z-index: 7; width: auto; margin: 0;
  padding: 0 32px; height: {ROOM_LINE}px;
  background-color: light-dark({PAPER["light"]}, {PAPER["dark"]});
}}
:root:has(.st-key-room_line) {{ --hl-foot: {ROOM_LINE}px; }}
:root:has(.st-key-room_line):has(.st-key-remote) {{
  --hl-foot: {ROOM_LINE + REMOTE}px; --hl-remote: {REMOTE}px;
}}
.st-key-room_line button {{ min-height: {CONTROL - 4}px; height: {CONTROL - 4}px; }}
.st-key-room_line > :last-child {{ margin-left: auto; }}
[class*="st-key-room_choice"] button :is(div, span) {{ justify-content: flex-start; }}
.st-key-page_body {{ padding-bottom: calc(var(--hl-foot, 0px) + var(--hl-lesson, 0px) + 1rem); }}
.stVerticalBlock.st-key-drawer {{
  position: fixed; inset: 0 0 0 auto; width: min({DRAWER}px, 100vw); z-index: 7;
  padding: 2.8rem 2rem 1.2rem;
  overflow: hidden auto;
  background: light-dark({PAPER["light"]}, {PAPER["dark"]});
  box-shadow: -24px 0 60px rgb(0 0 0 / 0.12);
}}
/* What the document has of the stage, see server/first_screen.py and stage/style.css. */
#hl-first {{
  position: fixed; inset: 0; z-index: 4; padding: 0 32px; color-scheme: light dark;
  background: light-dark({PAPER["light"]}, {PAPER["dark"]});
  color: light-dark(#1b1d22, #eceae4); font: 25px/1.5 "Source Sans", system-ui, sans-serif;
}}
#hl-first.present {{ font-size: 32px; }}
#hl-first b {{ display: block; font-size: 17px; line-height: 53px; }}
#hl-first p {{ margin: 4px 0 0; font-size: inherit; }}
#hl-first :is(i, p + p) {{ color: light-dark(#5d6068, #a9abb2); }}
#hl-first i {{ font-size: 14px; font-style: normal; }}
#hl-first p + p {{ margin-top: 35px; line-height: 1.25; }}
@media (max-width: 640px) {{ #hl-first {{ padding: 0 16px; font-size: 17.5px; }} }}
:root:has(.stException, [data-testid="stConnectionStatus"]) #hl-first {{ display: none; }}
.st-key-drawer :is(p, label, input, textarea, button) {{ font-size: 0.9rem; }}
.st-key-drawer p {{ margin: 0 0 0.2rem; }}
.st-key-drawer strong {{ font-weight: 600; color: light-dark(#5d6068, #a9abb2); }}
.st-key-drawer > .st-key-menu {{ margin-left: -0.38rem; width: auto; }}
.st-key-drawer textarea {{ field-sizing: content; min-height: 0; max-height: 8rem; }}
.st-key-drawer :is(.stTextArea, .stTextArea *) {{ height: auto; min-height: 0; }}
.st-key-drawer [data-testid="stExpander"] details {{ border: 0; background: none; }}
.st-key-drawer [data-testid="stExpander"] summary {{ padding: 0.15rem 0; }}
.st-key-drawer .st-key-output button {{ padding: 0; justify-content: start; text-align: left; }}
.st-key-drawer .stSelectbox [role="group"] {{ padding-left: 0; }}
.st-key-drawer label[data-testid="stWidgetLabel"] {{ min-height: 0; margin-bottom: 0; }}
.st-key-drawer .st-key-close_drawer {{
  position: sticky; top: -2.4rem; z-index: 1; align-self: end; width: auto;
  margin: -2.4rem -1.4rem -0.4rem;
}}
"""
DOCUMENT_STYLE = STYLE + STALE_STYLE + PLAN_STYLE + STAGE_STYLE  # of every page


def language_style(code: str) -> str:
    """The language of the model's output, for browser_events to set: Streamlit's elements take no
    attributes."""
    return f":root {{ --output-language: {code or 'en'}; }}"
