"""What users read; strings.json holds the sentences and limits that scripts know, too."""

import json
from pathlib import Path

STRINGS = json.loads(Path(__file__).with_name("strings.json").read_text(encoding="utf-8"))
