// One script tag on a page of a site that WIDGET_SITES names: a button, and the chat in a frame.
//   <script src="https://docs.example/widget.js" data-collection="handbook" data-label="Ask us" async></script>
(() => {
  const script = document.currentScript;
  const { collection = "", label = "Ask" } = script.dataset;
  const address = new URL("/widget/", script.src);
  if (collection) address.searchParams.set("collection", collection);
  address.searchParams.set("heading", label);
  const place = { position: "fixed", right: "1rem", zIndex: "2147483000", border: "0" };

  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.setAttribute("aria-expanded", "false");
  Object.assign(button.style, place, {
    bottom: "1rem", padding: "0.75rem 1.25rem", borderRadius: "2rem", font: "600 1rem system-ui, sans-serif",
    color: "#fff", background: "#1d4f91", cursor: "pointer", boxShadow: "0 2px 8px rgb(0 0 0 / 30%)",
  });

  const frame = document.createElement("iframe");
  frame.title = label;
  frame.hidden = true;
  Object.assign(frame.style, place, {
    bottom: "5rem", width: "min(26rem, calc(100vw - 2rem))", height: "min(38rem, calc(100vh - 7rem))",
    borderRadius: "0.75rem", boxShadow: "0 4px 24px rgb(0 0 0 / 30%)", background: "Canvas",
  });

  const show = (isShown) => {
    // Nothing is loaded before somebody wants to ask.
    if (isShown && !frame.src) frame.src = address;
    frame.hidden = !isShown;
    button.setAttribute("aria-expanded", String(isShown));
    if (isShown) frame.focus();
  };
  button.addEventListener("click", () => show(frame.hidden));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !frame.hidden) {
      show(false);
      button.focus();
    }
  });
  document.body.append(button, frame);
})();
