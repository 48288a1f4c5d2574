"""What a session has changed, for undo and redo."""

MAX_UNDO = 200  # steps that can be undone


class History:
    """The states that a session has had, for undo and redo: the line of changes, and the origin of
    a target that was decoded with the settings, else None."""

    def __init__(self):
        self.states, self.at = [("", None)], 0

    @property
    def state(self) -> tuple:
        return self.states[self.at]

    def hear(self, *state) -> None:
        """Record the current state; a new one discards those that were undone."""
        if state != self.state:
            self.states = [*self.states[: self.at + 1], state][-MAX_UNDO:]
            self.at = len(self.states) - 1

    def go(self, by: int) -> tuple:
        self.at = min(max(self.at + by, 0), len(self.states) - 1)
        return self.state

    def can(self, by: int) -> bool:
        return 0 <= self.at + by < len(self.states)
