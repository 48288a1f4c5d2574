"""The lines of changes that a session has had, for undo and redo."""

MAX_UNDO = 200  # steps that can be undone


class History:
    """The lines of changes that a session has had, for undo and redo."""

    def __init__(self):
        self.lines, self.at = [""], 0

    def hear(self, line: str) -> None:
        """Record the current line; a new one discards those that were undone."""
        if line != self.lines[self.at]:
            self.lines = [*self.lines[: self.at + 1], line][-MAX_UNDO:]
            self.at = len(self.lines) - 1

    def go(self, by: int) -> str:
        self.at = min(max(self.at + by, 0), len(self.lines) - 1)
        return self.lines[self.at]

    def can(self, by: int) -> bool:
        return 0 <= self.at + by < len(self.lines)
