"""How large an upload may be: the same for the app and for nginx in front of it."""

import tomllib
from pathlib import Path

CONFIGURATION = Path(__file__).resolve().parents[1] / ".streamlit" / "config.toml"
LARGEST_UPLOAD = tomllib.loads(CONFIGURATION.read_text("utf-8"))["server"]["maxUploadSize"]  # MB
TOO_LARGE = f"This is too large to upload: the limit is {LARGEST_UPLOAD} MB."
