// The page's worker: shows what the host tells while nobody looks, leads back to it, and takes in
// what another app shares. It keeps no file of the page and answers no other request, so that a
// page is never older than its host.
const PLAIN = { title: "Boxes", body: "Something happened", navigate: "/", tag: "boxes" };
/** Shared things that nobody fetched, the oldest go first. */
const SHARED_MAX = 8;
const FILES_MAX = 20;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => event.waitUntil(show(event.data)));

async function show(data) {
  let told = PLAIN;
  try {
    told = { ...PLAIN, ...data.json().notification };
  } catch {
    // Of a newer host, or nothing: something has to be shown all the same.
  }
  await self.registration.showNotification(told.title, {
    body: told.body,
    tag: told.tag,
    renotify: true,
    lang: told.lang,
    dir: told.dir,
    icon: "/icon-192.png",
    badge: "/badge-96.png",
    data: { navigate: told.navigate },
  });
  await tell({ worker: "shown", tag: told.tag });
}

async function pages() {
  return self.clients.matchAll({ type: "window", includeUncontrolled: true });
}

async function tell(word) {
  for (const page of await pages()) page.postMessage(word);
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.navigate ?? "/"));
});

/** In a page that is open, else in a new one; never anywhere but on this page. */
async function open(address) {
  const to = new URL(address, self.location.origin);
  const path = to.origin === self.location.origin ? to.pathname + to.search : "/";
  const [page] = (await pages()).sort((a, b) => Number(b.focused) - Number(a.focused));
  if (!page) {
    await self.clients.openWindow(path);
    return;
  }
  page.postMessage({ worker: "open", path });
  await page.focus().catch(() => undefined);
}

/** The browser has given its subscription up. Only the page can subscribe again: it has the proof. */
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(tell({ worker: "renew" })));

self.addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method === "POST" && origin === self.location.origin && pathname === "/share") event.respondWith(share(event.request));
});

/** What another app shares waits for the page, which asks where it is to go. */
async function share(request) {
  const form = await request.formData();
  const text = ["title", "text", "url"].map((name) => form.get(name)).filter((part) => typeof part === "string" && part !== "");
  const files = form.getAll("files").filter((file) => file instanceof File && file.size > 0);
  const id = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  await keep({ id, at: Date.now(), text: [...new Set(text)].join("\n"), files: files.slice(0, FILES_MAX) });
  return Response.redirect(`/share?shared=${id}`, 303);
}

function database() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("boxes-shared", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore("shared", { keyPath: "id" });
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

async function keep(shared) {
  const tables = await database();
  const change = tables.transaction("shared", "readwrite");
  const store = change.objectStore("shared");
  store.put(shared);
  const all = store.getAll();
  all.onsuccess = () => {
    const old = all.result.sort((a, b) => b.at - a.at).slice(SHARED_MAX);
    for (const one of old) store.delete(one.id);
  };
  await new Promise((done, failed) => {
    change.oncomplete = done;
    change.onerror = change.onabort = () => failed(change.error);
  });
  tables.close();
}
