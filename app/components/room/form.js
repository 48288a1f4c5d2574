// The answer sets a cookie that no script can read. Then the page is opened anew: Streamlit reads
// cookies as a page connects. By fetch: a form of a page without referrer would have the origin
// “null”, which the server refuses.

import { keepOwnView } from "./own_view.js";

export default function ({ parentElement }) {
  const [start, form, alert] = ["button", "form", "p"].map((name) => parentElement.querySelector(name));
  start.onclick = async () => {
    const answer = await fetch("/room", { method: "POST" }).catch(() => null);
    if (answer?.redirected) location.assign(answer.url);
    else alert.textContent = answer ? await answer.text() : "The server cannot be reached.";
  };
  form.onsubmit = () => keepOwnView(location.pathname + location.search);
}
