// The list of conversations, which is a drawer on narrow screens.
(function () {
  "use strict";

  const body = document.body;
  const narrow = matchMedia("(max-width: 60rem)");
  const sidebar = document.getElementById("sidebar");
  const opener = document.getElementById("open-sidebar");

  function setDrawer(open) {
    body.classList.toggle("drawer-open", open && narrow.matches);
    opener.setAttribute("aria-expanded", String(open));
    sidebar.inert = narrow.matches && !open;
    document.getElementById("main").inert = narrow.matches && open;
    if (!narrow.matches) return;
    if (open) document.getElementById("close-sidebar").focus();
  }

  opener.addEventListener("click", () => setDrawer(true));
  for (const id of ["close-sidebar", "backdrop"]) {
    document.getElementById(id).addEventListener("click", () => {
      setDrawer(false);
      opener.focus();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const renaming = event.target.closest(".is-renaming");
    if (renaming) {
      renaming.querySelector("[data-escape]").click();
      return;
    }
    if (body.classList.contains("drawer-open")) {
      setDrawer(false);
      opener.focus();
    }
  });
  // Who deletes an entry, or asks for more of them, stands in the list that goes: on to the entry that takes its place.
  let stoodAt = -1;
  body.addEventListener("htmx:beforeSwap", (event) => {
    const list = event.detail.target;
    if (list.id !== "conversations") return;
    const entries = [...list.querySelectorAll("li, .show-more")];
    stoodAt = event.detail.shouldSwap ? entries.findIndex((entry) => entry.contains(document.activeElement)) : -1;
  });
  body.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id !== "conversations" || stoodAt < 0) return;
    const titles = event.target.querySelectorAll(".entry-title");
    (titles[Math.min(stoodAt, titles.length - 1)] ?? document.getElementById("conversation-search")).focus();
    stoodAt = -1;
  });
  // The list comes whole with every question, so what it was searched for is over.
  body.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target.id === "conversations") document.getElementById("conversation-search").value = "";
  });

  narrow.addEventListener("change", () => setDrawer(false));
  setDrawer(false);
})();
