// For paper (styles/print.css): a link into the app carries its address within the app.
for (const link of document.querySelectorAll('a[href^="http://localhost:8501/"]')) {
  link.dataset.address = link.pathname + link.search;
}
