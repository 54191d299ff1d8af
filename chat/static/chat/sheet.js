// The side sheet: a source opens beside the answer, with its passage marked. The whole document is one click further.
(function () {
  "use strict";

  const sheet = document.getElementById("sheet");
  if (!sheet) return;
  const content = document.getElementById("sheet-body");
  const whole = document.getElementById("sheet-whole");
  // Beside the answer there is room for it; on a narrow screen it covers the page.
  const wide = matchMedia("(min-width: 60rem)");
  let opener = null;

  function mark(link, open) {
    link?.closest(".source")?.classList.toggle("is-open", open);
  }

  async function show(link) {
    const address = new URL(link.href);
    whole.href = link.href;
    address.searchParams.set("sheet", "1");
    address.hash = "";
    sheet.setAttribute("aria-busy", "true");
    mark(opener, false);
    opener = link;
    try {
      const response = await fetch(address, { credentials: "same-origin" });
      if (!response.ok || response.redirected) throw new Error(String(response.status));
      content.innerHTML = await response.text();
    } catch (error) {
      // The page itself says what is wrong.
      console.info(error);
      location.href = link.href;
      return;
    }
    sheet.removeAttribute("aria-busy");
    if (!sheet.open) wide.matches ? sheet.show() : sheet.showModal();
    mark(opener, true);
    content.scrollTop = 0;
    content.querySelector("#passage")?.scrollIntoView({ block: "center" });
    content.focus({ preventScroll: true });
  }

  document.body.addEventListener("click", (event) => {
    if (event.target.closest("#sheet-close")) return sheet.close();
    const link = event.target.closest(".turn a[href^='/documents/'][href*='start=']");
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.closest(".result-link, .is-streaming, .debug")) return;
    event.preventDefault();
    event.stopPropagation();
    show(link);
  }, true);

  // Coming back from the document, the focus is on the link that opened the sheet.
  whole.addEventListener("click", () => {
    const turn = opener?.closest(".turn");
    if (!turn) return;
    const left = { turn: turn.id, link: [...turn.querySelectorAll("a[href]")].indexOf(opener) };
    history.replaceState({ ...history.state, left }, "");
  });

  sheet.addEventListener("close", () => {
    mark(opener, false);
    content.replaceChildren();
    if (opener?.isConnected) opener.focus({ preventScroll: true });
    opener = null;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && sheet.open) sheet.close();
  });
})();
