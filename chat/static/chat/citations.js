// Sources and citations: the card that shows what stands behind a marker, and the way from a marker to its source.
// Text of documents is set as text, never as HTML.
(function () {
  "use strict";

  const body = document.body;
  const turnOf = (element) => element.closest && element.closest(".turn");
  const preview = document.getElementById("preview");
  const canHover = matchMedia("(hover: hover)");
  let shownFor = null;
  let hiding = 0;

  function line(className, text) {
    const element = document.createElement("p");
    element.className = className;
    element.textContent = text;
    return element;
  }

  function described({ title, where, quote, support, reason }) {
    if (reason) return [line("preview-verdict", title), line("preview-reason", reason)];
    const lines = [line("preview-quote", quote), line("preview-title", title)];
    if (where) lines.push(line("preview-where", where));
    if (support) lines.push(line("preview-support", support));
    return lines;
  }

  function showPreview(marker) {
    if (!marker.dataset.quote && !marker.dataset.reason) return;
    clearTimeout(hiding);
    shownFor = marker;
    preview.replaceChildren(...described(marker.dataset));
    preview.hidden = false;
    marker.setAttribute("aria-describedby", "preview");
    const at = marker.getBoundingClientRect();
    const card = preview.getBoundingClientRect();
    const left = Math.max(12, Math.min(at.left + at.width / 2 - card.width / 2, innerWidth - card.width - 12));
    const above = at.top - card.height - 10;
    preview.style.left = left + "px";
    preview.style.top = (above > 12 ? above : at.bottom + 10) + "px";
    source(marker)?.classList.add("is-pointed-at");
  }

  function hidePreview() {
    if (!shownFor) return;
    shownFor.removeAttribute("aria-describedby");
    source(shownFor)?.classList.remove("is-pointed-at");
    shownFor = null;
    preview.hidden = true;
  }

  function source(marker) {
    const turn = turnOf(marker);
    return turn && document.getElementById(turn.id + "-source-" + marker.textContent.trim());
  }

  // The marker under the pointer; of a sentence in doubt, the sign behind it.
  function markerAt(event) {
    const at = event.target.closest && event.target.closest(".cite > *, .doubt, .unsupported");
    if (!at || !at.matches(".unsupported")) return at;
    return at.closest(".answer").querySelector('[data-doubt-sign="' + at.dataset.doubt + '"]');
  }

  body.addEventListener("mouseover", (event) => {
    if (!canHover.matches) return;
    const marker = markerAt(event);
    if (marker && marker !== shownFor) {
      hidePreview();
      showPreview(marker);
    } else if (marker || preview.contains(event.target)) {
      clearTimeout(hiding);
    }
  });
  body.addEventListener("mouseout", (event) => {
    if (!shownFor || !(markerAt(event) || preview.contains(event.target))) return;
    clearTimeout(hiding);
    hiding = setTimeout(hidePreview, 160);
  });
  body.addEventListener("focusin", (event) => {
    hidePreview();
    const marker = markerAt(event);
    if (marker && marker.matches(":focus-visible")) showPreview(marker);
  });
  addEventListener("scroll", hidePreview, { passive: true, capture: true });

  body.addEventListener("click", (event) => {
    // A tap on a sentence in doubt is all that a screen without a pointer has.
    const sign = markerAt(event);
    if (sign && sign.matches(".doubt")) showPreview(sign);
    else if (shownFor && !preview.contains(event.target)) hidePreview();
    const marker = event.target.closest(".is-streaming .cite > a");
    if (marker) {
      event.preventDefault();
      const card = source(marker);
      if (!card) return;
      card.scrollIntoView({ block: "nearest" });
      card.focus({ preventScroll: true });
    }
  });

  // Who opened a document with the keyboard finds the focus where it was on coming back.
  body.addEventListener("click", (event) => {
    const link = event.detail === 0 && event.target.closest(".turn a[href^='/documents/']");
    if (!link) return;
    const turn = turnOf(link);
    const left = { turn: turn.id, link: [...turn.querySelectorAll("a[href]")].indexOf(link) };
    history.replaceState({ ...history.state, left }, "");
  });
  const left = history.state?.left;
  if (left) document.getElementById(left.turn)?.querySelectorAll("a[href]")[left.link]?.focus({ preventScroll: true });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hidePreview();
  });
})();
