"""The folders app/, model/ and assets/ are installed below headlight/, and of docs/ the page with
what commands print. Everything else about the project stands in pyproject.toml."""

import sys

from setuptools import find_packages, setup

if "editable_wheel" in sys.argv:
    # `pip install -e` puts the checkout on the path, where headlight/ finds the folders beside it.
    # Setuptools' other way is asked last: in the folder that holds the checkout, `import headlight`
    # would find that folder first, and nothing in it.
    setup(packages=["headlight"], package_dir={"": "."})
else:
    FOLDERS = ("app", "model", "assets", "docs")
    packages = [*find_packages(include=["app", "app.*", "model", "model.*"]), "assets", "docs"]
    setup(
        packages=["headlight", *(f"headlight.{name}" for name in packages)],
        package_dir={"headlight": "headlight"} | {f"headlight.{name}": name for name in FOLDERS},
    )
