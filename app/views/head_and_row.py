"""The stage: what the heads attend to, from all of them down to the scores of one row."""

from headlight.app import selection
from headlight.app.shell import frame, stage
from headlight.app.text import notices


def page() -> None:
    shown = selection.shown(selection.run(changed=True))
    trace = shown.trace
    for side, typed in zip(trace.sides.values(), selection.typed_texts(), strict=False):
        for sentence in notices.notices(side.title, typed, trace.texts[side.name]):
            frame.notices().info(sentence)
    stage.draw(shown, stage.former(shown))
