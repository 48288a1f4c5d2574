"""Settings that several pages draw. Each page has those of its own in its file, see pages.py."""

from headlight.app.state.options import CLEAREST_ROW, LARGEST_WEIGHT
from headlight.app.state.setting import Setting

FOLLOW = Setting(
    "follow",
    "Query",
    CLEAREST_ROW,
    "select",
    "The query to follow. It starts with the row that Attention marks, or that you selected there.",
    look={"width": 260},
)
KEY = Setting(
    "to",
    "Key",
    LARGEST_WEIGHT,
    "select",
    look={"width": 260},
)
PICTURE = Setting(
    "picture",
    "Picture",
    "",
    "segmented",
    "Which picture this page shows.",
    look={"label_visibility": "collapsed", "width": "content"},
)
