// Links that keep the address of every setting, also in a new tab.

import { opensElsewhere } from "../shared/address.js";
import { element } from "../shared/dom.js";
import { lead } from "../shared/lead.js";

export default function ({ data, parentElement }) {
  const nav = parentElement.querySelector("nav");
  const drawn = JSON.stringify(data);
  if (nav.drawn === drawn) return; // a link that is being clicked stays
  nav.drawn = drawn;
  nav.setAttribute("aria-label", data.title);
  const root = location.pathname.replace(/\/+$/, "").slice(0, -data.here.length || undefined);
  const logo = data.logo ? [element("img", { alt: "Headlight", src: data.logo })] : [];
  const links = data.links.map(({ label, path, current }) => {
    const page = `${root.replace(/\/+$/, "")}/${path}`;
    const link = element("a", { href: page, ...(current && { "aria-current": "page" }) }, label);
    const take = () => (link.href = page + location.search); // as it is by now
    for (const event of ["pointerdown", "focus", "contextmenu"]) link.addEventListener(event, take);
    link.onclick = (event) => {
      if (opensElsewhere(event)) return;
      event.preventDefault();
      link.closest("[popover]")?.hidePopover();
      lead(page + location.search);
    };
    return link;
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
