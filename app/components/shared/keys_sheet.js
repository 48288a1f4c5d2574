// The sheet of keys: opened by ?, or by the button in the drawer, over whatever is shown.

const TEXT = "textarea, select, [contenteditable], input:not([type=checkbox], [type=radio])";
let dialog = null; // that of the page as it is now

function fill(keys) {
  const rows = keys.map(([names, does]) => {
    const row = document.createElement("tr");
    const [head, text] = ["th", "td"].map((name) => row.appendChild(document.createElement(name)));
    head.scope = "row";
    for (const name of names.split(/(?<=,) /))
      head.append(Object.assign(document.createElement("kbd"), { textContent: name.replace(/,$/, "") }), " ");
    text.textContent = does;
    return row;
  });
  dialog.querySelector("tbody").replaceChildren(...rows);
}

function toggle() {
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

function hear(event) {
  const [target] = event.composedPath();
  if (event.key !== "?" || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!target.matches?.(TEXT)) toggle();
}

/** The sheet with these keys, in the place where the page has it now. */
export function keysSheet(box, keys) {
  const isFirst = !dialog;
  dialog = box.querySelector("dialog");
  fill(keys);
  dialog.onclick = ({ target }) => void (target === dialog && dialog.close()); // beside the sheet; not false, which would undo the click
  if (!isFirst) return;
  // What is behind the sheet hears nothing.
  window.addEventListener("keydown", (event) => dialog.open && event.key !== "?" && event.stopPropagation(),
    { capture: true });
  window.addEventListener("keydown", hear);
  document.addEventListener("click", ({ target }) => target.closest?.(".st-key-keys button") && toggle());
}
