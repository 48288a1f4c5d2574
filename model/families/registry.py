"""The families: every file of this folder that has a FAMILY."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from headlight.model import families as folder
from headlight.model.families.family import Family


@cache
def families() -> tuple[Family, ...]:
    names = sorted(module.name for module in iter_modules(folder.__path__))
    modules = (import_module(f"{folder.__name__}.{name}") for name in names)
    return tuple(module.FAMILY for module in modules if hasattr(module, "FAMILY"))


def family_of(model_type: str) -> Family | None:
    """That of a config.json's model_type; None for an unknown one."""
    return next((family for family in families() if model_type in family.model_types), None)
