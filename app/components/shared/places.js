// While Streamlit draws a run, what the run before drew still stands: a component may be on the page
// twice for a moment, and the newer of the two may be the one that goes. Where a container above
// comes or goes, Streamlit (1.67) even mounts the old one anew, with the data of the run before. So
// whatever a mount leaves outside its own place, it leaves by `enter`.

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
