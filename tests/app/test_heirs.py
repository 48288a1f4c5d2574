"""Old addresses lead to the page that took their place, with all their parameters."""

import pytest

from headlight.app.server.heirs import heir_of


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/family?implementations=2017+to+today", "/lineage"),
        ("/family?a=1&implementations=2017+to+today&b=", "/lineage?a=1&b="),
        ("/family?implementations=Differences", ""),
        ("/?shows=Without&changes=cross%3Doff", "/?shows=Before&changes=cross%3Doff"),
        ("/generate?shows=With+the+changes", "/generate?shows=After"),
        ("/?shows=Before&source=Without", ""),
        ("/?source=With+the+changes", ""),
    ],
)
def test_an_old_address_leads_to_its_heir(old, new):
    path, _, query = old.partition("?")
    assert heir_of(path, query.encode()) == new
