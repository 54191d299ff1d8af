"use strict";
// Sends one by one, with a bar each, what is dropped on a form with `data-uploading`, chosen in it, or pasted: files, a
// text, a web address. Without this script the form sends it all at once.
(() => {
  const AT_ONCE = 2;
  const excerpt = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);
  for (const form of document.querySelectorAll("form[data-uploading]")) {
    const list = form.querySelector("[data-uploads]");
    const template = form.querySelector("template");
    const input = form.querySelector("input[type=file]");
    const folder = form.querySelector("[data-folder]");
    const waiting = [];
    let running = 0;

    const text = form.elements.text;
    const button = form.querySelector("[type=submit]").parentElement;
    // Files are sent as they come: the button is for what was written.
    const offer = () => {
      button.hidden = !text.value.trim();
    };

    const appendRow = (name) => {
      const row = template.content.firstElementChild.cloneNode(true);
      row.querySelector("[data-name]").textContent = name;
      list.append(row);
      return row;
    };
    // `fields` are those of the form for this one; `added` is called once it was.
    const send = (name, fields, added) => {
      waiting.push({ fields, added, row: appendRow(name) });
      next();
    };
    const refuse = (name) => {
      const row = appendRow(name);
      row.classList.add("failed");
      row.querySelector("progress").remove();
      row.querySelector("[data-state]").textContent = form.dataset.unreadable;
    };
    const add = (file, source) => send(source, { file, source });
    const addText = (pasted, title, added) =>
      send(title || excerpt(pasted), { text: pasted, text_name: title }, added);

    function next() {
      if (running >= AT_ONCE || waiting.length === 0) return;
      running += 1;
      const { fields, added, row } = waiting.shift();
      const bar = row.querySelector("progress");
      const state = row.querySelector("[data-state]");
      const body = new FormData(form);
      for (const name of ["file", "source", "text", "text_name"]) body.delete(name);
      for (const [name, value] of Object.entries(fields)) body.append(name, value);
      const request = new XMLHttpRequest();
      request.open("POST", form.action);
      request.setRequestHeader("Accept", "application/json");
      request.upload.onprogress = (event) => {
        if (event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
      };
      // What is left is the server's: it may have to fetch a page.
      request.upload.onload = () => bar.removeAttribute("value");
      request.onloadend = () => {
        running -= 1;
        bar.remove();
        if (show(row, state, request)) added?.();
        next();
      };
      request.send(body);
    }

    function show(row, state, request) {
      let answer = null;
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        // Not an answer of this site: the network was lost, or a proxy refused the file.
      }
      const file = answer?.files?.[0];
      row.classList.toggle("failed", !file?.added);
      state.textContent = file ? file.sentence : answer?.sentence || form.dataset.lost;
      // Markup from this site's own server, in which every value is escaped.
      if (file?.badge) state.insertAdjacentHTML("beforeend", file.badge);
      return Boolean(file?.added);
    }

    const walk = async (entry, path) => {
      if (entry.isFile) {
        const file = await new Promise((done, failed) => entry.file(done, failed));
        add(file, path + entry.name);
      } else {
        const reader = entry.createReader();
        // A reader gives a hundred entries at a time, and none at its end.
        for (;;) {
          const entries = await new Promise((done, failed) => reader.readEntries(done, failed));
          if (entries.length === 0) return;
          for (const inner of entries) if (!inner.name.startsWith(".")) await walk(inner, `${path}${entry.name}/`);
        }
      }
    };

    form.classList.add("with-script");
    text.addEventListener("input", offer);
    offer();
    form.addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      form.classList.add("dropping");
    });
    form.addEventListener("dragleave", (event) => {
      if (!form.contains(event.relatedTarget)) form.classList.remove("dropping");
    });
    form.addEventListener("drop", (event) => {
      form.classList.remove("dropping");
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      // The entries are gone once this handler has returned.
      const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
      if (entries.length > 0) for (const entry of entries) walk(entry, "").catch(() => refuse(entry.name));
      else for (const file of event.dataTransfer.files) add(file, file.name);
    });
    document.addEventListener("paste", (event) => {
      // A form that is folded away is not meant.
      if (form.closest("details:not([open])")) return;
      for (const file of event.clipboardData?.files ?? []) add(file, file.name);
      const pasted = event.clipboardData?.getData("text/plain").trim() ?? "";
      if (/^https?:\/\/\S+$/i.test(pasted) && !event.target.closest("input, textarea, select, [contenteditable]"))
        addText(pasted, "");
    });
    form.addEventListener("submit", (event) => {
      const written = text.value.trim();
      if (!written) return;
      event.preventDefault();
      addText(written, form.elements.text_name.value.trim(), () => {
        if (text.value.trim() === written) text.value = form.elements.text_name.value = "";
        offer();
      });
    });
    for (const chosen of [input, folder]) {
      chosen?.addEventListener("change", () => {
        for (const file of chosen.files) add(file, file.webkitRelativePath || file.name);
        chosen.value = "";
      });
    }
  }
})();
