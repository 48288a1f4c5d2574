// While Streamlit draws a run, what the run before drew still stands: a component may be on the page
// twice for a moment, and the newer of the two may be the one that goes.

/** For what there is only once on a page: it belongs to the newest place that stands there. Returns
 * `enter(place, take)`, which gives it to a place and returns what Streamlit calls when the place is
 * gone; `letGo` is called when the last one is. */
export function places(letGo = () => {}) {
  const takes = new Map(); // place → take, the newest last
  return (place, take) => {
    takes.delete(place);
    takes.set(place, take);
    take();
    return () => {
      if (place.isConnected) return; // Streamlit calls it for a run that was overtaken, too
      takes.delete(place);
      const newest = [...takes.values()].at(-1) ?? letGo;
      newest();
    };
  };
}
