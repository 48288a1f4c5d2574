// A browser may refuse to keep anything: then lessons run, and a reload forgets their answers.

const KEY = "headlight lessons";

export default function ({ data, setTriggerValue }) {
  const isTold = window.headlightStored === data.session;
  window.headlightStored = data.session;
  try {
    if (data.text !== null) return localStorage.setItem(KEY, data.text);
    const stored = isTold ? null : localStorage.getItem(KEY);
    if (stored) setTriggerValue("stored", stored);
  } catch {
    console.info("This browser does not store answers.");
  }
}
