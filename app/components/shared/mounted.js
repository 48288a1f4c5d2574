// What every picture has: a frame in its place on the page, its size, its keys, and what it tells the
// server.

import { element, outwards } from "./dom.js";
import { keysOf } from "./keys.js";

/** A picture in its place. `show(data)` draws new data; `again(data)` hears that they came once more,
 * as with every run of the page; `fit()` that something above or around it has another size; `key(event)`
 * says whether it uses a key; `leave()` ends what goes on by itself. `tell(name, value)`: the server. */
export class Picture {
  constructor(root) {
    this.frame = element("div", { class: "frame" });
    root.append(this.frame);
    keysOf(this.frame, (event) => this.key(event));
    const observer = new ResizeObserver(() => {
      if (this.frame.isConnected) return this.fit();
      observer.disconnect();
      this.leave();
    });
    for (const node of outwards(this.frame)) observer.observe(node);
  }

  again() {}
  fit() {}
  key() { return false; }
  leave() {}
}

/** What Streamlit calls: a place has one picture as long as it stands there. */
export const mounted = (Kind) => ({ data, parentElement, setTriggerValue }) => {
  if (!data) return;
  const picture = (parentElement.picture ??= new Kind(parentElement));
  picture.tell = setTriggerValue;
  const text = JSON.stringify(data);
  const isNew = text !== picture.text;
  picture.text = text;
  if (isNew) picture.show(data);
  else picture.again(data);
};
