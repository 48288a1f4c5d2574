"""Old addresses lead to the page that took their place, with all their parameters."""

import pytest

from headlight.app.server.heirs import heir_of
from headlight.app.server.renamed import RENAMED
from headlight.app.state.settings import SETTINGS


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
        ("//example.com?shows=Without", ""),
        ("//example.com/family?implementations=2017+to+today", ""),
        ("/\\example.com?shows=Without", ""),
        ("/inside?at=Residual%2C+norm", "/inside?at=Add+%26+norm"),
        ("/residual?picture=Layers+alike", "/residual?picture=Similarity"),
        ("/alignment?aligned_at=is+read", "/alignment?aligned_at=word+just+read"),
    ],
)
def test_an_old_address_leads_to_its_heir(old, new):
    path, _, query = old.partition("?")
    assert heir_of(path, query.encode()) == new


def test_every_renamed_option_is_one_of_its_setting():
    for key, names in RENAMED.items():
        setting = SETTINGS[key]
        for old, new in names.items():
            assert setting.could_be(new) and not (setting.among and old in setting.among), old
