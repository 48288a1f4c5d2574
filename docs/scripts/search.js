// The search of a page that is opened from a folder. Browsers refuse it a worker there, so the
// worker's script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((resolve) => {
        this.frame.addEventListener("load", resolve, { once: true });
      }).then(() => this.start(address));
      document.body.append(this.frame);
    }

    start(address) {
      const { contentWindow, contentDocument } = this.frame;
      contentWindow.postMessage = (data) => {
        const copy = structuredClone(data);
        setTimeout(() => this.onmessage?.({ data: copy }));
      };
      return new Promise((resolve, reject) => {
        const script = contentDocument.createElement("script");
        script.src = address;
        script.onload = resolve;
        script.onerror = reject;
        contentDocument.body.append(script);
      });
    }

    postMessage(message) {
      const data = structuredClone(message);
      this.ready.then(
        () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })),
        (error) => this.onerror?.(error),
      );
    }

    terminate() {
      this.frame.remove();
    }
  };
}
