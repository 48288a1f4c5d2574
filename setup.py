"""The folders app/, model/ and assets/ are installed below headlight/, and of docs/ the page with
what commands print. Everything else about the project stands in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = ("app", "model", "assets", "docs")
packages = [*find_packages(include=["app", "app.*", "model", "model.*"]), "assets", "docs"]
setup(
    packages=["headlight", *(f"headlight.{name}" for name in packages)],
    package_dir={"headlight": "headlight"} | {f"headlight.{name}": name for name in FOLDERS},
)
