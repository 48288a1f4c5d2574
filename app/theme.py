"""The visual language: every colour and size of the figures, in one place.

Weights have a perceptually uniform scale whose lightness is ordered for every kind of colour
vision; differences have a scale symmetric around zero, red against blue. The selection is orange
everywhere, and nothing else is.
"""

from collections.abc import Sequence

import numpy as np
from plotly.colors import diverging, qualitative, sequential, unlabel_rgb

WEIGHTS = sequential.Viridis  # from 0 to 1, evenly spaced
DIFFERENCES = [  # evenly spaced too
    "#{:02x}{:02x}{:02x}".format(*map(int, unlabel_rgb(stop))) for stop in diverging.RdBu
]
FOCUS = "#e4572e"
MARKED = "rgba(228, 87, 46, 0.25)"  # FOCUS behind text
# distinguishable in every kind of colour vision; lines also differ in dashes and markers
LINES = qualitative.Safe
INK = {"light": "#1b1c1f", "dark": "#f4f5f7"}
PAPER = {"light": "#ffffff", "dark": "#171614"}  # as Streamlit draws it
PRIMARY = {"light": "#0b5cad", "dark": "#7cc0ff"}  # as in app/.streamlit/config.toml

FONT = 16  # pixels
PROJECTOR = 1.5  # factor for text and lines in projector mode
PAGE = 17  # pixels of the page's own text, as in app/.streamlit/config.toml
LARGER = 1.3  # its factor in projector mode
HEADER = 3.75  # rem: Streamlit's header, with the logo and the menu
# size of controls relative to the page's text, normally and in projector mode
CONTROLS = 0.82, 0.86
# Space reserved for elements that are drawn later, so that nothing moves.
BAR = 10.8  # rem: the four lines of the top bar
WIDE = 1200  # pixels; from this width on they do not wrap
GRID = 560  # pixels: the grid of heads is higher with any model
# Pixels: the height of a picture that is fully visible with its controls in a window 720 high; the
# least height of a row.
PICTURE, ROW = 375, 12

# Seconds, once per session, if a page has a style beyond the document's: the browser fetches a
# script before it applies one, and what it has drawn by then would jump.
HEAD_START = 0.2

# A projector has few pixels; they belong to the pictures. Grey captions are unreadable on it.
STYLE = f"""
.stMainBlockContainer {{ padding: {HEADER}rem 1rem 2rem; }}
[data-testid="stCaptionContainer"] {{ opacity: 0.85; }}
.st-key-top_bar {{ gap: 0.25rem; }}
.st-key-top_bar, .st-key-controls {{ zoom: {CONTROLS[0]}; }}
.st-key-top_bar:has([data-testid="stSkeleton"]) {{ visibility: hidden; }}
.st-key-top_bar h1 {{ font-size: 1.4rem; padding: 0; white-space: nowrap; }}
.st-key-browser_events {{ position: absolute; visibility: hidden; }}
.st-key-top_bar p {{ white-space: nowrap; margin: 0; }}
.st-key-top_bar .stMarkdown {{ display: flex; align-items: center; height: 2.5rem; }}
.st-key-top_bar [data-testid="stMarkdownContainer"] {{ margin-bottom: 0; }}
.st-key-effect .stMarkdown p {{
  white-space: normal; line-height: 1.25rem; max-height: 2.5rem; overflow-y: auto;
}}
.st-key-top_bar textarea {{
  field-sizing: content; min-height: 0; height: auto !important; max-height: 5.5rem;
  padding-block: 0.5rem;
}}
.st-key-top_bar input::placeholder {{ color: inherit; opacity: 1; }}
.st-key-top_bar .stButton button {{ white-space: nowrap; }}
.st-key-controls {{ gap: 0.4rem; }}
.stMainBlockContainer :is(h2, h3) {{ font-size: 1.3rem; padding: 0.3rem 0; }}
.stMainBlockContainer h4 {{ font-size: 1.15rem; padding: 0.2rem 0; }}
.st-key-block p {{ font-size: 0.87rem; line-height: 1.45; }}
.st-key-block a {{ height: auto; padding: 0; }}
.st-key-block a p {{ white-space: normal; }}
"""
RESERVED_STYLE = f"""
.st-key-head_grid {{ min-height: {GRID}px; }}
@media (min-width: {WIDE}px) {{
  .st-key-top_bar {{ min-height: {BAR}rem; }}
  .st-key-effect {{ flex-wrap: nowrap; }}
  .st-key-effect > * {{ flex: none; }}
  .st-key-effect > :has(.stMarkdown):not(:last-child) {{ flex: 0 1 auto; min-width: 0; }}
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
NARROW = 640  # pixels; below this width Streamlit stacks its columns, too
# The bar is folded into one line. When opened it scrolls with the page, because it is half as high
# as a phone. The title moves into Streamlit's header. A figure keeps a width at which its labels do
# not overlap, and scrolls.
FOLDED = ".st-key-top_bar:not(:has(.hl-fold[open]))"
NARROW_STYLE = f"""
:has(> .stHtml > .hl-fold) {{ display: none; }}
@media (max-width: {NARROW}px) {{
  :has(> .stHtml > .hl-fold) {{ display: block; width: auto; flex: none; }}
  .hl-fold summary {{ cursor: pointer; padding: 0.6rem 0; white-space: nowrap; }}
  .st-key-top_bar .st-key-texts > .st-key-source {{ flex: 1 1 8rem; width: auto; min-width: 0; }}
  {FOLDED} > :not(:has(> .st-key-texts)):not(:has(> .st-key-page)),
  {FOLDED} .st-key-texts > :not(.st-key-model, .st-key-source, :has(.hl-fold)),
  {FOLDED} .st-key-page > :not(:has(h1)) {{ display: none; }}
  .st-key-top_bar h1 {{
    position: fixed; top: 1.5rem; right: 2.6rem; font-size: 1.1rem; z-index: 1000000;
  }}
  {FOLDED} .st-key-texts {{ flex-wrap: nowrap; }}
  {FOLDED}:has([class*="st-key-badge_"]) summary::after {{ content: " ●"; }}
  {FOLDED} .st-key-texts > .st-key-model {{ flex: 0 0 7rem; width: auto; min-width: 0; }}
  {FOLDED} textarea:not(:focus) {{
    field-sizing: fixed; height: 2.5rem !important; white-space: pre; overflow: hidden;
  }}
  [data-testid="stLayoutWrapper"]:has(> .st-key-top_bar .hl-fold[open]) {{ position: static; }}
  [data-testid="stLayoutWrapper"]:has(> .st-key-top_bar) {{ z-index: 999990; }}
  [class*="_figure"] {{ overflow-x: auto; }}
  [class*="_figure"] > [data-testid="stFullScreenFrame"] {{ min-width: 40rem; }}
  .st-key-comparison_figure > [data-testid="stFullScreenFrame"] {{ min-width: 60rem; }}
  .stMarkdown table {{ font-size: 0.75rem; overflow-wrap: break-word; }}
  .stMarkdown table code {{ overflow-wrap: anywhere; }}
  .stMarkdown :is(th, td) {{ padding: 0.25rem !important; }}
}}
"""
BAR_STYLE = f"""
[data-testid="stLayoutWrapper"]:has(> .st-key-top_bar) {{
  position: sticky; top: {HEADER:.2f}rem; z-index: 5; order: -1; padding: 0.25rem 0;
  background: light-dark({PAPER["light"]}, {PAPER["dark"]});
}}
"""
# The style of every page. The bar's wrapper is sticky, because the bar itself would scroll away
# (Streamlit 1.67).
DOCUMENT_STYLE = STYLE + STALE_STYLE + BAR_STYLE + RESERVED_STYLE + NARROW_STYLE
PROJECTOR_STYLE = f"""
html {{ font-size: {PAGE * LARGER:.0f}px !important; }}
[data-testid="stHeader"] {{ zoom: {1 / LARGER:.2f}; }}
.stMainBlockContainer {{ padding-top: {HEADER / LARGER:.2f}rem; }}
[data-testid="stLayoutWrapper"]:has(> .st-key-top_bar) {{ top: {HEADER / LARGER:.2f}rem; }}
.st-key-top_bar, .st-key-controls {{ zoom: {CONTROLS[1] / LARGER:.2f}; }}
.stMainBlockContainer > .stVerticalBlock, .st-key-content {{ gap: 0.5rem; }}
"""


def ramp(palette: list[str], count: int) -> np.ndarray:
    """`count` colours evenly spaced over a scale, bytes (count, rgb)."""
    stops = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in palette])
    places = np.linspace(0, len(stops) - 1, count)
    channels = [np.interp(places, range(len(stops)), channel) for channel in stops.T]
    return np.rint(np.stack(channels, axis=-1)).astype(np.uint8)


def style(projector: bool, idle: Sequence[str]) -> str:
    """Further style of a page, or "". `idle` controls of the bar are hidden with their labels; if
    they were not drawn at all, they would leave the address."""
    hidden = "".join(
        f".st-key-{key}, .st-key-top_bar .stElementContainer:has(.stMarkdown):has(+ .st-key-{key})"
        " { display: none; }\n"
        for key in idle
    )
    return hidden + PROJECTOR_STYLE * projector
