// The link may be drawn after this script has begun.

const PATIENCE = 3000; // ms

export default function ({ data }) {
  const { key, count } = data;
  if (window.headlightFollowed === count) return;
  window.headlightFollowed = count;
  const until = performance.now() + PATIENCE;
  const follow = () => {
    const link = document.querySelector(`.st-key-${key} a`);
    if (link) link.click();
    else if (performance.now() < until) requestAnimationFrame(follow);
  };
  follow();
}
