"""A button that copies the page's address, which holds every setting."""

import streamlit as st

LONGEST = 6000  # characters; some mail programs and servers cut longer ones

_mount = st.components.v2.component(
    "headlight_copy_link",
    html="""
<button type="button">Copy link to this view</button>
<span role="status"></span>
""",
    css="""
button {
  font: inherit; color: inherit; cursor: pointer; padding: 0.3rem 0.8rem;
  background: transparent; border: 1px solid var(--st-widget-border-color, var(--st-border-color));
  border-radius: var(--st-button-radius);
}
button:hover, button:focus-visible {
  border-color: var(--st-primary-color); color: var(--st-primary-color);
}
span { display: block; padding-top: 0.3rem; overflow-wrap: anywhere; }
""",
    js="""
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  const status = parentElement.querySelector("span");
  button.onclick = async () => {
    const address = window.location.href;
    if (address.length > data.longest) {
      status.textContent = `The link would be ${address.length} characters long, more than ` +
        `many programs pass on (${data.longest}). Shorten the text.`;
      return;
    }
    try {
      await navigator.clipboard.writeText(address);
      status.textContent = "Copied.";
    } catch {  // only pages of this machine, or of https, may write to the clipboard
      status.textContent = address;
    }
  };
}
""",
)


def copy_link() -> None:
    _mount(data={"longest": LONGEST}, key="copy_link")
