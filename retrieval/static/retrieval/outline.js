// On a phone the page begins with the document, not with its contents. A reload keeps what the reader unfolds.
if (matchMedia("(max-width: 60rem)").matches) {
  for (const contents of document.querySelectorAll(".outline details")) contents.open = false;
}
