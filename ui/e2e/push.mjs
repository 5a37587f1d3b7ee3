// One tap subscribes, another tries it: the message goes from the host to a push service and is
// shown by the page's worker. Chromium subscribes nowhere without the internet, so the subscription
// itself is the test's, and what the push service would hand on is handed to the worker.
import { DESKTOP, PHONE, check, device, looksRight, pair, run, unharmed, watched } from "./page.mjs";

const [link, endpoint, p256dh, auth] = process.argv.slice(2);

await run(async () => {
  const context = await device({ ...PHONE, permissions: ["notifications"] });
  const page = await watched(context);
  await page.addInitScript(
    (keys) => {
      const made = { options: {}, toJSON: () => keys, unsubscribe: async () => true };
      PushManager.prototype.subscribe = async () => made;
      PushManager.prototype.getSubscription = async () => null;
      Object.defineProperty(Notification, "permission", { get: () => "granted" });
      Notification.requestPermission = async () => "granted";
    },
    { endpoint, keys: { p256dh, auth } },
  );
  await pair(page, link);
  await page.goto(new URL("/settings", page.url()).href);
  await page.waitForSelector("[data-push=off]");
  await looksRight(page, "settings-off");
  await page.getByRole("button", { name: "Notify me here" }).click();
  await page.waitForSelector("[data-push=on]");

  const client = await context.newCDPSession(page);
  const registered = new Promise((done) => {
    client.on("ServiceWorker.workerRegistrationUpdated", ({ registrations: [one] }) => one && done(one.registrationId));
  });
  await client.send("ServiceWorker.enable");
  const answered = page.waitForResponse((response) => response.url().endsWith("/api/push/test"));
  await page.getByRole("button", { name: "Try it" }).click();
  const { tag, hops } = await (await answered).json();
  check(hops.every((hop) => hop.tint === "good"), JSON.stringify(hops));
  const origin = new URL(page.url()).origin;
  const data = JSON.stringify({ web_push: 8030, notification: { title: "Boxes", body: "It works", tag, navigate: `${origin}/settings` } });
  await client.send("ServiceWorker.deliverPushMessage", { origin, registrationId: await registered, data });
  await page.waitForSelector("[data-hops] li:nth-child(4)");
  const last = await page.locator("[data-hops] li").nth(3).textContent();
  check(last.includes("showed it"), last);
  const shown = await page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications()).map((one) => one.tag));
  check(shown.includes(tag), `shown: ${shown}`);
  await looksRight(page, "settings-on");
  await page.setViewportSize(DESKTOP.viewport);
  await looksRight(page, "settings-on");
  const manifest = await client.send("Page.getAppManifest");
  check(manifest.errors.length === 0, JSON.stringify(manifest.errors));
  const { installabilityErrors } = await client.send("Page.getInstallabilityErrors");
  // A browser of a test keeps nothing, which is the one thing in the way.
  check(installabilityErrors.every(({ errorId }) => errorId === "in-incognito"), JSON.stringify(installabilityErrors));

  await page.getByRole("button", { name: "Turn off" }).first().click();
  await page.waitForSelector("[data-push=off]");
  await unharmed(page);
});
