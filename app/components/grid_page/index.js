// The grid in a page of its own; its weights and its settings stand in the page.

import { Grid } from "../head_grid/grid.js";
import { schemeOf } from "../shared/colours.js";

const textOf = (id) => document.getElementById(id).textContent;
const { look, theme, themes, large } = JSON.parse(textOf("look"));
const main = document.querySelector("main");
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const frame = window.frameElement; // in a notebook; null where this is a page of its own

/** A notebook has a theme of its own: where its letters are light, it is dark. */
function scheme() {
  if (theme !== "auto") return theme;
  if (!frame) return systemIsDark.matches ? "dark" : "light";
  return schemeOf(getComputedStyle(frame.parentElement).color);
}

function paint() {
  const colours = themes[scheme()];
  for (const [name, colour] of Object.entries(colours))
    document.documentElement.style.setProperty(name, colour);
  grid.draw();
}

const grid = new Grid(large);
grid.mount(main);
grid.setWeights(Uint8Array.from(atob(textOf("weights")), (letter) => letter.charCodeAt(0)));
grid.setLook(look);
paint();
systemIsDark.addEventListener("change", paint);
if (frame) { // the notebook's own text is around it
  frame.grid = grid; // for a widget, which hears of selections
  frame.dispatchEvent(new Event("drawn"));
  document.documentElement.classList.add("framed");
  document.querySelector("h1").remove();
  document.documentElement.style.overflowY = "hidden";
  // A head in full fills the frame that it finds: it would shrink with one that shrinks to it.
  const least = large ? parseFloat(frame.style.height) : 0;
  new ResizeObserver(() => {
    const { height } = document.documentElement.getBoundingClientRect();
    frame.style.height = `${Math.max(least, Math.ceil(height))}px`;
  }).observe(document.documentElement);
}
