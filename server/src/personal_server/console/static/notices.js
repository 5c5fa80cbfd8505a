// Notices in this browser, which only scripts can ask for. Without this file the page works as it is.
"use strict";

const form = document.querySelector("form[data-push-key]");

async function subscribed() {
  if (await Notification.requestPermission() !== "granted") throw new Error("not allowed");
  const registration = await navigator.serviceWorker.register(form.dataset.worker);
  await activated(registration);
  const wanted = { userVisibleOnly: true, applicationServerKey: form.dataset.pushKey };
  return (await registration.pushManager.subscribe(wanted)).toJSON();
}

function activated(registration) {
  const worker = registration.active || registration.waiting || registration.installing;
  return new Promise((resolve, reject) => {
    const look = () => {
      if (worker.state === "activated") resolve();
      if (worker.state === "redundant") reject(new Error("replaced"));
    };
    worker.addEventListener("statechange", look);
    look();
  });
}

if (form && "serviceWorker" in navigator && "PushManager" in window) {
  const problem = form.querySelector("[data-push-problem]");
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    try {
      const { endpoint, keys } = await subscribed();
      form.elements.endpoint.value = endpoint;
      form.elements.p256dh.value = keys.p256dh;
      form.elements.auth.value = keys.auth;
    } catch {
      problem.hidden = false;
      return;
    }
    form.submit();
  });
}
