// Sends files in pieces, shows how far, and goes on after a cut. Without it the form sends them whole.
"use strict";

const PAUSES_MS = [500, 1000, 2000, 4000, 8000, 15000];

async function asked(address, csrf, body) {
  const answer = await fetch(address, {
    method: "POST", body, headers: { "X-CSRF-Token": csrf, Accept: "application/json" },
  });
  const said = await answer.json();
  return { status: answer.status, said };
}

async function persistently(address, csrf, body) {
  for (const pause of [...PAUSES_MS, null]) {
    try {
      const { status, said } = await asked(address, csrf, body);
      if (status < 500 || pause === null) return { status, said };
    } catch (gone) {
      if (pause === null) throw gone;
    }
    await new Promise((wake) => setTimeout(wake, pause));
  }
}

function problemOf(said) {
  const error = said.error ?? {};
  return new Error([error.message, error.next_step].filter(Boolean).join(" "));
}

async function sendFile(place, file, csrf, chunk, sent) {
  let at = 0;
  do {
    const query = new URLSearchParams({ path: file.path, from: String(at) });
    const body = file.blob.slice(at, at + chunk);
    const { status, said } = await persistently(`${place}/bytes?${query}`, csrf, body);
    const there = said.received_bytes ?? said.error?.received_bytes;
    if (status !== 200 && there === undefined) throw problemOf(said);
    if (status !== 200 && there > file.blob.size) throw problemOf(said);
    at = there;
    sent(at);
  } while (at < file.blob.size);
}

async function send(form, files) {
  const [said, bar] = [form.querySelector("[data-said]"), form.querySelector("progress")];
  const problem = form.querySelector("[data-problem]");
  const csrf = form.elements._csrf.value;
  const root = new URL(form.action).pathname.replace(/\/form$/, "");
  const total = files.reduce((sum, file) => sum + file.blob.size, 0);
  const name = files[0].path.split("/")[0];
  const mark = `${files.length} ${Math.max(...files.map((file) => file.blob.lastModified))}`;
  problem.hidden = true;
  form.querySelector("[data-progress]").hidden = false;
  form.querySelector("button").disabled = true;
  try {
    const begun = new URLSearchParams({ _csrf: csrf, name, size: String(total), mark });
    const begin = await persistently(root, csrf, begun);
    if (begin.status !== 200) throw problemOf(begin.said);
    const place = `${root}/${begin.said.upload_id}`;
    let before = 0;
    for (const file of files) {
      await sendFile(place, file, csrf, Number(form.dataset.chunk), (at) => {
        const percent = total ? Math.floor((before + at) * 100 / total) : 100;
        bar.value = percent;
        said.textContent = `${form.dataset.sent} ${percent} %`;
      });
      before += file.blob.size;
    }
    const start = document.createElement("form");
    start.method = "post";
    start.action = `${place}/import`;
    const secret = document.createElement("input");
    Object.assign(secret, { type: "hidden", name: "_csrf", value: csrf });
    start.append(secret);
    document.body.append(start);
    start.submit();
  } catch (stopped) {
    problem.textContent = stopped.message || form.dataset.cut;
    problem.hidden = false;
    form.querySelector("button").disabled = false;
  }
}

function chosen(list) {
  return [...list].map((blob) => ({ path: blob.webkitRelativePath || blob.name, blob }));
}

async function inside(entry, before = "") {
  if (entry.isFile) {
    const blob = await new Promise((found, failed) => entry.file(found, failed));
    return [{ path: before + blob.name, blob }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((read, failed) => reader.readEntries(read, failed));
    if (!some.length) break;
    for (const each of some) found.push(...await inside(each, `${before}${entry.name}/`));
  }
  return found;
}

for (const form of document.querySelectorAll("form[data-uploads]")) {
  const folder = form.querySelector("[data-folder-input]");
  for (const shown of form.querySelectorAll("[data-folder], [data-drop]")) shown.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.elements.file.files.length) send(form, chosen(form.elements.file.files));
  });
  folder.addEventListener("change", () => {
    if (folder.files.length) send(form, chosen(folder.files));
  });
  form.addEventListener("dragover", (event) => event.preventDefault());
  form.addEventListener("drop", async (event) => {
    event.preventDefault();
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry());
    const files = (await Promise.all(entries.filter(Boolean).map((each) => inside(each)))).flat();
    if (files.length) send(form, files);
  });
}
