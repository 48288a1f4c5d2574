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
  const logo = data.logo ? [element("img", { alt: "Headlight", src: data.logo })] : [];
  const links = data.links.map(({ label, path, current }) => {
    const page = fromRoot(path, data.here);
    const link = element("a", { ...(current && { "aria-current": "page" }) }, label);
    link.addEventListener("click", () => link.closest("[popover]")?.hidePopover());
    return leadsTo(link, () => page + location.search, true);
  });
  nav.replaceChildren(...logo, ...(data.logo ? folded(data, links) : links));
}

/** On a phone one button, named by the page that one is on, opens the links as a sheet. */
function folded({ links: all, title }, links) {
  const sheet = element("div", { class: "links" });
  sheet.append(...links);
  const here = all.find(({ current }) => current)?.label ?? title;
  const button = element("button", { type: "button", "aria-haspopup": "true" }, here);
  button.popoverTargetElement = sheet;
  const phone = matchMedia("(max-width: 639px)"); // theme.NARROW
  const fold = () => {
    if (phone.matches) sheet.setAttribute("popover", "");
    else sheet.removeAttribute("popover");
  };
  fold();
  phone.onchange = fold;
  return [button, sheet];
}
