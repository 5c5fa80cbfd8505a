// What an app opened in a tab that is not signed in is asked about here: the newest three, so that
// an app that opens many leaves room for the page. Without this file requests wait under Overview.
"use strict";

{
  const place = location.pathname.match(/^\/~[^/]+/)?.[0];
  const channel = new BroadcastChannel("pdpp-requests");
  const title = document.title;
  const MOST_ASKED = 3;

  const questions = () => [...document.querySelectorAll("[data-asked]")];
  const forget = (next) => {
    for (const one of questions()) if (one.dataset.asked === next) one.remove();
    if (!questions().length) document.title = title;
  };

  async function ask(next) {
    if (!place || questions().some((one) => one.dataset.asked === next)) return;
    const address = new URL(`${place}/owner/asked`, location.origin);
    address.searchParams.set("next", next);
    const answer = await fetch(address);
    if (answer.status !== 200 || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const question = page.querySelector("[data-asked]");
    if (!question || questions().some((one) => one.dataset.asked === next)) return;
    document.querySelector("main").prepend(question);
    questions().slice(MOST_ASKED).forEach((one) => one.remove());
    document.title = `\u25cf ${question.querySelector("h2").textContent}`;
    question.querySelector("a").addEventListener("click", () => {
      channel.postMessage({ taken: next });
      setTimeout(() => forget(next), 0);
    });
    channel.postMessage({ asked: next });
  }

  channel.addEventListener("message", ({ data }) => {
    if (typeof data?.next === "string") ask(data.next).catch(() => {}); // it waits under Overview
    if (typeof data?.taken === "string") forget(data.taken);
  });
  if (place) channel.postMessage({ here: true });
}
