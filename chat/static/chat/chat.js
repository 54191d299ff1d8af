// Asking, and reading along while an answer is written: keys, the counter, announcements, how long it takes.
// Every text that scripts show comes from the page, where it is translated.
(function () {
  "use strict";

  const body = document.body;
  const live = document.getElementById("live");
  const narrow = matchMedia("(max-width: 60rem)");
  const asked = new BroadcastChannel("ragsite-asked");

  // The question ---------------------------------------------------------------------------------------------------

  const form = document.getElementById("ask");
  const question = document.getElementById("question");
  const count = document.getElementById("question-count");
  const limit = Number(question.dataset.limit);
  const warnBelow = 80;

  // As the server counts: characters, not UTF-16 units, without the space around.
  const inLines = (text) => text.replace(/\r\n/g, "\n").trim();
  const length = () => Array.from(inLines(question.value)).length;

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

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]") || question.closest("[inert]")) return;
    event.preventDefault();
    question.focus();
  });

  function say(sentence) {
    const error = document.getElementById("question-error");
    if (error) error.textContent = sentence;
  }

  // A refusal comes as an alert, as JSON or as plain text; another page (a proxy's, say) has nothing for the reader.
  function sentenceOf(xhr) {
    const type = xhr.getResponseHeader("Content-Type") || "";
    try {
      if (type.includes("json")) return String(JSON.parse(xhr.responseText).detail || "");
      if (type.startsWith("text/plain")) return xhr.responseText.trim().slice(0, 300);
      const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
      return (page.querySelector("[role=alert]") || page.querySelector("main p"))?.textContent.trim() || "";
    } catch (error) {
      return "";
    }
  }

  for (const lost of ["htmx:sendError", "htmx:sendAbort", "htmx:timeout"]) {
    body.addEventListener(lost, () => say(body.dataset.unreachable));
  }
  body.addEventListener("htmx:responseError", (event) => say(sentenceOf(event.detail.xhr) || body.dataset.refused));
  body.addEventListener("htmx:afterRequest", (event) => {
    // A refusal (422, 429) is shown as the server words it, so htmx calls it a success too; without a network the
    // status is 0. Only a question that was taken leaves its field.
    const status = event.detail.xhr.status;
    if (status < 200 || status >= 300 || event.detail.failed) return;
    if (event.detail.requestConfig.path !== form.getAttribute("hx-post")) return;
    asked.postMessage("");
    // What was typed meanwhile, or before an offered question was chosen, was not sent.
    const sent = inLines(event.detail.requestConfig.formData.get("question"));
    const typed = question.value.replace(/\r\n/g, "\n").trimStart();
    if (event.detail.elt === form && typed.startsWith(sent)) question.value = typed.slice(sent.length).trimStart();
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
  question.setSelectionRange(question.value.length, question.value.length);

  // What another tab asked appears here: its turns, if this tab shows the same conversation, and the list.
  asked.addEventListener("message", async () => {
    const response = await fetch(location.href).catch(() => null);
    if (!response?.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const turn of page.querySelectorAll("#turns > .turn")) {
      if (document.getElementById(turn.id)) continue;
      document.getElementById("turns").append(turn);
      htmx.process(turn);
    }
    const [list, current] = [page, document].map((each) => each.getElementById("conversations"));
    if (list && !current.querySelector(".is-renaming")) {
      current.replaceWith(list);
      htmx.process(list);
    }
  });

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
    if (name === "reset" || name === "queued" || name === "sources" || name === "completed" || name === "failed") {
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

  // A long wait says so, once aloud; the seconds are for the eyes alone.
  const longWaitSeconds = 6;
  const shownFromSeconds = 3;
  const begun = new WeakMap();

  function tellWaiting(status) {
    const turn = turnOf(status);
    if (!begun.has(turn)) begun.set(turn, performance.now() - 1000 * Number(status.dataset.waited));
    const seconds = Math.floor((performance.now() - begun.get(turn)) / 1000);
    if (seconds >= shownFromSeconds) {
      status.querySelector("[data-elapsed]").textContent = seconds + "\u00a0" + status.dataset.seconds;
    }
    const isSilent = !turn.querySelector(".answer .prose:not(:empty)");
    const slowness = status.querySelector("[data-slowness]");
    slowness.textContent = isSilent && seconds >= longWaitSeconds ? status.dataset.slow : "";
    if (slowness.textContent && !("announcedSlow" in turn.dataset)) {
      turn.dataset.announcedSlow = "";
      live.textContent = status.dataset.slow;
    }
  }

  setInterval(() => document.querySelectorAll(".is-streaming > .progress").forEach(tellWaiting), 1000);
})();
