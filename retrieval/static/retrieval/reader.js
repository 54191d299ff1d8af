// A browser that is busy while the page arrives may stay at its top: the passage is what was asked for.
addEventListener("load", () => {
  if (location.hash === "#passage") document.getElementById("passage")?.scrollIntoView();
});

// The way back is kept for other views of the document, and for others that are opened from it.
const back = document.getElementById("came-from");
const before = new URL(document.referrer || "about:blank");
if (back.hasAttribute("href")) {
  sessionStorage.setItem("came-from", back.getAttribute("href"));
} else if (before.origin === location.origin && /^\/documents\/\d/.test(before.pathname) && sessionStorage.getItem("came-from")) {
  back.setAttribute("href", sessionStorage.getItem("came-from"));
  back.hidden = false;
}

// Back to the place where the answer was left, not to the top of its page.
back.addEventListener("click", (event) => {
  if (history.length < 2 || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (before.pathname !== event.currentTarget.pathname) return;
  event.preventDefault();
  history.back();
});

// Tables that are on the page as a whole are sorted here, by their values: numbers, days, or words.
const words = new Intl.Collator(document.documentElement.lang || undefined, { numeric: true, sensitivity: "base" });
const valueOf = (row, at) => (row.cells[at]?.dataset.value ?? row.cells[at]?.textContent ?? "").trim();
const numberOf = (text) => {
  const digits = text.replace(/[^\d.,+-]/g, "");
  const plain = /,\d{3}(\D|$)/.test(digits) || !digits.includes(",") ? digits.replace(/,/g, "") : digits.replace(/\./g, "").replace(",", ".");
  return /^\W*[-+]?[\d.,\s]+\D{0,12}$/.test(text) && plain ? Number(plain) : NaN;
};
const compare = (one, other) => {
  const [first, second] = [numberOf(one), numberOf(other)];
  return Number.isNaN(first) || Number.isNaN(second) ? words.compare(one, other) : first - second;
};
const sortBy = (table, heading, at) => {
  const falls = heading.getAttribute("aria-sort") === "ascending";
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].sort((one, other) => {
    const [first, second] = [valueOf(one, at), valueOf(other, at)];
    if (!first || !second) return Number(!first) - Number(!second);
    return falls ? compare(second, first) : compare(first, second);
  });
  table.tBodies[0].append(...rows);
};
for (const table of document.querySelectorAll(".document table:not([data-paged])")) {
  if (!table.tHead || table.tBodies[0]?.rows.length < 2 || table.tBodies[0]?.querySelector("[rowspan]")) continue;
  [...table.tHead.rows[0].cells].forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, heading, at));
    heading.append(button);
  });
}
