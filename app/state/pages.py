"""All pages, in the order of the menu: a row of MENU for each, and a module in app/views that
draws it. The settings that a page draws itself are in page_settings.py."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from headlight.app.server.checked_file import YOURS_PATH, checked_file
from headlight.app.state import page_settings
from headlight.app.state.page_settings import PICTURE
from headlight.app.state.setting import Setting

VIEWS = Path(__file__).resolve().parent.parent / "views"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page. `group`: what it is a view of; `view`: its name among the group's views, "" where it
    is the only one; `module`: its module in app/views; `path`: its path in the address; `picture`:
    the CSS selector of what it shows first. `head`: it shows the selected head; `run`: it is about
    the model and the sentence that are chosen; `changes`: as they are changed; `weights`: of the
    selected model it needs no more than attention weights; `stage`: it has a screen of its own.
    `pictures`: its own views, by what the setting “picture” calls them, the first by default.
    `settings`: those that it draws itself."""

    title: str
    group: str
    view: str = ""
    module: str
    path: str
    picture: str = ""
    head: bool = False
    run: bool = True
    changes: bool = True
    weights: bool = False
    stage: bool = False
    pictures: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = field(default=(), compare=False)

    @property
    def key(self) -> str:
        """The page's name in code and in files."""
        return self.path or HOME

    def draw(self) -> None:
        """Draw the page. Its module is imported when it is first opened: most take seconds."""
        import_module(f"headlight.app.views.{self.module}").page()


HOME, EXPORT = "stage", "take-away"
ELSEWHERE = "", "learn", "lookup", "lineage", EXPORT  # paths that the header or Learn leads to
LESSONS, IN_CLASS = "Lessons", "In class"
LEARN, HEADS, OF_HEAD = "Learn", "Heads", "Head"
MODEL, CHECK, SHARE = "Model", "Check", "Share"

MENU = (
    Page(
        title="Learn",
        group=LEARN,
        view="Lessons",
        pictures=(LESSONS, IN_CLASS),
        module="learn",
        path="learn",
        picture=".st-key-lesson_cards",
        run=False,
        weights=True,
        settings=(PICTURE,),
    ),
    Page(
        title="Heads",
        group=HEADS,
        module="heads",
        path="",
        picture=".st-key-stage_place",
        head=True,
        weights=True,
        stage=True,
        settings=page_settings.STAGE_CONTROLS,
    ),
    Page(
        title="Inside a head",
        group=OF_HEAD,
        view="All steps",
        module="inside_a_head",
        path="inside",
        picture=".st-key-pictures",
        changes=False,
        settings=page_settings.INSIDE_CONTROLS,
    ),
    Page(
        title="Tokenizer",
        group=MODEL,
        view="Tokenizer",
        module="tokenizer",
        path="tokenizer",
        picture=".st-key-token_tiles",
        changes=False,
        settings=page_settings.TOKENIZER_CONTROLS,
    ),
    Page(
        title="From 2017 to Llama",
        group=LEARN,
        view="2017 → Llama",
        module="from_2017_to_llama",
        path="lineage",
        picture=".st-key-swap_line",
        run=False,
        weights=True,
        settings=page_settings.LINEAGE_CONTROLS,
    ),
    Page(
        title="Query–key–value",
        group=LEARN,
        view="Query, key, value",
        module="query_key_value",
        path="lookup",
        picture=".st-key-look_up",
        run=False,
        weights=True,
        settings=page_settings.LOOKUP_CONTROLS,
    ),
    Page(
        title="BertViz",
        group=CHECK,
        view="BertViz",
        module="bertviz_page",
        path="bertviz",
        picture=".st-key-bertviz_frame",
        head=True,
        weights=True,
        settings=page_settings.BERTVIZ_CONTROLS,
    ),
    Page(
        title="Yours",
        group=CHECK,
        view="Yours",
        module="yours",
        path=YOURS_PATH,
        picture=".st-key-yours_matrices",
        run=False,
        weights=True,
    ),
    Page(
        title="Share",
        group=SHARE,  # a menu of its own
        module="share",
        path="take-away",
        picture=".st-key-printed",
        head=True,
        weights=True,
        settings=page_settings.EXPORT_CONTROLS,
    ),
)


def check_modules(pages: Iterable[Page], files: Iterable[Path]) -> None:
    """Raises ValueError unless each module of app/views has a page, and each page a module."""
    named, there = ({page.module for page in pages}, {file.stem for file in files})
    for name in sorted(there - named):
        raise ValueError(
            f"app/views/{name}.py has no row in MENU of app/state/pages.py, see docs/extending.md."
        )
    for name in sorted(named - there):
        raise ValueError(f"app/state/pages.py names app/views/{name}.py, which does not exist.")


def settings_of(pages: Iterable[Page]) -> tuple[Setting, ...]:
    """What pages draw themselves, each setting once. Raises ValueError if two have one key."""
    settings: dict[str, Setting] = {}
    for page in pages:
        for setting in page.settings:
            known = settings.get(setting.key, setting)
            if replace(known, pages=()) != setting:
                raise ValueError(f"{page.title} declares “{setting.key}”, which another page has.")
            settings[setting.key] = replace(setting, pages=(*known.pages, page.key))
    return tuple(settings.values())


check_modules(MENU, VIEWS.glob("[!_]*.py"))
PAGES = {page.key: page for page in MENU if page.key != YOURS_PATH or checked_file()}
# Further addresses → keys: a page opens by its title, too, and one that is gone opens what took its
# place.
_titles = {re.sub(r"\W+", "-", page.title.lower()): page for page in PAGES.values()}
ALIASES = {name: page.key for name, page in _titles.items() if name != page.path}
PYTORCH = {"depth": "head", "view": "pytorch"}
FORMER_PLACES = {  # path of a former page, and its picture where one is meant → place of the stage
    ("attention", ""): {"depth": "head"},
    ("row", ""): {"depth": "row"},
    ("lines", ""): {"depth": "head", "view": "lines"},
    ("alignment", ""): {"depth": "head", "view": "best"},
    ("heads", ""): {"depth": "heads", "heads": "habit"},
    ("ablation", ""): {"depth": "heads", "heads": "effect"},
    ("model", ""): {"depth": "model"},
    ("architecture", ""): {"depth": "model"},
    ("residual", ""): {"depth": "model", "whole": "after"},
    ("residual-stream", ""): {"depth": "model", "whole": "after"},
    ("positions", ""): {"depth": "model", "whole": "positions"},
    ("positions", "Sum"): {"depth": "model", "whole": "input"},
    ("positional-encoding", ""): {"depth": "model", "whole": "positions"},
    ("attribution", ""): {"depth": "row", "stop": "word"},
    ("attribution", "Methods compared"): {"depth": "model", "whole": "needs"},
    ("attribution", "Source words"): {"depth": "model", "whole": "needs"},
    ("generate", ""): {"depth": "head", "write": "one"},
    ("generate", "Beam search"): {"depth": "head", "write": "beams"},
    ("generate", "Sampling"): {"depth": "head", "write": "sampled"},
    ("lookup", "Query–key plane"): {"depth": "number"},
    ("compare", ""): PYTORCH,
    ("pytorch", ""): PYTORCH,
}
_former = {path: HOME for path, picture in FORMER_PLACES if not picture}
ALIASES |= {"family": "lineage", "export": EXPORT, HOME: HOME} | _former
GROUPS = {  # entry of the menu → its views
    group: [page for page in PAGES.values() if page.group == group]
    for group in dict.fromkeys(page.group for page in MENU)
    if group != SHARE
}
PAGE_SETTINGS = settings_of(MENU)
