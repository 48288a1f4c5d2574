"""The surveys in the folders of the shipped models."""

import pytest

from headlight.model.analysis.baselines import REPLACEMENTS
from headlight.model.checkpoint import parameters_sha256
from headlight.model.surveys import survey_command
from headlight.model.surveys.survey import FILE, Survey
from tests.model.common import CHECKPOINTS, ROOT, load


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: path.name)
def test_it_is_of_this_model_and_of_all_its_heads(path):
    survey, checkpoint = Survey.load(path), load(path)
    assert survey.card["parameters"] == parameters_sha256(checkpoint.model)
    heads = sum(site.n_heads for site in checkpoint.model.sites())
    assert survey.card["test"] == f"paired randomisation, {200 * heads:,} exchanges"
    assert min(r["p_holm"] for r in survey.of("loss")) <= 0.005
    measures = ["entropy", "positional", "separators", "loss", survey.card["score"]]
    measures += ["mean", "resample", "random", *(f"{name} − random" for name in REPLACEMENTS)]
    for measure in filter(None, measures):
        assert len(survey.of(measure)) == heads, measure
    assert (path / FILE).stat().st_size < 300_000 and survey.card["sentences"] >= 500


def test_a_head_in_words():
    by_name = {path.name: Survey.load(path) for path in CHECKPOINTS}
    en_de = by_name["en-de"]
    changes = {(row["kind"], row["layer"] - 1, row["head"] - 1): row for row in en_de.of("bleu")}
    for head, row in changes.items():
        said = en_de.in_words(*head)
        assert said.startswith(f"Over {en_de.card['sentences']:,} sentences, as trained, it ")
        answer, matters = en_de.importance(*head)
        assert f"BLEU changes by {row['value']:+.2f} (95% interval ".replace("-", "−") in matters
        assert ("not significant" in matters) == (row["p_holm"] > 0.05)
        costly = [
            (beyond := en_de.head(*head)[f"{name} − random"])["value"] > 0
            and beyond["p_holm"] <= 0.05
            for name in REPLACEMENTS
        ]
        assert en_de.needed(*head) == all(costly)
        yes = "Yes." if all(costly) else "Not clearly." if any(costly) else "No clear effect alone."
        start = f"{yes} Over {en_de.card['sentences']:,} sentences, as trained, the model loses "
        assert answer.startswith(start)
        for costs, name in zip(costly, ("zero", "mean output", "other texts"), strict=True):
            before, _, behind = answer.partition("than with a random vector added")
            assert name in (before if costs else behind) or not any(costly)
        names = en_de.names(*head)
        for named in names:
            low, high = named.row["low"], named.row["high"]
            assert f"{named.row['value']:.0%} of " in said
            assert f"(95% interval {low:.0%} to {high:.0%})" in said
        assert said.endswith(f". Named: {', '.join(n.name for n in names)}.") or not names
    reverse = by_name["reverse"]
    assert reverse.in_words("encoder", 1, 1).endswith(", it has no named pattern.")
    assert (reverse.in_words("encoder", 7, 1), *reverse.importance("encoder", 7, 1)) == ("",) * 3


@pytest.mark.long
@pytest.mark.parametrize("name", ["copy", "sort"])
def test_it_is_made_again_by_one_command(tmp_path, name):
    out = tmp_path / "again.parquet"
    survey_command.main([name, "--out", str(out)])
    shipped, again = Survey.load(next(p for p in CHECKPOINTS if p.name == name)), Survey.load(out)
    assert len(shipped.rows) == len(again.rows)
    for one, other in zip(shipped.rows, again.rows, strict=True):
        for column, value in one.items():
            if isinstance(value, float):
                assert other[column] == pytest.approx(value, rel=1e-3, abs=1e-6)
            else:
                assert other[column] == value
    assert shipped.card["parameters"] == again.card["parameters"]


def test_a_survey_without_baselines_says_so():
    survey = Survey.load(next(path for path in CHECKPOINTS if path.name == "copy"))
    rows = tuple(row for row in survey.rows if "random" not in row["measure"])
    earlier = Survey(rows, survey.card)
    answer, matters = earlier.importance("cross", 0, 0)
    assert earlier.needed("cross", 0, 0) is None and "has no baselines" in answer
    assert matters == survey.importance("cross", 0, 0)[1]


def test_what_the_documentation_says_of_them():
    counts = {}
    for path in CHECKPOINTS:
        survey = Survey.load(path)
        rows = survey.of("loss")
        heads = [(row["kind"], row["layer"] - 1, row["head"] - 1) for row in rows]
        needed = sum(survey.needed(*head) for head in heads)
        counts[path.name] = needed, sum(row["p_holm"] <= 0.05 for row in rows)
    said = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    (needed, cost), de, english = (counts[name] for name in ("en-fr", "en-de", "english"))
    assert (
        f"Of the {cost} heads of `en-fr` that cost something when they are off, {needed} are "
        f"needed. Of `en-de` it is {de[0]} of {de[1]}, and of `english` {english[0]} of "
        f"{english[1]}." in said
    )
