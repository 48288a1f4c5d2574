"""The folders app/, model/ and assets/ are installed below headlight/, and of docs/ the page that
the app shows: headlight.py leads there.
Everything else about the project stands in pyproject.toml."""

from setuptools import find_packages, setup
from setuptools.command.editable_wheel import editable_wheel

FOLDERS = ("app", "model", "assets", "docs")


class Editable(editable_wheel):
    """`pip install -e .`: headlight.py alone, which finds the folders beside it. With packages
    listed, setuptools would put an empty namespace package before it."""

    def run(self) -> None:
        self.distribution.packages = []
        super().run()


packages = [*find_packages(include=["app", "app.*", "model", "model.*"]), "assets", "docs"]
setup(
    py_modules=["headlight"],
    packages=[f"headlight.{name}" for name in packages],
    package_dir={f"headlight.{name}": name for name in FOLDERS},
    cmdclass={"editable_wheel": Editable},
)
