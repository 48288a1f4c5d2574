// Puts the address of a view on the clipboard, or shows it.

import { fromRoot } from "../shared/address.js";

const SHOWN = 2000; // ms

export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  const status = parentElement.querySelector("span");
  button.onclick = async () => {
    const url = new URL(fromRoot(data.view, data.here), location.href), here = new URLSearchParams(location.search);
    for (const name of data.place) if (here.has(name)) url.searchParams.set(name, here.get(name));
    for (const name of ["room", "alone"]) url.searchParams.delete(name); // no part of the view
    const address = url.href;
    if (address.length > data.longest) {
      status.textContent = `The link would have ${address.length} characters, more than ` +
        `many programs accept (${data.longest}). Shorten the text.`;
      return;
    }
    try {
      await navigator.clipboard.writeText(address);
      status.textContent = "Copied.";
      setTimeout(() => (status.textContent = ""), SHOWN);
    } catch {  // only pages of this machine, or of https, may write to the clipboard
      status.textContent = address;
    }
  };
}
