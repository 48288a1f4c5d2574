"""Which words of source and target go together, as lines between them."""

import pandas as pd
import streamlit as st

from app import compute, labels, session
from app.components.word_lines import word_lines
from app.settings import AT_ROWS, INFLUENCE, OF_LAYER, SELECTED
from model.analysis.alignment import Links, WordWeights, aligning_kind
from model.corpus.alignments import Aligned, csv_lines, pharaoh_lines
from model.probing.run import Run

TABLE = "alignment_table"
HEIGHT = 240  # pixels
AGREEMENT = "where read", "where predicted"  # by shift


def words_of(one: Run) -> WordWeights:
    """What the settings ask for, of a run."""
    seen = session.view(one)
    if by == INFLUENCE:
        return compute.influence_of(seen, one).shares()
    return found.of(compute.word_weights_of(seen, one), heads, shift)


def links_before() -> Links:
    """Those of the run that this one is compared with; none where its words are others."""
    before = session.other_run() or session.run(changed=False)
    if before == run:
        return frozenset()
    other = words_of(before)
    same = (other.source, other.target) == (words.source, words.target)
    return other.links() if same else frozenset()


run = session.run()
view = session.view(run)
trace = compute.trace_of(view, run)
kind = aligning_kind(trace.sites, trace.sides.values())
if kind is None:
    st.info("This model reads one text: there is nothing to align it with.")
    raise session.NothingToShow
found = compute.alignment_of(view, run)
if found is None:
    st.info("There are no words to align.")
    raise session.NothingToShow
sites, focus, shift = trace.kinds[kind], session.focus(), None
with st.container(horizontal=True, vertical_alignment="bottom", key="controls"):
    by = session.draw("aligned_by")
    if by != INFLUENCE:
        at = session.draw("aligned_at")
        shift = None if at == AT_ROWS[0] else AT_ROWS.index(at) - 1
    files = st.container(horizontal=True, width="content")
if by in (SELECTED, OF_LAYER) and focus.kind != kind:
    st.info(f"Select a head of {labels.kind_name(trace, kind)}: it aligns both texts.")
    raise session.NothingToShow
heads = {
    INFLUENCE: [],
    SELECTED: [(focus.layer, focus.head)],
    OF_LAYER: [(focus.layer, head) for head in range(sites[focus.layer].n_heads)],
}.get(by, found.heads)
words = words_of(run)
titles = tuple(side.title.capitalize() for side in trace.sides.values())
before = links_before()
note = labels.alignment_note(found, heads, sites, shift, dashed=bool(before - words.links()))
word_lines(words, titles, (words.links(), before), note)
aligned = [Aligned(1, words)]
name = f"{run.checkpoint}-alignment"
for label, ending, lines in (("Pharaoh", "txt", pharaoh_lines), ("CSV", "csv", csv_lines)):
    files.download_button(
        label,
        "".join(lines(aligned)),
        f"{name}.{ending}",
        on_click="ignore",
        icon=":material/download:",
    )

rows = [
    {
        "layer": site.layer + 1,
        "head": head + 1,
        "aligns the word that": labels.SHIFTS[found.shifts[layer, head]],
        **{at: 100 * found.agreement[i][layer][head] for i, at in enumerate(AGREEMENT)},
        "best set": (layer, head) in map(tuple, found.heads),
        "settings": dict(kind=kind, layer=site.layer + 1, head=head + 1, aligned_by=SELECTED),
    }
    for layer, site in enumerate(sites)
    for head in range(site.n_heads)
]
rows.sort(key=lambda row: -max(row[at] for at in AGREEMENT))
table, explained = st.columns([3, 2])
with table:
    percent = st.column_config.NumberColumn(format="%.0f %%", width="small")
    st.dataframe(
        pd.DataFrame(rows).drop(columns="settings"),
        key=TABLE,
        hide_index=True,
        height=HEIGHT,
        on_select=session.choosing(TABLE, [row["settings"] for row in rows]),
        selection_mode="single-row",
        column_config=dict.fromkeys(AGREEMENT, percent),
        alt="Heads and how well they align words",
    )
explained.caption(
    labels.alignment_explained(found, sites, known=found == view.checkpoint.alignment)
)
