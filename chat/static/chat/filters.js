// The filters beside the question: where the panel closes, and what a quick choice of days does to the days typed.
(function () {
  "use strict";

  const form = document.getElementById("ask");
  const panel = () => form.querySelector("[data-filters]");

  function close(returnsFocus) {
    const open = panel();
    if (!open?.open) return;
    open.open = false;
    if (returnsFocus) open.querySelector("summary").focus();
  }

  form.addEventListener("change", (event) => {
    const range = event.target.closest(".filter-range");
    const quick = range?.querySelector("[data-quick]");
    if (!quick) return;
    if (event.target !== quick) quick.value = "";
    else for (const day of range.querySelectorAll("input")) day.value = "";
  }, true);
  form.addEventListener("click", (event) => {
    if (!event.target.closest("[data-close-filters]")) return;
    // The chips are shown already.
    event.preventDefault();
    close(true);
  });
  form.addEventListener("submit", () => close(false));
  document.addEventListener("click", (event) => {
    // htmx sends a form to the address of the button pressed last, also when Enter asks the question later; it forgets
    // the button when the focus leaves.
    event.target.closest("[formaction]")?.dispatchEvent(new FocusEvent("focusout", { bubbles: true }));
    if (!event.target.closest("[data-filters]") && event.target.isConnected) close(false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && panel()?.open) close(true);
  });
  // A chip that was pressed is gone: its place is taken by the next one, or by the question. An answer brings chips too,
  // but no focus, which would scroll away from it.
  let pressed = false;
  document.addEventListener("click", (event) => {
    if (event.target.closest("#filter-chips button")) pressed = true;
  });
  document.body.addEventListener("htmx:afterSettle", (event) => {
    if (!pressed || event.detail.elt?.id !== "filter-chips") return;
    pressed = false;
    if (document.activeElement !== document.body) return;
    (event.detail.elt.querySelector("button") || document.getElementById("question")).focus();
  });
})();
