// Whether the offer was answered is known to the browser alone, so that it costs the server no run.

const KEY = "headlight lesson offered";

function answered() {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return true; // it would come back for ever
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const line = parentElement.querySelector("p");
  const [start, no] = [".start", ".no"].map((name) => line.querySelector(name));
  start.textContent = `${data.title}, ${data.minutes} minutes`;
  line.hidden = answered();
  const close = () => {
    localStorage.setItem(KEY, "yes");
    line.hidden = true;
  };
  no.onclick = close;
  start.onclick = () => {
    close();
    setTriggerValue("start", true);
  };
}
