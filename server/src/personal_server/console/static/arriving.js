// A page that a tab without a sign-in cannot open is named to the tab that has one; no secret goes
// through the channel. Without this file the page says where the request waits.
"use strict";

{
  const main = document.querySelector("main[data-next]");
  const channel = new BroadcastChannel("pdpp-requests");
  const show = (state) => { for (const one of document.querySelectorAll("[data-state]")) one.hidden = one.dataset.state !== state; };

  channel.addEventListener("message", ({ data }) => {
    if (data?.here) channel.postMessage({ next: main.dataset.next });
    if (data?.asked === main.dataset.next) show("asked");
    if (data?.taken === main.dataset.next) show("taken");
  });
  channel.postMessage({ next: main.dataset.next });
}
