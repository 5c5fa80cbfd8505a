// The log as it is read. Without this file the page is the same, and a reload shows what came.
"use strict";

const EVERY_MS = 2000;
// A page that nobody touches asks no more, so that it does not keep a sign-in alive.
const LEFT_ALONE_MS = 15 * 60 * 1000;

const main = document.querySelector("main[data-head]");
const first = main.dataset.head;
let touched = Date.now();
let ended = false;

async function news() {
  const address = new URL(location.href);
  address.searchParams.set("after", first);
  address.searchParams.set("seen", main.dataset.head);
  const answer = await fetch(address);
  ended = answer.redirected || answer.status >= 400;
  if (answer.status !== 200 || ended) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const held = document.activeElement?.getAttribute("href");
  for (const part of document.querySelectorAll("[data-live]")) {
    part.replaceChildren(...page.getElementById(part.id).childNodes);
  }
  main.dataset.head = page.querySelector("main").dataset.head;
  if (held && document.activeElement === document.body) {
    document.querySelector(`main a[href="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  }
}

for (const kind of ["pointermove", "pointerdown", "keydown", "scroll"]) {
  addEventListener(kind, () => { touched = Date.now(); }, { passive: true });
}

(async () => {
  while (!ended) {
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    if (document.hidden || Date.now() - touched > LEFT_ALONE_MS) continue;
    await news().catch(() => {}); // the server is away: the page stays, and asks again
  }
})();
