"use strict";
// Keeps what is still under way on the page true: elements with an id and `data-live` are fetched anew until it is done.
(() => {
  const EVERY_MS = 2000;
  const live = () => [...document.querySelectorAll("[data-live][id]")];

  async function refresh() {
    if (live().length === 0) return;
    if (!document.hidden) {
      try {
        const response = await fetch(location.href, { credentials: "same-origin" });
        if (!response.ok) return;
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
        let settled = true;
        for (const element of live()) {
          const replacement = fresh.getElementById(element.id);
          if (!replacement) continue;
          element.replaceWith(document.adoptNode(replacement));
          settled &&= !replacement.hasAttribute("data-live");
        }
        // What else the page shows of a finished run stands outside of what was replaced.
        if (settled) location.reload();
      } catch {
        // The network is away for the moment; the next round asks again.
      }
    }
    setTimeout(refresh, EVERY_MS);
  }
  setTimeout(refresh, EVERY_MS);
})();
