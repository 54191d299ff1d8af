// Names for what Django's admin shows without one: cells of tables of forms, halves of a moment, and signs of help.
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
  for (const sign of document.querySelectorAll("span.help-tooltip[aria-label]")) sign.setAttribute("role", "img");
});
