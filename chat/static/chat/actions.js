// What people do with answers and conversations beside reading: copying, judging, sharing.
(function () {
  "use strict";

  const body = document.body;
  const live = document.getElementById("live");

  // The server says what was done; emptied first, because the same words again would not be heard.
  body.addEventListener("announce", (event) => {
    live.textContent = "";
    setTimeout(() => (live.textContent = event.detail.sentence), 50);
  });

  // Copying --------------------------------------------------------------------------------------------------------

  async function copy(text) {
    if (navigator.clipboard && isSecureContext) return navigator.clipboard.writeText(text);
    // Over plain HTTP the clipboard interface is missing.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (!copied) throw new Error("not copied");
  }

  body.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const label = button.querySelector("[data-label]");
    const before = label.textContent;
    try {
      await copy(button.dataset.copy);
    } catch (error) {
      return;
    }
    if (before === body.dataset.copied) return;
    label.textContent = live.textContent = body.dataset.copied;
    button.classList.add("is-done");
    setTimeout(() => {
      label.textContent = before;
      button.classList.remove("is-done");
    }, 2000);
  });

  // Panels ---------------------------------------------------------------------------------------------------------

  function fold(panel) {
    panel.open = false;
    panel.querySelector("summary").focus();
  }

  body.addEventListener("click", (event) => {
    const skip = event.target.closest("[data-fold]");
    if (skip) fold(skip.closest("details"));
    for (const panel of document.querySelectorAll(".share details[open]")) {
      if (!panel.contains(event.target)) panel.open = false;
    }
  });

  body.addEventListener("htmx:load", (event) => {
    // The whole form, where the first field alone would fit above the question.
    event.target.querySelector?.(".critique[open]")?.scrollIntoView({ block: "nearest" });
  });

  body.addEventListener("toggle", (event) => {
    if (event.target.matches(".edit[open]")) event.target.querySelector("textarea").focus();
  }, true);

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const panel = event.target.closest(".critique[open], .share details[open], .edit[open]");
    if (panel) fold(panel);
  });

  body.addEventListener("focusin", (event) => {
    if (event.target.matches("[data-select]")) event.target.select();
  });
})();
