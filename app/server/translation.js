// A browser that translates the page puts an element in the place of a text node. React still writes
// to the node that is gone, so that the page would show what was there before, and raises when it
// takes the node away. Here the node is put back first.

(() => {
  const places = new WeakMap(); // text node → what stands in its place
  const observer = new MutationObserver(remember);
  observer.observe(document, { childList: true, subtree: true });
  let isTranslated = false;

  function remember(records) {
    for (const { removedNodes, addedNodes, previousSibling, nextSibling } of records) {
      const [gone] = removedNodes;
      if (gone?.nodeType !== Node.TEXT_NODE) continue;
      const came = [addedNodes[0], previousSibling, nextSibling].find((n) => n?.localName === "font");
      if (!came) continue;
      places.set(gone, came);
      if (!isTranslated) guard();
      isTranslated = true;
    }
  }

  function putBack(node) {
    remember(observer.takeRecords());
    const place = places.get(node);
    if (place?.isConnected) place.replaceWith(node);
    places.delete(node);
  }

  function guard() {
    const { get, set } = Object.getOwnPropertyDescriptor(Node.prototype, "nodeValue");
    Object.defineProperty(Node.prototype, "nodeValue", {
      configurable: true,
      enumerable: true,
      get,
      set(value) {
        putBack(this);
        set.call(this, value);
      },
    });
    for (const name of ["removeChild", "insertBefore"]) {
      const plain = Node.prototype[name];
      Node.prototype[name] = function (...nodes) {
        nodes.filter(Boolean).forEach(putBack);
        return plain.apply(this, nodes);
      };
    }
  }
})();
