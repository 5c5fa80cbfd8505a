// What is ticked on the consent page is counted at once: the form is sent as Update preview sends it,
// and the page that comes takes the place of the one that is there. Without this file its button does.
"use strict";

const here = document.querySelector("main");
const heard = document.createElement("p");
let asking = null;

function openings() {
  return new Map([...here.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
}

function place() {
  const at = document.activeElement;
  if (!here.contains(at)) return null;
  if (at.closest("[data-find]")) return "[data-find] input";
  if (at.name) {
    const value = /^(checkbox|radio|submit)$/.test(at.type) ? `[value="${CSS.escape(at.value)}"]` : "";
    return `[name="${CSS.escape(at.name)}"]${value}`;
  }
  const details = at.closest("summary") && at.parentElement.id;
  return details ? `#${CSS.escape(details)} > summary` : null;
}

// What has the focus stays the very element that it is, so that nobody at it notices.
function keep(at, twin) {
  for (const { name } of [...at.attributes]) if (!twin.hasAttribute(name)) at.removeAttribute(name);
  for (const { name, value } of twin.attributes) at.setAttribute(name, value);
  twin.replaceWith(at);
}

function show(page) {
  const next = page.querySelector("main");
  const [held, opened, height, at] = [place(), openings(), scrollY, document.activeElement];
  for (const one of next.querySelectorAll("details[id]")) {
    if (opened.has(one.id)) one.open = opened.get(one.id) || one.querySelector(".problem") !== null;
  }
  for (const one of next.querySelectorAll("[autofocus]")) one.removeAttribute("autofocus");
  const twin = held && next.querySelector(held);
  if (twin) keep(at, twin);
  here.replaceChildren(...next.childNodes);
  if (next.dataset.error) here.dataset.error = next.dataset.error;
  else delete here.dataset.error;
  document.title = page.title;
  find(); // who types in its box goes on, so it is shown before it gets the focus
  if (twin) at.focus({ preventScroll: true });
  scrollTo(0, height);
  const said = [...here.querySelectorAll(".decide-bar .notice, [data-heard]")];
  heard.textContent = said.map((one) => one.textContent.trim()).join(", ");
  document.dispatchEvent(new Event("shown"));
}

// Many sources are found by their names; what is ticked stays in view.
let sought = "";

function find() {
  const box = here.querySelector("[data-find]");
  if (!box) return;
  const [field, words] = [box.querySelector("input"), sought.toLocaleLowerCase()];
  box.hidden = false;
  field.value = sought;
  for (const one of here.querySelectorAll(".what > .source")) {
    const name = one.querySelector(".source-head").textContent + (one.querySelector(".accounts")?.textContent ?? "");
    one.hidden = !one.querySelector("[name^='keep.']:checked") && !name.toLocaleLowerCase().includes(words);
  }
}

async function count(form) {
  asking?.abort();
  const mine = asking = new AbortController();
  const sent = new URLSearchParams(new FormData(form));
  form.setAttribute("aria-busy", "true");
  const body = new URLSearchParams(sent);
  body.append("action", "preview");
  const address = form.getAttribute("action"); // its buttons are called "action", too
  const answer = await fetch(address, { method: "POST", body, signal: mine.signal });
  const text = await answer.text();
  if (mine !== asking) return;
  if (answer.redirected || !text.includes("data-counted")) {
    form.requestSubmit(form.querySelector("button[value=preview]")); // signed out, or closed
    return;
  }
  // What is being typed meanwhile stays; it is counted when it is done.
  const typed = String(new URLSearchParams(new FormData(form))) !== String(sent);
  if (typed) form.removeAttribute("aria-busy");
  else show(new DOMParser().parseFromString(text, "text/html"));
}

if (here.querySelector("form[data-counted]")) {
  find();
  here.addEventListener("input", (event) => {
    if (!event.target.closest("[data-find]")) return;
    sought = event.target.value;
    find();
  });
  heard.className = "unseen";
  heard.setAttribute("role", "status");
  here.after(heard);
  here.addEventListener("change", (event) => {
    const form = event.target.form;
    if (!form || !("counted" in form.dataset)) return;
    count(form).catch((error) => {
      if (error.name === "AbortError") return;
      form.removeAttribute("aria-busy");
      heard.className = "notice";
      heard.textContent = form.dataset.counted; // the server is away: the button tells what is wrong
    });
  });
}
