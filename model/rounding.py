"""Numbers as they are written, by one rule in Python and in the browser: a half is rounded up, as
by JavaScript's toFixed. Python's own formats round halves to even: 12.5% would be 12% here and 13%
there."""

from decimal import ROUND_HALF_UP, Decimal


def fixed(number: float, digits: int = 0) -> str:
    """With so many decimals; a half away from 0."""
    if not abs(number) < float("inf"):
        return f"{number}"
    unit = Decimal(1).scaleb(-digits)
    return f"{Decimal(float(number)).quantize(unit, ROUND_HALF_UP):f}"


def percent(share: float, digits: int = 0) -> str:
    """In percent; a positive share that rounds to 0 is “<1%”, or “<0.1%” with one digit."""
    least = 10.0**-digits
    if 0 < 100 * share < least / 2:
        return f"<{least:.{digits}f}%"
    return f"{fixed(100 * share, digits)}%"
