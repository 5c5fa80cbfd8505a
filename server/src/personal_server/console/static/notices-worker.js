// Shows the notices that this browser gets, and asks nothing of anybody.
"use strict";

self.addEventListener("push", (event) => {
  const { kind, title, text, page } = event.data.json();
  const shown = { body: text, tag: kind, icon: "/icon.svg", data: page };
  event.waitUntil(self.registration.showNotification(title, shown));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(lead(event.notification.data));
});

// A page that is open is signed in; a new one may have to sign in first.
async function lead(page) {
  const open = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  return open.length ? open[0].focus() : self.clients.openWindow(page);
}
