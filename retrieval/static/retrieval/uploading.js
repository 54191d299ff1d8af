"use strict";
// Sends files one by one, with a bar each: those dropped on a form with `data-uploading`, chosen in it, or pasted. Without
// this script the form sends them all at once.
(() => {
  const AT_ONCE = 2;
  for (const form of document.querySelectorAll("form[data-uploading]")) {
    const list = form.querySelector("[data-uploads]");
    const template = form.querySelector("template");
    const input = form.querySelector("input[type=file]");
    const folder = form.querySelector("[data-folder]");
    const waiting = [];
    let running = 0;

    const add = (file, source) => {
      const row = template.content.firstElementChild.cloneNode(true);
      row.querySelector("[data-name]").textContent = source;
      list.append(row);
      waiting.push({ file, source, row });
      next();
    };

    function next() {
      if (running >= AT_ONCE || waiting.length === 0) return;
      running += 1;
      const { file, source, row } = waiting.shift();
      const bar = row.querySelector("progress");
      const state = row.querySelector("[data-state]");
      const body = new FormData(form);
      body.delete("file");
      body.delete("text");
      body.append("file", file, file.name);
      body.set("source", source);
      const request = new XMLHttpRequest();
      request.open("POST", form.action);
      request.setRequestHeader("Accept", "application/json");
      request.upload.onprogress = (event) => {
        if (event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
      };
      request.onloadend = () => {
        running -= 1;
        bar.remove();
        show(row, state, request);
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
      if (entries.length > 0) for (const entry of entries) walk(entry, "").catch(() => {});
      else for (const file of event.dataTransfer.files) add(file, file.name);
    });
    document.addEventListener("paste", (event) => {
      for (const file of event.clipboardData?.files ?? []) add(file, file.name);
    });
    for (const chosen of [input, folder]) {
      chosen?.addEventListener("change", () => {
        for (const file of chosen.files) add(file, file.webkitRelativePath || file.name);
        chosen.value = "";
      });
    }
  }
})();
