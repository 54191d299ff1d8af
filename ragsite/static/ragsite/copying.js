"use strict";
// A button with `data-copies` copies the text of the element that it names; its label says so for two seconds.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copies]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copies);
  const range = document.createRange();
  range.selectNodeContents(source);
  getSelection().removeAllRanges();
  // Where the clipboard is closed to pages, the selected text is one key away.
  getSelection().addRange(range);
  try {
    if (navigator.clipboard && isSecureContext) await navigator.clipboard.writeText(source.textContent);
    else if (!document.execCommand("copy")) return;
  } catch {
    return;
  }
  const before = button.dataset.label ?? button.textContent;
  button.dataset.label = before;
  button.textContent = button.dataset.copied;
  setTimeout(() => (button.textContent = before), 2000);
});
