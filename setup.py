"""The folders app/, model/ and assets/ are installed below headlight/: headlight.py leads there.
Everything else about the project stands in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = ("app", "model", "assets")

packages = [*find_packages(include=["app", "app.*", "model", "model.*"]), "assets"]
setup(
    py_modules=["headlight"],
    packages=[f"headlight.{name}" for name in packages],
    package_dir={f"headlight.{name}": name for name in FOLDERS},
)
