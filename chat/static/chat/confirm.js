// Asks in the page before what an `hx-confirm` names is done; without this script the browser's own dialogue asks.
(function () {
  "use strict";

  const dialog = document.getElementById("confirm");
  const question = document.getElementById("confirm-question");
  let go = null;

  document.body.addEventListener("htmx:confirm", (event) => {
    if (!event.detail.question) return;
    event.preventDefault();
    question.textContent = event.detail.question;
    go = () => event.detail.issueRequest(true);
    dialog.returnValue = "";
    dialog.showModal();
  });
  // The browser gives the focus back before: whoever deletes an entry stands in the list.
  dialog.addEventListener("close", () => {
    const agreed = go;
    go = null;
    if (dialog.returnValue === "yes") agreed?.();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && !isInside(event)) dialog.close("");
  });

  function isInside(event) {
    const box = dialog.getBoundingClientRect();
    return event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
  }
})();
