// Plays through training steps, up to the last: the next is asked for a while after the one before
// was drawn.

const PAUSE = 1200; // ms for a look at each step

const state = { playing: false, timer: 0, asked: "" };

/** Who reaches for the list of steps wants to choose: the next run would close it. */
function letChoose({ target }) {
  if (state.playing && target.closest?.(".st-key-step")) state.button.click();
}

export default function ({ data, parentElement, setTriggerValue }) {
  const { steps, step } = data;
  const button = (state.button = parentElement.querySelector("button"));
  const show = () => {
    button.textContent = state.playing ? "❚❚ Pause" : "▶ Steps";
    button.title = state.playing ? "Pause" : "Play the training steps";
    button.setAttribute("aria-label", button.title);
  };
  const ask = (next) => {
    state.asked = next;
    setTriggerValue("step", next);
  };
  const goOn = () => {
    clearTimeout(state.timer);
    const next = steps[steps.indexOf(step) + 1];
    // Another step than the one that was asked for: somebody else has chosen.
    if (!next || step !== state.asked) state.playing = false;
    if (state.playing) state.timer = setTimeout(() => ask(next), PAUSE);
    show();
  };
  button.onclick = () => {
    clearTimeout(state.timer);
    state.playing = !state.playing;
    show();
    if (state.playing) ask(steps[steps.indexOf(step) + 1] ?? steps[0]);
  };
  if (state.playing) goOn();
  else show();
  // One listener however often this is called.
  document.addEventListener("pointerdown", letChoose, { capture: true });
}
