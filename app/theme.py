"""The visual language: every colour and size of the figures, in one place.

Weights have a scale that is perceptually uniform and falls in the same order of lightness to
every eye; differences have one that is symmetric around zero, red against blue. What is in focus
is orange everywhere, and nothing else is.
"""

from plotly.colors import diverging, qualitative, sequential, unlabel_rgb

WEIGHTS = sequential.Viridis  # from 0 to 1, evenly spaced
DIFFERENCES = [  # evenly spaced too
    "#{:02x}{:02x}{:02x}".format(*map(int, unlabel_rgb(stop))) for stop in diverging.RdBu
]
FOCUS = "#e4572e"
MARKED = "rgba(228, 87, 46, 0.25)"  # FOCUS behind text
LINES = qualitative.Safe  # told apart by every eye; dashes and markers tell them apart too
INK = {"light": "#1b1c1f", "dark": "#f4f5f7"}
PAPER = {"light": "#ffffff", "dark": "#171614"}  # as Streamlit draws it
PRIMARY = {"light": "#0b5cad", "dark": "#7cc0ff"}  # as in app/.streamlit/config.toml

FONT = 16  # pixels
PROJECTOR = 1.5  # how many times larger letters and lines are in projector mode
PAGE = 17  # pixels of the page's own text, as in app/.streamlit/config.toml

# A projector has few pixels: spend them on pictures. Grey captions cannot be read from it.
STYLE = """
.stMainBlockContainer { padding: 3.75rem 1rem 2rem; }
[data-testid="stCaptionContainer"] { opacity: 0.85; }
.st-key-top_bar { gap: 0.25rem; }
.st-key-top_bar h1 { font-size: 1.4rem; padding: 0; white-space: nowrap; }
.st-key-top_bar p { white-space: nowrap; }
.st-key-top_bar .stMarkdown { display: flex; align-items: center; height: 2.5rem; }
.st-key-top_bar [data-testid="stMarkdownContainer"] { margin-bottom: 0; }
.st-key-top_bar textarea {
  field-sizing: content; min-height: 0; height: auto !important; max-height: 5.5rem;
  padding-block: 0.5rem;
}
.st-key-top_bar input::placeholder { color: inherit; opacity: 1; }
.st-key-top_bar .stButton button { white-space: nowrap; }
"""
PROJECTOR_STYLE = f"""
html {{ font-size: {PAGE * 1.3:.0f}px !important; }}
.st-key-top_bar {{ zoom: {1 / 1.3:.2f}; }}
"""


def style(projector: bool, theme: str) -> str:
    """Style of every page, its bar included."""
    return (
        STYLE + sticky("top_bar", "top: 3.75rem; z-index: 5", theme) + PROJECTOR_STYLE * projector
    )


def sticky(key: str, edge: str, theme: str) -> str:
    """Style that keeps a container, by its key, at an edge of the window. On the container itself
    it would scroll away with what it stands in (Streamlit 1.67)."""
    return f"""
[data-testid="stLayoutWrapper"]:has(> .st-key-{key}) {{
  position: sticky; {edge}; padding: 0.25rem 0; background: {PAPER[theme]};
}}
"""
