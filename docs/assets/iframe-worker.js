// Browsers start no worker for a page that was opened from the file system, and the site's search is a worker.
// There, a hidden frame takes its place: it loads the same script and passes messages both ways.
(() => {
  if (location.protocol !== "file:") return;

  const inside = `
    postMessage = (data) => parent.postMessage(data, "*");
    importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((loaded) => {
      const script = document.createElement("script");
      script.src = url;
      script.onload = loaded;
      document.body.appendChild(script);
    })), Promise.resolve());
  `;

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const page = this.frame.contentWindow.document;
      page.open();
      page.write(`<html><body><script>${inside}<\/script><script src="${url}"><\/script></body></html>`);
      page.close();
      this.ready = new Promise((loaded) => { this.frame.contentWindow.onload = loaded; });
      this.receive = (event) => {
        if (event.source !== this.frame.contentWindow) return;
        const passed = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(passed);
        if (this.onmessage) this.onmessage(passed);
      };
      addEventListener("message", this.receive);
    }

    postMessage(data) {
      const copy = structuredClone(data);
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: copy })));
    }

    terminate() {
      removeEventListener("message", this.receive);
      this.frame.remove();
    }
  };
})();
