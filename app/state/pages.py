"""All pages, in the order of the menu. Each declares itself in its file in views/, as PAGE."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from headlight.app.state.setting import Setting

VIEWS = Path(__file__).resolve().parent.parent / "views"


@dataclass(frozen=True)
class Page:
    """A page. `group`: its entry in the menu, of which it is a view; `view`: its name among the
    group's views, "" where it is the only one; `place`: its place among them; `path`: its path in
    the address, the name of its file unless given. `head`: it shows the selected head; `reading`:
    the display options apply; `untrained`: it shows models with random weights, whichever is
    selected; `idle`: other controls without effect there. `settings`: those that
    it draws itself; `script`: its file in views/, which need not be given."""

    title: str
    group: str
    view: str = ""
    place: int = 100
    path: str | None = None
    head: bool = False
    untrained: bool = False
    reading: bool = False
    idle: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = field(default=(), compare=False)
    script: str = ""

    @property
    def key(self) -> str:
        """The page's name in code and in files."""
        return self.path or HOME

    @property
    def file(self) -> str:
        """The page's script, as st.page_link takes it."""
        return f"views/{self.script}.py"


HOME, EXPORT = "attention", "take-away"
PADDING_MASKS = "src_padding", "tgt_padding", "memory_padding"
CHANGES = "what_if", "shows"
OUTPUT_SETTINGS = "output", "use_new_translation"  # in the state line
LEARN, ATTENTION, GENERATE, INSIDE = "Learn", "Attention", "Generate", "Inside a head"
EXPERIMENTS, MODEL, CHECK, SHARE = "Experiments", "Model", "Check", "Share"
MENU = LEARN, ATTENTION, GENERATE, INSIDE, EXPERIMENTS, MODEL, CHECK, SHARE


def declared(file: Path) -> Page:
    """The page that a file declares. Of the file, only what PAGE is made of is run: the rest draws
    the page, which needs Streamlit and all settings. Raises ValueError if it declares none."""
    definitions, needed = {}, []
    for statement in ast.parse(file.read_text(encoding="utf-8"), str(file)).body:
        definitions |= {name: part for name, part in _definitions(statement)}

    def need(name: str) -> None:
        """Collects what defines a name, after what that needs itself."""
        if (definition := definitions.pop(name, None)) is None:
            return
        for part in ast.walk(definition):
            if isinstance(part, ast.Name):
                need(part.id)
        if definition not in needed:  # several names may be assigned at once
            needed.append(definition)

    need("PAGE")
    if not needed:
        raise ValueError(f"{file} declares no page: it has no PAGE.")
    names: dict = {"__name__": file.stem}
    exec(compile(ast.Module(needed, []), str(file), "exec"), names)
    page = names["PAGE"]
    return replace(page, script=file.stem, path=file.stem if page.path is None else page.path)


def _definitions(statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """Each name that a statement defines, with the part that defines it."""
    match statement:
        case ast.Import() | ast.ImportFrom():
            for alias in statement.names:
                fields = {**vars(statement), "names": [alias]}
                yield alias.asname or alias.name, type(statement)(**fields)
        case ast.FunctionDef():
            yield statement.name, statement
        case ast.Assign():
            for target in statement.targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        yield part.id, statement


def in_order(pages: Iterable[Page]) -> list[Page]:
    """As in the menu: groups that it does not know come last."""

    def place(page: Page) -> tuple:
        known = page.group in MENU
        return MENU.index(page.group) if known else len(MENU), page.group, page.place

    return sorted(pages, key=place)


def settings_of(pages: Iterable[Page]) -> tuple[Setting, ...]:
    """What pages draw themselves, each setting once. Raises ValueError if two have one key."""
    settings: dict[str, Setting] = {}
    for page in pages:
        for setting in page.settings:
            known = settings.get(setting.key, setting)
            if replace(known, pages=()) != setting:
                raise ValueError(f"{page.file} declares “{setting.key}”, which another page has.")
            settings[setting.key] = replace(setting, pages=(*known.pages, page.key))
    return tuple(settings.values())


PAGES = {page.key: page for page in in_order(map(declared, sorted(VIEWS.glob("[!_]*.py"))))}
GROUPS = {  # entry of the menu → its views; Share is a menu of its own
    group: [page for page in PAGES.values() if page.group == group]
    for group in dict.fromkeys(page.group for page in PAGES.values())
    if group != SHARE
}
PAGE_SETTINGS = settings_of(PAGES.values())
