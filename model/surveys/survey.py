"""A survey: measures of every head over many sentences, and the loss without it, with confidence
intervals.

A tidy table, one row per number:

    part            "head", "sublayer", "layer", or "model" for the model as it is
    kind            of a head's attention: encoder, decoder, cross; of a sublayer also
                    encoder_feed_forward …; of a layer its stack
    layer, head     from 1
    measure         see MEASURES
    at              of "positional" the offset of the key from the query, of "alignment" the row
                    that aligns: 0 reads the word, 1 predicts it
    value, low, high   with its 95% interval from bootstrap samples of sentences
    uniform         what a head has that attends to all keys alike
    p, p_holm       of a change, and of what a baseline costs beyond the control, that there is
                    none: paired approximate randomisation (Noreen 1989), with as many exchanges
                    as the adjustment over all parts of the sort (Holm 1979) needs
    sentences, rows how many it was measured on
    best            of what heads are named by (RULES), numbers of the sentences in which it is
                    furthest beyond a uniform head

The card, JSON in the file, says what was surveyed, and by which `test`, and holds the sentences
that `best` names. A survey whose card names no test is an earlier one: its p is of 1,000 bootstrap
samples, too few for more than 50 heads.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from headlight.model.analysis.baselines import (
    BEYOND,
    CONTROL,
    MEAN,
    REPLACEMENTS,
    RESAMPLE,
    ZERO,
)
from headlight.model.analysis.head_metrics import LEAST_ALIGNED, Measured
from headlight.model.files import replacing
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.probing.sites import kinds_of
from headlight.model.rounding import percent
from headlight.model.sites import Site
from headlight.model.surveys.survey_check import METRICS, check_card, check_rows

FILE = "survey.parquet"
CARD = b"headlight"
LONGEST_REASON = 300  # characters
SIGNIFICANT = 0.05  # of p_holm
MAX_SURVEY_ROWS, MOST_BYTES = 10**5, 2**26  # of a file, unpacked
POSITIONAL, ALIGNMENT = "positional", "alignment"
MEASURES = {  # those that are no head metric, see analysis/head_metrics.py
    POSITIONAL: "share of rows whose largest weight is at one offset",
    "separators": "share of weight on special tokens and punctuation",
    "rare": "share of rows whose largest weight is on the rarest token",
    ALIGNMENT: "share of target words aligned with the source word that the model needs most",
    "loss": "nats per token; for a part, the change without it",
    "bleu": "sacreBLEU, greedy; for a part, the change without it",
    "accuracy": "% of classes that are right; for a part, the change without it",
    "exact": "% of targets that are right as a whole; for a part, the change without it",
    MEAN: "change of the loss with the head's mean output in its place",
    RESAMPLE: "the same with its outputs in other texts",
    CONTROL: "the same with a random vector added that is as long as what the mean takes away",
    **{
        BEYOND.format(name): f"by how much {name} ablation costs more than the random control"
        for name in REPLACEMENTS
    },
    "ρ": "mean Spearman correlation of two rankings of the source words (analysis/attribution.py)",
}
IN_WORDS = {"bleu": "BLEU", "loss": "the loss", "accuracy": "accuracy (in points)",
            "exact": "the share of exact targets (in points)"}  # fmt: skip
WITH = {ZERO: "zero", MEAN: "its mean output", RESAMPLE: "its output in other texts"}
SURVEY_COLUMNS = (
    "part", "kind", "layer", "head", "measure", "at", "value", "low", "high", "uniform", "p",
    "p_holm", "sentences", "rows", "best",
)  # fmt: skip


@dataclass(frozen=True)
class NamingRule:
    """A rule that names heads whose measure reaches a threshold. `says`: what such a head does,
    with {} for its measure."""

    measure: str
    least: float
    source: str
    says: str


SURVEY_RULES = {
    "positional": NamingRule(
        POSITIONAL,
        0.9,
        "Voita et al. 2019",
        "attends most to the token at one fixed offset in {} of its rows",
    ),
    "previous token": NamingRule(
        "previous", 0.5, "Clark et al. 2019", "puts {} of its weight on the previous token"
    ),
    "next token": NamingRule(
        "next", 0.5, "Clark et al. 2019", "puts {} of its weight on the next token"
    ),
    "separators": NamingRule(
        "separators",
        0.5,
        "Clark et al. 2019",
        "puts {} of its weight on special tokens and punctuation",
    ),
    "rare words": NamingRule(
        "rare", 0.5, "Voita et al. 2019", "attends most to the rarest token in {} of its rows"
    ),
    "alignment": NamingRule(
        ALIGNMENT,
        LEAST_ALIGNED,
        "analysis/alignment.py",
        "aligns {} of target words with the source word that the model needs most",
    ),
}


@dataclass(frozen=True)
class Named:
    """A name that a head has; `sure` where its whole interval is beyond the least value."""

    name: str
    row: Mapping
    sure: bool


@dataclass(frozen=True, eq=False)
class Survey:
    """A survey that was read or made: `rows` of the table as dicts of COLUMNS, None for what does
    not apply; and its card. It is equal to itself alone, so that what is made of it can be kept."""

    rows: tuple[Mapping, ...]
    card: Mapping

    @classmethod
    def load(cls, path: Path) -> "Survey | None":
        """Of a file, or the one in a checkpoint's folder; None where there is none. Raises OSError,
        and CannotLoad for a file that holds something else."""
        path = path / FILE if path.is_dir() else path
        if not path.is_file():
            return None
        try:
            return cls(*_read(path))
        except (ValueError, NotImplementedError, KeyError, RecursionError) as error:
            why = " ".join(str(error).split())[:LONGEST_REASON].rstrip(".")
            raise CannotLoad(f"{path} is not a usable survey: {why}.") from None

    def save(self, path: Path) -> None:
        """Raises OSError."""
        import pyarrow as pa
        from pyarrow import parquet

        schema = pa.schema(_types(pa.dictionary(pa.int8(), pa.string())))
        card = json.dumps(self.card, ensure_ascii=False).encode()
        table = pa.Table.from_pylist([dict(row) for row in self.rows], schema)
        with replacing(path) as file:
            parquet.write_table(table.replace_schema_metadata({CARD: card}), file)

    @cached_property
    def _of_head(self) -> dict[tuple, dict[str, Mapping]]:
        """(kind, layer, head), from 1 → measure → row."""
        rows: dict[tuple, dict[str, Mapping]] = {}
        for row in self.rows:
            if row["part"] == "head":
                head = row["kind"], row["layer"], row["head"]
                rows.setdefault(head, {})[row["measure"]] = row
        return rows

    def head(self, kind: str, layer: int, head: int) -> dict[str, Mapping]:
        """Measure → row, of one head; layer and head from 0."""
        return self._of_head.get((kind, layer + 1, head + 1), {})

    def covers(self, sites: Sequence[Site]) -> bool:
        """Whether the heads of a model were surveyed, each and no others."""
        return self._of_head.keys() == {
            (site.kind, site.layer + 1, head + 1) for site in sites for head in range(site.n_heads)
        }

    def measured(self, sites: Sequence[Site]) -> dict[str, Measured]:
        """Kind → the metrics of all its heads over all sentences; sites of the model."""
        return {kind: self._measured(of_kind) for kind, of_kind in kinds_of(sites).items()}

    def _measured(self, sites: Sequence[Site]) -> Measured:
        heads = [[self.head(s.kind, s.layer, head) for head in range(s.n_heads)] for s in sites]
        measures = {measure for layer in heads for head in layer for measure in head}
        metrics = sorted(measures & METRICS)

        def array(metric: str, column: str) -> np.ndarray:
            none = {column: 0}
            return np.array([[h.get(metric, none)[column] or 0 for h in layer] for layer in heads])

        return Measured(
            *(
                {metric: array(metric, column) for metric in metrics}
                for column in ("value", "uniform", "rows")
            )
        )

    def names(self, kind: str, layer: int, head: int) -> list[Named]:
        """The names of one head by RULES; layer and head from 0."""
        measures = self.head(kind, layer, head)
        return [
            Named(name, row, row["low"] >= rule.least)
            for name, rule in SURVEY_RULES.items()
            if (row := measures.get(rule.measure)) and row["value"] >= rule.least
        ]

    def in_words(self, kind: str, layer: int, head: int) -> str:
        """Whether a head is always like this: its names over all sentences; layer and head from 0.
        Empty for a head that was not surveyed."""
        if not self.head(kind, layer, head):
            return ""
        names = self.names(kind, layer, head)
        does = [
            f"{SURVEY_RULES[one.name].says.format(percent(one.row['value']))} "
            f"(95% interval {percent(one.row['low'])} to {percent(one.row['high'])})"
            for one in names
        ]
        start = f"Over {self.card['sentences']:,} sentences, as trained, it"
        if not names:
            return f"{start} has no named pattern."
        named = ", ".join(one.name for one in names)
        return f"{start} {' and '.join(does)}. Named: {named}."

    @property
    def measure(self) -> str:
        """By what a head is called important."""
        return self.card["score"] or "loss"

    def costly(self, kind: str, layer: int, head: int) -> dict[str, bool]:
        """Each of REPLACEMENTS → whether it costs significantly more than the random control, over
        all sentences; layer and head from 0. Empty where no baselines were measured."""
        measures = self.head(kind, layer, head)
        rows = [measures.get(BEYOND.format(name)) for name in REPLACEMENTS]
        return {
            name: row["value"] > 0 and row["p_holm"] <= SIGNIFICANT
            for name, row in zip(REPLACEMENTS, rows, strict=True)
            if row and None not in rows
        }

    def needed(self, kind: str, layer: int, head: int) -> bool | None:
        """Whether all of them do; None where no baselines were measured."""
        costly = self.costly(kind, layer, head)
        return all(costly.values()) if costly else None

    def importance(self, kind: str, layer: int, head: int) -> tuple[str, str]:
        """Whether the model needs a head, and what it loses without it; layer and head from 0. Both
        empty for a head that was not surveyed."""
        measures = self.head(kind, layer, head)
        if not measures:
            return "", ""
        measure = self.measure
        row, digits = measures[measure], 3 if measure == "loss" else 2
        value, low, high = (f"{row[name]:+.{digits}f}" for name in ("value", "low", "high"))
        sure = "" if row["p_holm"] <= SIGNIFICANT else (
            f"; not significant after correcting for {len(self.of(measure))} heads; the interval "
            "is not corrected"
        )  # fmt: skip
        name = IN_WORDS[measure]
        change = f"changes by {value} (95% interval {low} to {high}) without it{sure}"
        return (
            self._verdict(self.costly(kind, layer, head)),
            f"{name[0].upper()}{name[1:]} {change}.".replace("-", "−"),
        )

    def _verdict(self, costly: Mapping[str, bool]) -> str:
        """The verdict in words."""
        if not costly:
            return "Not known: this survey is an earlier one and has no baselines."
        start = f"Over {self.card['sentences']:,} sentences, as trained,"
        does = [WITH[name] for name, is_so in costly.items() if is_so]
        does_not = [WITH[name] for name, is_so in costly.items() if not is_so]
        than = "than with a random vector added"
        if not does_not:
            return f"Yes. {start} the model loses more with {_listed(does)} in its place {than}."
        if not does:
            return f"No clear effect alone. {start} the model loses no more without it {than}."
        return (
            f"Not clearly. {start} the model loses more with {_listed(does)} in its "
            f"place {than}, but not with {_listed(does_not)}."
        )

    def of(self, measure: str, part: str = "head") -> list[Mapping]:
        """All rows of a measure."""
        return [row for row in self.rows if (row["measure"], row["part"]) == (measure, part)]


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _types(text) -> list[tuple]:
    """Column → its type in Arrow, `text` that of texts."""
    import pyarrow as pa

    types = dict.fromkeys(("part", "kind", "measure"), text) | {"best": pa.list_(pa.int32())}
    types |= dict.fromkeys(("layer", "head", "at", "sentences", "rows"), pa.int32())
    return [(name, types.get(name, pa.float64())) for name in SURVEY_COLUMNS]


def _read(path: Path) -> tuple[tuple[Mapping, ...], Mapping]:
    """Rows and card of a file, checked. Raises OSError, and ValueError and its like."""
    import pyarrow as pa
    from pyarrow import parquet

    about = parquet.read_metadata(path)
    groups = (about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if about.num_rows > MAX_SURVEY_ROWS or sum(groups) > MOST_BYTES:
        raise ValueError("it is too large")
    table = parquet.read_table(path)
    if missing := {*SURVEY_COLUMNS} - {*table.column_names}:
        raise ValueError(f"it has no column {min(missing)}")
    columns = {}
    for name, kind in _types(pa.string()):
        try:
            columns[name] = table[name].cast(kind).to_pylist()
        except (pa.ArrowException, ValueError, KeyError):
            raise ValueError(f"its column {name} has the wrong contents") from None
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    card = json.loads((table.schema.metadata or {}).get(CARD, b"null"))
    check_card(card, [measure for measure in IN_WORDS if measure != "loss"])
    check_rows(rows, card, {rule.measure: rule.measure in (POSITIONAL, ALIGNMENT)
                            for rule in SURVEY_RULES.values()})  # fmt: skip
    return tuple(rows), card
