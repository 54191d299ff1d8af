// The chat in the frame of the widget: a question goes to the API without cookies, and its stream is read.
const form = document.getElementById("ask");
const question = document.getElementById("question");
const turns = document.getElementById("turns");
const error = document.getElementById("question-error");
let conversation = null;

const refuse = (sentence) => {
  error.textContent = sentence;
  error.hidden = !sentence;
};

const sentenceOf = (problem) => problem.detail ?? Object.values(problem).flat().join(" ");

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    unread += value;
    const events = unread.split("\n\n");
    unread = events.pop();
    for (const event of events) {
      const lines = event.split("\n");
      const named = lines.find((line) => line.startsWith("event: "));
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (named) yield { name: named.slice(7), payload: JSON.parse(data) };
    }
  }
}

async function ask(asked) {
  const turn = document.createElement("article");
  turn.className = "turn";
  const heading = Object.assign(document.createElement("h2"), { className: "question", textContent: asked });
  const written = Object.assign(document.createElement("p"), { className: "prose", textContent: form.dataset.working });
  turn.append(heading, written);
  const body = { question: asked, stream: true };
  if (conversation) body.conversation = conversation;
  if (form.dataset.collection && !conversation) body.collection = form.dataset.collection;
  const send = { method: "POST", credentials: "omit", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(form.dataset.ask, send);
  if (!response.ok) return refuse(sentenceOf(await response.json()));
  question.value = "";
  turns.append(turn);
  turn.scrollIntoView({ block: "start" });
  let text = "";
  for await (const { name, payload } of eventsOf(response)) {
    if (name === "token") written.textContent = text += payload.text;
    if (name === "reset") written.textContent = text = "";
    if (name === "failed") written.textContent = payload.message;
    if (name === "completed") {
      conversation = payload.conversation;
      const whole = await fetch(`${form.dataset.answers}${payload.answer_id}/`, { credentials: "omit" });
      if (!whole.ok) return refuse(form.dataset.broken);
      turn.outerHTML = await whole.text();
      // Documents are read in a tab of their own: their pages refuse to be framed.
      for (const link of turns.querySelectorAll('a[href]:not([href^="#"])')) link.target = "_blank";
    }
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  refuse("");
  button.disabled = true;
  try {
    await ask(question.value.trim());
  } catch (failure) {
    console.info(failure);
    refuse(form.dataset.broken);
  } finally {
    button.disabled = false;
    question.focus();
  }
});
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});
// A question that is sent before this line would be lost: the form has no action.
for (const control of form.elements) control.disabled = false;
