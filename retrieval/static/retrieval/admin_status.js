"use strict";
// Keeps the status of documents on the page true while they are being read.
(() => {
  const EVERY_MS = 3000;
  const unsettled = () => [...document.querySelectorAll("[data-document-status][data-unsettled]")];

  async function refresh() {
    const badges = unsettled();
    // More may come: files are added while the page is open.
    if (badges.length > 0 && !document.hidden) {
      const url = new URL(badges[0].dataset.statusUrl, location.href);
      url.searchParams.set("ids", badges.map((badge) => badge.dataset.documentStatus).join(","));
      try {
        const response = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin" });
        if (!response.ok) return;
        const fresh = await response.json();
        for (const badge of badges) {
          const row = fresh[badge.dataset.documentStatus];
          if (!row) continue;
          const cells = badge.closest("tr, li")?.querySelectorAll("[data-document-fact]") ?? [];
          for (const cell of cells) cell.textContent = row[cell.dataset.documentFact];
          // Markup from this site's own server, in which every value is escaped.
          badge.outerHTML = row.badge;
        }
      } catch {
        // The network is away for the moment; the next round asks again.
      }
    }
    setTimeout(refresh, EVERY_MS);
  }
  setTimeout(refresh, EVERY_MS);
})();
