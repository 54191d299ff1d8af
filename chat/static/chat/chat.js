// What the chat page does beside htmx: keys, the counter, announcements, previews of citations, copying, the drawer.
// Every text it shows comes from the page, where it is translated; text of documents is set as text, never as HTML.
(function () {
  "use strict";

  const body = document.body;
  const live = document.getElementById("live");
  const narrow = matchMedia("(max-width: 60rem)");

  // The question ---------------------------------------------------------------------------------------------------

  const form = document.getElementById("ask");
  const question = document.getElementById("question");
  const count = document.getElementById("question-count");
  const limit = Number(question.dataset.limit);
  const warnBelow = 80;

  // As the server counts: characters, not UTF-16 units, without the space around.
  const length = () => Array.from(question.value.replace(/\r\n/g, "\n").trim()).length;

  function measure() {
    const left = limit - length();
    count.textContent =
      left < 0 ? -left + " " + question.dataset.over : left <= warnBelow ? left + " " + question.dataset.warning : "";
    count.classList.toggle("is-over", left < 0);
    form.classList.toggle("is-empty", length() === 0);
    question.style.height = "auto";
    question.style.height = question.scrollHeight + "px";
  }

  question.addEventListener("input", () => {
    measure();
    say("");
  });
  question.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (length() > 0) form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    if (length() > limit || length() === 0) {
      event.preventDefault();
      event.stopImmediatePropagation();
      question.focus();
    }
  }, true);

  function say(sentence) {
    const error = document.getElementById("question-error");
    if (error) error.textContent = sentence;
  }

  body.addEventListener("htmx:sendError", () => say(body.dataset.unreachable));
  body.addEventListener("htmx:responseError", () => say(body.dataset.refused));
  body.addEventListener("htmx:afterRequest", (event) => {
    // A refusal (422, 429) is shown as the server words it, so htmx calls it a success too.
    if (event.detail.xhr.status >= 400 || event.detail.failed) return;
    if (event.detail.requestConfig.path !== form.getAttribute("hx-post")) return;
    question.value = "";
    question.placeholder = question.dataset.further;
    say("");
    measure();
    const turn = document.querySelector("#turns > .turn:last-child");
    if (turn) {
      turn.scrollIntoView({ block: "start" });
      if (narrow.matches) question.blur();
      else question.focus({ preventScroll: true });
    }
  });
  measure();

  // The stream -----------------------------------------------------------------------------------------------------

  function announce(within) {
    const found = within && within.querySelector("[data-announce]");
    const sentence = found && (found.content || found).textContent;
    if (sentence && live.textContent !== sentence) live.textContent = sentence;
  }

  const answerOf = (element) => element.closest && element.closest(".answer");
  const turnOf = (element) => element.closest && element.closest(".turn");

  body.addEventListener("htmx:sseBeforeMessage", (event) => {
    // Remembered before the swap, because the answer that completes replaces the element that heard it.
    const turn = turnOf(event.target);
    if (!turn) return;
    const name = event.detail.type;
    if (name === "reset" || name === "sources" || name === "completed" || name === "failed") {
      queueMicrotask(() => announce(turn.querySelector(".answer")));
    }
  });
  body.addEventListener("htmx:sseError", (event) => {
    const status = answerOf(event.target)?.querySelector(".progress [data-announce]");
    if (!status || status.dataset.before) return;
    status.dataset.before = status.textContent;
    status.textContent = body.dataset.lost;
    announce(answerOf(event.target));
  });
  body.addEventListener("htmx:sseOpen", (event) => {
    const status = answerOf(event.target)?.querySelector(".progress [data-announce]");
    if (status && status.dataset.before) {
      status.textContent = status.dataset.before;
      delete status.dataset.before;
    }
  });

  // Beside the question, because a button below a growing text moves away from the pointer.
  document.getElementById("stop").addEventListener("click", () => {
    const forms = document.querySelectorAll("[data-stop]");
    if (forms.length) forms[forms.length - 1].requestSubmit();
    question.focus();
  });

  // Sources and citations ------------------------------------------------------------------------------------------

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

  function showPreview(marker) {
    const { title, where, quote, support } = marker.dataset;
    if (!quote) return;
    clearTimeout(hiding);
    shownFor = marker;
    preview.replaceChildren(line("preview-quote", quote), line("preview-title", title));
    if (where) preview.append(line("preview-where", where));
    if (support) preview.append(line("preview-support", support));
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

  const markerAt = (event) => event.target.closest && event.target.closest(".cite > *");
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
    const toggle = event.target.closest(".sources-toggle");
    if (toggle) {
      toggle.setAttribute("aria-expanded", String(toggle.getAttribute("aria-expanded") !== "true"));
      return;
    }
    const marker = event.target.closest(".is-streaming .cite > a");
    if (marker) {
      event.preventDefault();
      const card = source(marker);
      if (!card) return;
      turnOf(marker).querySelector(".sources-toggle")?.setAttribute("aria-expanded", "true");
      card.scrollIntoView({ block: "nearest" });
      card.focus({ preventScroll: true });
    }
  });

  // Copying --------------------------------------------------------------------------------------------------------

  async function copy(text) {
    if (navigator.clipboard && isSecureContext) return navigator.clipboard.writeText(text);
    // Over plain HTTP the clipboard interface is missing.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (!copied) throw new Error("not copied");
  }

  body.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const label = button.querySelector("[data-label]");
    const before = label.textContent;
    try {
      await copy(button.dataset.copy);
    } catch (error) {
      return;
    }
    if (before === body.dataset.copied) return;
    label.textContent = live.textContent = body.dataset.copied;
    setTimeout(() => (label.textContent = before), 2000);
  });

  // Feedback -------------------------------------------------------------------------------------------------------

  body.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-feedback]");
    if (!button) return;
    const headers = { "Content-Type": "application/json", ...JSON.parse(body.getAttribute("hx-headers")) };
    const given = JSON.stringify({ helpful: button.dataset.helpful === "true" });
    try {
      const response = await fetch(button.dataset.feedback, { method: "POST", headers, body: given });
      if (!response.ok) throw new Error(response.statusText);
    } catch (error) {
      say(body.dataset.refused);
      return;
    }
    for (const choice of button.parentElement.querySelectorAll("[data-feedback]")) {
      choice.setAttribute("aria-pressed", String(choice === button));
    }
    live.textContent = body.dataset.thanks;
  });

  // The drawer -----------------------------------------------------------------------------------------------------

  const sidebar = document.getElementById("sidebar");
  const opener = document.getElementById("open-sidebar");

  function setDrawer(open) {
    body.classList.toggle("drawer-open", open && narrow.matches);
    opener.setAttribute("aria-expanded", String(open));
    sidebar.inert = narrow.matches && !open;
    document.getElementById("main").inert = narrow.matches && open;
    if (!narrow.matches) return;
    if (open) document.getElementById("close-sidebar").focus();
  }

  opener.addEventListener("click", () => setDrawer(true));
  for (const id of ["close-sidebar", "backdrop"]) {
    document.getElementById(id).addEventListener("click", () => {
      setDrawer(false);
      opener.focus();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    hidePreview();
    if (body.classList.contains("drawer-open")) {
      setDrawer(false);
      opener.focus();
    }
  });
  narrow.addEventListener("change", () => setDrawer(false));
  setDrawer(false);
})();
