"""What two addresses say differently."""

import pytest

from headlight.app.state import address


@pytest.mark.parametrize(
    ("before", "now", "keys"),
    [
        ("", "", set()),
        ("model=a", "model=a", set()),
        ("model=a&layer=1", "layer=1&model=a", set()),
        ("model=a", "model=b", {"model"}),
        ("model=a", "", {"model"}),
        ("leave_out=1&leave_out=2", "leave_out=1", {"leave_out"}),
        ("target=", "", {"target"}),
        ("source=a%20dog", "source=a+dog", set()),
    ],
)
def test_keys_with_other_texts(before, now, keys):
    assert address.differences(before, now) == address.differences(now, before) == keys
