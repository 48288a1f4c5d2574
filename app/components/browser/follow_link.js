// Not before the run has ended: what it chose must stand in the address, which the link takes along.

const PATIENCE = 10_000; // ms
const SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]';

export default function ({ data }) {
  const { key, count } = data;
  if (window.headlightFollowed === count) return;
  window.headlightFollowed = count;
  const until = performance.now() + PATIENCE;
  const follow = () => {
    const link = document.querySelector(`.st-key-${key} a`);
    if (link && document.querySelector(SETTLED)) link.click();
    else if (performance.now() < until) requestAnimationFrame(follow);
  };
  requestAnimationFrame(follow);
}
