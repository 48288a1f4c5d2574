// Links that keep the address of every setting, also in a new tab.

import { fromRoot } from "../shared/address.js";
import { element } from "../shared/dom.js";
import { leadsTo } from "../shared/lead.js";

export default function ({ data, parentElement }) {
  const nav = parentElement.querySelector("nav");
  const drawn = JSON.stringify(data);
  if (nav.drawn === drawn) return; // a link that is being clicked stays
  nav.drawn = drawn;
  nav.setAttribute("aria-label", data.title);
  const links = data.links.map(({ label, path, current }) => {
    const [name, place] = path.split("?"), page = fromRoot(name, data.here);
    const link = element("a", { ...(current && { "aria-current": "page" }) }, label);
    return leadsTo(link, () => {
      const query = new URLSearchParams(location.search);
      for (const [key, value] of new URLSearchParams(place)) query.set(key, value);
      return `${page}?${query}`;
    }, true);
  });
  nav.replaceChildren(...links);
}
