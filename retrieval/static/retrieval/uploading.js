"use strict";
// Sends one by one, with a bar each, what is dropped on a box with `data-uploading`, chosen in it, or pasted: files, a
// text, a web address. What has no collection yet is kept until one is chosen or made. Without this script the form
// sends it all at once.
(() => {
  const AT_ONCE = 2;
  const excerpt = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);
  const formatSize = (bytes) => {
    const [unit, number] = bytes < 1e6 ? ["kilobyte", Math.max(bytes / 1e3, 0.1)] : ["megabyte", bytes / 1e6];
    const style = { style: "unit", unit, maximumFractionDigits: number < 10 ? 1 : 0 };
    return new Intl.NumberFormat(document.documentElement.lang || undefined, style).format(number);
  };

  const post = (address, body, prepare = () => {}) =>
    new Promise((done) => {
      const request = new XMLHttpRequest();
      request.open("POST", address);
      request.setRequestHeader("Accept", "application/json");
      prepare(request);
      request.onloadend = () => {
        try {
          done(JSON.parse(request.responseText));
        } catch {
          // Not an answer of this site: the network was lost, or a proxy refused the file.
          done(null);
        }
      };
      request.send(body);
    });

  document.documentElement.classList.add("with-script");
  for (const box of document.querySelectorAll("[data-uploading]")) {
    const isForm = box.matches("form");
    const form = isForm ? box : box.closest("form");
    const address = isForm ? box.action : box.dataset.address;
    const list = box.querySelector("[data-uploads]");
    const words = list.dataset;
    const icons = JSON.parse(words.icons);
    const template = box.querySelector("template");
    const input = box.querySelector("input[type=file]:not([data-folder])");
    const folder = box.querySelector("[data-folder]");
    const collection = box.querySelector("[name=collection], [data-collection]");
    const named = box.querySelector("[name=new_collection]");
    const text = box.querySelector("[name=text]");
    const title = box.querySelector("[name=text_name]");
    const button = text && box.querySelector("[type=submit]").parentElement;
    const waiting = [];
    let running = 0;

    // Files are sent as they come: the button is for what was written.
    const offer = () => {
      if (button) button.hidden = !text.value.trim();
    };
    const collect = (fields) => {
      const body = new FormData(isForm ? box : undefined);
      if (!isForm) body.append("csrfmiddlewaretoken", form.querySelector("[name=csrfmiddlewaretoken]").value);
      for (const name of ["file", "source", "text", "text_name", "new_collection"]) body.delete(name);
      for (const [name, value] of Object.entries({ ...fields, collection: collection.value })) body.set(name, value);
      return body;
    };

    const appendRow = (name, size) => {
      const row = template.content.firstElementChild.cloneNode(true);
      const use = row.querySelector("use");
      const icon = icons[name.split(".").pop().toLowerCase()] ?? (/^https?:/i.test(name) ? "web" : "page");
      use.setAttribute("href", use.getAttribute("href").replace(/#\w+$/, `#${icon}`));
      row.querySelector("[data-name]").textContent = name;
      row.querySelector("[data-size]").textContent = size === undefined ? "" : formatSize(size);
      row.querySelector("progress").hidden = true;
      list.append(row);
      return row;
    };
    const say = (row, sentence) => {
      row.querySelector("[data-state]").textContent = sentence;
    };
    // `fields` are those of the form for this one; `added` is called once it was.
    const send = (name, size, fields, added) => {
      waiting.push({ fields, added, row: appendRow(name, size) });
      next();
    };
    const refuse = (name) => {
      const row = appendRow(name);
      row.classList.add("failed");
      row.querySelector("progress").remove();
      say(row, words.unreadable);
    };
    const add = (file, source) => send(source, file.size, { file, source });
    const addText = (pasted, heading, added) =>
      send(heading || excerpt(pasted), undefined, { text: pasted, text_name: heading }, added);

    function next() {
      for (const each of waiting) say(each.row, collection.value ? words.queued : words.held);
      while (collection.value && running < AT_ONCE && waiting.length > 0) sendOne(waiting.shift());
    }

    async function sendOne({ fields, added, row }) {
      running += 1;
      const bar = row.querySelector("progress");
      bar.hidden = false;
      say(row, "");
      const answer = await post(address, collect(fields), (request) => {
        request.upload.onprogress = (event) => {
          if (event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
        };
        // What is left is the server's: it may have to fetch a page.
        request.upload.onload = () => {
          bar.removeAttribute("value");
          say(row, words.arrived);
        };
      });
      running -= 1;
      bar.remove();
      if (show(row, answer)) added?.();
      next();
      const note = box.querySelector("[data-made]");
      if (note && running === 0) {
        note.querySelector("[data-sending]").hidden = true;
        note.querySelector("[data-arrived]").hidden = false;
      }
    }

    function show(row, answer) {
      const file = answer?.files?.[0];
      row.classList.toggle("failed", !file?.added);
      say(row, file ? file.sentence : answer?.sentence || words.lost);
      // Markup from this site's own server, in which every value is escaped.
      if (file?.badge) row.querySelector("[data-state]").insertAdjacentHTML("beforeend", file.badge);
      return Boolean(file?.added);
    }

    // Makes the collection that is named on the upload page, and chooses it.
    async function make() {
      const name = named.value.trim();
      if (!name) return named.focus();
      const body = collect({ new_collection: name });
      body.delete("collection");
      const answer = await post(address, body);
      let said = named.parentElement.querySelector(".errorlist");
      if (!answer?.collection) {
        said ??= named.parentElement.insertBefore(document.createElement("ul"), named);
        said.className = "errorlist";
        said.replaceChildren(document.createElement("li"));
        said.firstChild.textContent = answer?.sentence || words.lost;
        return named.focus();
      }
      said?.remove();
      collection.add(new Option(answer.collection.name, answer.collection.pk, true, true));
      named.value = "";
      next();
    }

    // Saves the form of a new collection around this box, and then sends the files that wait for it.
    async function saveCollection() {
      const answer = await post(form.action, new FormData(form));
      for (const old of form.querySelectorAll("[data-said]")) old.remove();
      if (!answer?.collection) return complain(answer?.errors ?? { "": [words.lost] });
      collection.value = answer.collection.pk;
      const note = box.querySelector("[data-made]");
      note.hidden = false;
      note.querySelector("a").href = answer.url;
      note.querySelector("a").textContent = answer.collection.name;
      box.parentElement.querySelector("[data-before]").remove();
      form.before(box.parentElement);
      form.hidden = true;
      note.scrollIntoView({ block: "center" });
      next();
    }
    function complain(errors) {
      let first = null;
      for (const [id, sentences] of Object.entries(errors)) {
        const field = id && document.getElementById(id);
        const said = document.createElement("ul");
        said.className = "errorlist";
        said.dataset.said = "";
        for (const sentence of sentences) said.appendChild(document.createElement("li")).textContent = sentence;
        const row = field ? field.closest(".form-row") : form;
        if (row) row.prepend(said);
        else field.before(said);
        first ??= field || said;
      }
      first?.scrollIntoView({ block: "center" });
      first?.focus?.();
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

    offer();
    text?.addEventListener("input", offer);
    collection.addEventListener("change", next);
    box.querySelector("[data-make]")?.addEventListener("click", make);
    box.addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      box.classList.add("dropping");
    });
    box.addEventListener("dragleave", (event) => {
      if (!box.contains(event.relatedTarget)) box.classList.remove("dropping");
    });
    box.addEventListener("drop", (event) => {
      box.classList.remove("dropping");
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      // The entries are gone once this handler has returned.
      const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
      if (entries.length > 0) for (const entry of entries) walk(entry, "").catch(() => refuse(entry.name));
      else for (const file of event.dataTransfer.files) add(file, file.name);
    });
    document.addEventListener("paste", (event) => {
      // A box that is folded away is not meant.
      if (box.closest("details:not([open])")) return;
      for (const file of event.clipboardData?.files ?? []) add(file, file.name);
      const pasted = event.clipboardData?.getData("text/plain").trim() ?? "";
      if (/^https?:\/\/\S+$/i.test(pasted) && !event.target.closest("input, textarea, select, [contenteditable]"))
        addText(pasted, "");
    });
    form.addEventListener("submit", async (event) => {
      if (!isForm) {
        if (waiting.length === 0 || collection.value) return;
        event.preventDefault();
        await saveCollection();
        return;
      }
      const written = text.value.trim();
      if (!written && !named?.value.trim()) return;
      event.preventDefault();
      if (named?.value.trim()) await make();
      if (!written) return;
      addText(written, title.value.trim(), () => {
        if (text.value.trim() === written) text.value = title.value = "";
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
