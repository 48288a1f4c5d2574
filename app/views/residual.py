"""The residual stream: each token's vector through the layers, and the prediction after each."""

import numpy as np
import pandas as pd
import streamlit as st

from headlight.app import charts, selection
from headlight.app.components.figure import figure
from headlight.app.components.token_line import token_line
from headlight.app.results import layer_results, passes, word_results
from headlight.app.shell import sweeps
from headlight.app.state import messages, session, widgets
from headlight.app.state.pages import HOME, PAGES
from headlight.app.views import _terms
from headlight.app.wording import change_texts, formats, model_texts, output_texts, part_names
from headlight.model.analysis import residual
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.sites import has_final_norm
from headlight.model.probing.trace import CannotRead

MAX_LENS_ROWS = 200  # rows of the lens

st.markdown(
    "A token is one **vector** from bottom to top: every layer reads it and adds to it. Here is "
    "how long it is after each layer, how much it turns, and what the model would answer if it "
    "stopped there.  \n"
    "*Try: find the token whose answer changes last. Which layer changed the model's mind?*"
)

run = selection.run()
model = selection.view(run)
trace = passes.trace_of(model, run)
stacks = {side.stack: side for side in trace.sides.values()}
predicted, projector = trace.predicted, session.values()["projector"]
with st.container(key="controls"):
    stack = widgets.draw(
        "stack",
        widget_options={"label_visibility": "collapsed"},
        options=list(stacks),
        default=predicted.stack,
    )
side = stacks[stack]
encoding = trace.texts[side.name]
token_line(side.title.capitalize(), encoding)

stream = trace.stream[side.name]
depths = ["in", *(f"layer {i}" for i in range(1, len(stream)))]
position = charts.Axis("token", encoding.tokens)
after = charts.Axis("after", depths)
normed = has_final_norm(model.model, side)

st.subheader("How long each vector is")
lengths = residual.lengths(stream).T
top = residual.usual_most(lengths)
st.caption(
    f"“in” is what enters layer 1, the embedding{' and its position' if side.table else ''}. "
    f"{model_texts.place_of_norm(normed, stack)} "
    f"{model_texts.massive_activations(encoding.tokens, lengths.max(axis=1), top)}"
)
figure(
    charts.matrix(lengths, position, after, "length", (0, top), ".1f"),
    key="lengths_figure",
    alt=f"Length of each token's vector through the {stack}",
    projector=projector,
)

if len(stream) > 1:
    st.subheader("How much a layer turns it")
    st.caption(
        "Cosine between what enters a layer and what leaves it, for each token: 1 is the same "
        "direction, 0 a right angle."
    )
    step = charts.Axis("through", depths[1:])
    turned = residual.cosine(stream[:-1], stream[1:]).T
    figure(
        charts.matrix(turned, position, step, "cosine", (min(0.0, float(turned.min())), 1.0)),
        key="turned_figure",
        alt=f"Cosine of each token's vector before and after each layer of the {stack}",
        projector=projector,
    )
    st.subheader("How alike the layers are")
    st.caption(
        "The same cosine between any two depths, mean over the tokens without padding. Near 1 far "
        "from the diagonal: the layers between changed little."
    )
    real = residual.real(trace, side.name)
    alike = residual.mean_cosine_between_depths(stream, real)
    figure(
        charts.matrix(alike, after, after, "cosine", (min(0.0, float(alike.min())), 1.0)),
        key="alike_figure",
        alt=f"Mean cosine between the layers of the {stack}",
        projector=projector,
    )

if predicted.predicts == output_texts.EMBEDDING:
    st.info("This model makes one vector of a text; it has no answers to stop early with.")
    raise messages.NothingToShow
st.subheader("If it stopped here: the logit lens")
lens, read = layer_results.lens_of(model, run, rows=slice(MAX_LENS_ROWS)), predicted.stack
depths = ["in", *(f"layer {i}" for i in range(1, len(lens.best)))]
through = (
    "the final norm and the generator"
    if has_final_norm(model.model, predicted)
    else "the generator (post-norm: there is no final norm)"
)
of_text = predicted.predicts == "class"
whole = "the mean over its real tokens, " if of_text else ""
st.caption(
    f"The {read}'s vectors at each depth, {whole}straight through {through}, as if no layer "
    "followed. The last layer's is the model's answer itself: largest difference of their "
    f"probabilities **{lens.difference:.1e}**."
)
after = ["the whole text"] if of_text else trace.texts[predicted.name].tokens
shown = min(len(after), MAX_LENS_ROWS)
if shown < len(after):
    st.info(f"The first {shown} of {len(after):,} {predicted.title} positions are shown.")
answers = {"position": range(shown), "after": after[:shown]}
for depth, name in enumerate(depths):
    answers[name] = [
        f"{output}  {probability:.1%}"
        for output, probability in zip(
            model.checkpoint.outputs(lens.best[depth]),
            lens.probability[depth],
            strict=True,
        )
    ]
answers["settled"] = [depths[depth] for depth in lens.settled]
st.dataframe(
    pd.DataFrame(answers),
    hide_index=True,
    height="content" if shown <= 40 else 1000,
    column_config={
        "settled": st.column_config.TextColumn(
            help="The first depth from which on the likeliest answer is the final one."
        )
    },
    key="lens_table",
    alt=f"The most probable answer at each layer of the {read}",
)

st.subheader("When the final answer appears")
early = int((lens.settled < len(depths) - 1).sum())
st.caption(
    f"Probability of what the model answers in the end, at each depth, and its rank there (1 is "
    f"the likeliest). {early} of {shown:,} answers stand before the last layer."
)
rows = charts.Axis("after", after[:shown])
figure(
    charts.matrix(
        lens.final.T,
        rows,
        charts.Axis("stopped at", depths),
        "probability",
        (0, 1),
        ".0%",
    ),
    key="final_figure",
    alt="Probability of the final answer at each layer",
    projector=projector,
)
ranks = {"position": range(shown), "after": after[:shown]}
ranks |= {name: np.asarray(rank) for name, rank in zip(depths, lens.rank, strict=True)}
with widgets.draw("ranks") as table:
    if table.open:
        st.dataframe(
            pd.DataFrame(ranks), hide_index=True, alt="Rank of the final answer at each layer"
        )

st.subheader("Who writes the next token")
with st.container(horizontal=True, vertical_alignment="bottom", key="score_controls"):
    sweeps.draw_score(trace, whole=False)
score = sweeps.score(model, run, whole=False)
try:
    sum_of = word_results.decomposition_of(model, run, score)
except (CannotRead, CannotChange) as error:  # what is drawn above stays
    messages.show_message(error, st.info)
    raise messages.NothingToShow from error
wanted = _terms.wanted(model, score)
st.caption(
    f"The parts of the logit of {formats.escaped(wanted)}, {formats.signed(sum_of.logit)}. "
    f"{change_texts.TERMS}"
)
_terms.bars(sum_of, wanted, projector)
focus = session.focus()
st.page_link(
    PAGES[HOME].file,
    label=f"Open {PAGES[HOME].title} at "
    + part_names.head_name(trace, focus.kind, focus.layer, focus.head),
    icon=":material/arrow_forward:",
    icon_position="right",
)
