"""A class beside six clients that send as fast as they can."""

import pytest

from tests.app.test_serve import needs_nginx
from tests.load import hostile


@needs_nginx
@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_class_goes_on_beside_six_hostile_clients():
    """The bars are in hostile.measure."""
    assert hostile.measure(2, None) == 0
