// What BertViz's scripts find around them: their data, and require.js without a network.

const TYPES = { "<u2": Uint16Array, "<f4": Float32Array }; // NumPy's names

function unpack({ shape, type, per, base64 }) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const numbers = Array.from(new TYPES[type](bytes.buffer), (number) => number / per);
  return shape.slice(1).reduceRight(inRowsOf, numbers);
}

function inRowsOf(list, size) {
  const rows = [];
  for (let start = 0; start < list.length; start += size) {
    rows.push(list.slice(start, start + size));
  }
  return rows;
}

const params = JSON.parse(document.getElementById("params").textContent);
for (const [name, value] of Object.entries(params.attention.all)) {
  if (value.base64 !== undefined) params.attention.all[name] = unpack(value);
}
window.bertviz_params = params;

window.require = { config() {} };
window.requirejs = (names, draw) => {
  draw(window.jQuery, window.d3);
  if (params.click) document.querySelector(params.click).dispatchEvent(new MouseEvent("click"));
};

// The frame around this page is as high as the page.
new ResizeObserver(() => {
  parent.postMessage({ height: document.documentElement.offsetHeight }, "*");
}).observe(document.documentElement);
