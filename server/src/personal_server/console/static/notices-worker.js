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

// Without a domain of its own a server is signed in at a place in the path alone (/~…/owner): the
// page that the notice is about opens at that of a page that is open, else it asks for a sign-in.
async function lead(page) {
  const open = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const paths = open.map((each) => new URL(each.url).pathname);
  const [place] = paths.map((path) => /^\/~[^/]+(?=\/)/.exec(path)?.[0]).filter(Boolean);
  const wanted = (place || "") + page;
  const shown = paths.indexOf(wanted);
  return shown < 0 ? self.clients.openWindow(wanted) : open[shown].focus();
}
