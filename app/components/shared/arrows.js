// The keys ← and →, heard wherever on the page they mean nothing else.

import { places } from "./places.js";

export const OTHERS = "input, textarea, select, [role=combobox], [role=slider], [role=radio], " +
  "[role=application], [role=listbox], [role=tab], [role=toolbar], [contenteditable=true]";

/** For what there is once on a page. Returns `enter(place, step)`, as `places` does: `step` is told
 * −1 or 1. `own` selects those of OTHERS in which ← and → also take a step. */
export function arrows(own = ":not(*)") {
  let onKey = null;
  /** One listener at a time: two would take two steps. */
  const listen = (step) => {
    document.removeEventListener("keydown", onKey, true);
    onKey = step && ((event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const at = event.composedPath()[0];
      const isElsewhere = at.closest?.(OTHERS) && !at.closest(own);
      if (!by || isElsewhere || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      step(by);
    });
    if (onKey) document.addEventListener("keydown", onKey, true);
  };
  const enter = places(() => listen(null));
  return (place, step) => enter(place, () => listen(step));
}
