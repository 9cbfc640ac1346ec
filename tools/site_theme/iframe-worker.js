// The search of the theme runs in a worker, which browsers refuse to pages that lie on a disk. There it runs in a
// hidden frame instead. (The offline plugin takes a script from elsewhere unless one has this name.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #waiting = [];

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      this.#frame.contentWindow.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.#frame.contentDocument.createElement("script");
      script.src = new URL(url, location.href);
      script.addEventListener("load", () => {
        const waiting = this.#waiting;
        this.#waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
      this.#frame.contentDocument.head.append(script);
    }

    postMessage(data) {
      if (this.#waiting) this.#waiting.push(data);
      else this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
