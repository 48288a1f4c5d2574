// While Streamlit draws a run, what the run before drew still stands: a component may be on the page
// twice for a moment, and the newer of the two may be the one that goes. Where a container above
// comes or goes, Streamlit (1.67) even mounts the old one anew, with the data of the run before; and
// a script that it runs for old data may come after that for new data. So whatever a mount leaves
// outside its own place, it leaves by `enter`.

/** For what there is only once on a page: it belongs to the newest place that stands there. Returns
 * `enter(place, take)`, which gives it to a place and returns what Streamlit calls when the place is
 * gone, or its data overtaken; `letGo` is called when the last place is gone. */
export function places(letGo = () => {}) {
  let entries = []; // the newest last
  return (place, take) => {
    const entry = { place, take, isOver: false };
    entries = [...entries.filter((one) => one.place !== place || !one.isOver), entry];
    take();
    return () => {
      entry.isOver = true;
      const isHere = place.isConnected;
      if (!isHere) entries = entries.filter((one) => one.place !== place);
      const newest = entries.findLast((one) => !one.isOver && (!isHere || one.place === place));
      if (newest || !isHere) (newest?.take ?? letGo)();
    };
  };
}
