"""Settings that several pages draw. Each page has those of its own in its file, see pages.py."""

from headlight.app.state.options import SECOND_TOKEN
from headlight.app.state.setting import Setting

FOLLOW = Setting(
    "follow",
    "Query",
    SECOND_TOKEN,
    "select",
    "The query to follow. Selecting a token on Attention sets it too.",
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
