// The page of an answer as a document: the print dialogue opens with it, and by its button.
(function () {
  "use strict";

  // Folded fields would be missing on paper.
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  document.querySelector("[data-print]").addEventListener("click", () => print());
  // Whoever comes back to the page, or reads it again, has had the dialogue.
  if (performance.getEntriesByType("navigation")[0]?.type === "navigate") addEventListener("load", () => print());
})();
