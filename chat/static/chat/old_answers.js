// A sign beside a marker opens the words of then and now, which are folded below the answer.
(function () {
  "use strict";

  function unfold(id) {
    const change = id && document.getElementById(id);
    if (!change || !change.matches(".change")) return;
    change.open = true;
    change.scrollIntoView({ block: "nearest" });
    change.querySelector("summary").focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const sign = event.target.closest("[data-change]");
    if (!sign) return;
    event.preventDefault();
    unfold(sign.hash.slice(1));
  });
  unfold(location.hash.slice(1));
})();
