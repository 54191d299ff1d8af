// Names for what Django's admin shows without one: cells of tables of forms, halves of a moment, choices that are searched,
// and signs of help.
addEventListener("load", () => {
  const isNamed = (control) => control.labels?.length || control.hasAttribute("aria-label") || control.type === "hidden";
  const textOf = (element) => element?.textContent.trim().replace(/[:?]$/, "");
  for (const control of document.querySelectorAll("#content :is(input, select, textarea)")) {
    if (isNamed(control)) continue;
    const cell = control.closest(".tabular td");
    const heading = cell && cell.closest("table").tHead?.rows[0].cells[cell.cellIndex];
    const name = textOf(heading) || textOf(control.closest(".form-row, .fieldBox")?.querySelector("label, legend"));
    if (name) control.setAttribute("aria-label", name);
  }
  // Django's label of a search is a picture, which is none where a text describes the field.
  const search = document.getElementById("searchbar");
  search?.setAttribute("aria-label", search.labels[0]?.querySelector("img")?.alt ?? "");
  // jQuery makes these once it is ready, which may be after the page has loaded.
  window.django?.jQuery?.(($) => {
    for (const choice of document.querySelectorAll(".select2-container [role=combobox]")) {
      const label = choice.closest(".select2-container").previousElementSibling?.labels?.[0];
      const chosen = choice.querySelector("[role=textbox]");
      if (!label || !chosen) continue;
      label.id ||= `${label.htmlFor}_label`;
      chosen.setAttribute("aria-labelledby", label.id);
      choice.setAttribute("aria-labelledby", `${label.id} ${chosen.id}`);
      choice.setAttribute("aria-controls", `select2-${label.htmlFor}-results`);
    }
    $(document).on("select2:open", ({ target }) => {
      document.querySelector(".select2-search__field")?.setAttribute("aria-label", textOf(target.labels?.[0]) ?? "");
    });
  });
  for (const sign of document.querySelectorAll("span.help-tooltip[aria-label]")) sign.setAttribute("role", "img");
});
