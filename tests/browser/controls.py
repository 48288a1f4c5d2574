"""What a page offers to a keyboard in its first view, and where its hero picture is."""

from playwright.sync_api import Page

# What counts as one however many elements it has: the menu of pages, views of a page and other
# segmented controls, a line of words, a grid, a select box.
GROUPS = (
    ".st-key-menu",
    ".st-key-views",
    "[role=radiogroup]",
    "[data-testid=stButtonGroup]",
    "[data-testid=stSelectbox]",
    ".text",
    ".stage",
    ".words",
    "svg",
)
CHANGE = ".st-key-switches"  # its switches are not counted: nobody should hide a mask to save one
CONTROLS = """([groups, change]) => {
  const focusable = "a[href], button, input, select, textarea, summary, [tabindex], " +
    "[contenteditable=true]";
  const roots = (root) => [root, ...[...root.querySelectorAll("*")]
    .flatMap((node) => (node.shadowRoot ? roots(node.shadowRoot) : []))];
  const parent = (node) => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host;
  const closest = (node, selector) => {
    for (let at = node; at; at = parent(at)) if (at.matches?.(selector)) return at;
    return null;
  };
  // An input may be drawn by what stands around it, as a switch is by its label.
  const shown = (node) => {
    const box = (node.tagName === "INPUT" && closest(node, "label")) || node;
    const { left, top, right, bottom, width, height } = box.getBoundingClientRect();
    return width > 1 && height > 1 && right > 0 && bottom > 0 && left < innerWidth &&
      top < innerHeight && box.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const counted = new Set();
  for (const root of roots(document))
    for (const node of root.querySelectorAll(focusable)) {
      if (node.tabIndex < 0 && node.role !== "radio") continue;
      if (node.matches(".stMain")) continue; // the page itself, which scrolls
      if (node.disabled || node.ariaDisabled === "true" || !shown(node)) continue;
      if (closest(node, change)) continue;
      counted.add(groups.map((group) => closest(node, group)).find(Boolean) ?? node);
    }
  return [...counted].map((node) => {
    const key = [...(closest(node, "[class*=st-key-]")?.classList ?? [])]
      .find((name) => name.startsWith("st-key-"))?.slice(7);
    const said = node.ariaLabel || node.innerText || node.tagName;
    return `${key ?? ""}: ${said.trim().replace(/\\s+/g, " ").slice(0, 40)}`;
  });
}"""


def controls(page: Page) -> list[str]:
    """The visible, enabled, focusable elements in the window, each by the region that it is in and
    what it says; see GROUPS and CHANGE."""
    return page.evaluate(CONTROLS, [list(GROUPS), CHANGE])
