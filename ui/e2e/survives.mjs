// What recurs everywhere, each of it here once: a socket that is dead and looks open, a thread that leaks into
// another, what is told twice, a host that is a newer build, a file of the page that is gone, Enter on a phone
// and in an input method, a card that is still there, and nothing lost of what was being written.
import { DESKTOP, PHONE, check, device, looksRight, run, unharmed, watched } from "./page.mjs";
import { numbered, played, shownOf, until } from "./played.mjs";

const [link] = process.argv.slice(2);
const at = (path) => new URL(path, link).href;

await run(async () => {
  await deadSocket();
  await newBuild();
  await goneFile();
  await enter();
  await shared();
});

/** A phone that slept: the socket is open and nobody is there. It is found out on waking, and what was missed comes
 * once. */
async function deadSocket() {
  const page = await watched(await device(PHONE));
  const host = await played(page, { head: { shown: shownOf({}), open: [] }, rows: numbered([{ kind: "text", text: "Before it slept." }]) });
  const follows = [];
  host.onSub = (frame) => follows.push(frame.topic);
  await page.goto(at("/t/t"));
  await page.getByText("Before it slept.").waitFor();
  await page.getByLabel("Prompt").fill("half a thought");
  const before = host.connections;
  host.dead = true;
  host.missed = [{ kind: "text", text: "While it slept." }];
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.getByText("While it slept.").waitFor();
  check(host.connections > before, "nobody connected anew");
  const asked = follows.findLast((topic) => topic.topic === "thread");
  check(asked.after?.seq === 1, `asked from ${JSON.stringify(asked.after)}, not from where it was`);
  check((await page.getByText("While it slept.").count()) === 1, "told twice");
  check((await page.getByLabel("Prompt").inputValue()) === "half a thought", "the draft is gone");

  // Another thread shows nothing of this one, also when its update comes late.
  await page.evaluate(() => history.pushState({}, "", "/t/u") ?? dispatchEvent(new PopStateEvent("popstate")));
  await page.getByText("Of the other thread.").waitFor();
  host.late();
  await page.getByText("Of the other thread, too.").waitFor();
  check((await page.getByText(/slept|Late/).count()) === 0, "a thread leaks into another");
  check((await page.getByLabel("Prompt").inputValue()) === "", "a draft leaks into another thread");
  await unharmed(page);
}

/** The host is another build than the page: it says so, and loading it anew keeps the draft. */
async function newBuild() {
  const page = await watched(await device(DESKTOP));
  const host = await played(page, { head: { shown: shownOf({}), open: [] }, rows: numbered([{ kind: "text", text: "Here." }]) });
  await page.goto(at("/t/t"));
  await page.getByText("Here.").waitFor();
  await page.getByLabel("Prompt").fill("half a thought");
  host.socket.send(JSON.stringify({ frame: "hello", protocol: 1, build: "y", started_at_ms: 2, now_ms: 2 }));
  await page.locator("[data-link=outdated]").getByRole("button", { name: "Load it" }).click();
  await page.getByText("Here.").waitFor();
  await page.locator("[data-link=outdated]").waitFor({ state: "detached" });
  check((await page.getByLabel("Prompt").inputValue()) === "half a thought", "the draft is gone");
}

/** A file of the page that an upgrade took away: the page is loaded anew, once, instead of being blank. */
async function goneFile() {
  const page = await watched(await device(PHONE));
  await played(page, { head: { shown: shownOf({}), open: [] }, rows: numbered([{ kind: "text", text: "Here." }]), api: { "GET /doctor": { findings: [] }, "GET /sign-ins": { sign_ins: [] } } });
  await page.goto(at("/t/t"));
  await page.getByText("Here.").waitFor();
  await page.getByLabel("Prompt").fill("half a thought");
  // While the host itself is away the page stays where it is, and gets the file when the host is back.
  const away = { is: true, loads: 0 };
  for (const path of [/\/assets\/net-.*\.js$/, /\/healthz$/]) await page.route(path, (route) => (away.is ? route.abort() : route.continue()));
  page.on("load", () => (away.loads += 1));
  const asked = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/healthz"));
  await page.evaluate(() => history.pushState({}, "", "/b/played/net") ?? dispatchEvent(new PopStateEvent("popstate")));
  await asked;
  check(away.loads === 0, "the page was loaded anew from a host that is away");
  away.is = false;
  await page.locator("[data-screen=net]").waitFor();
  await page.evaluate(() => localStorage.removeItem("boxes:reloaded"));

  const gone = { count: 0 };
  await page.route(/\/assets\/settings-.*\.js$/, (route) => {
    gone.count += 1;
    return gone.count === 1 ? route.fulfill({ status: 404, body: "" }) : route.continue();
  });
  const loaded = page.waitForEvent("load");
  await page.evaluate(() => history.pushState({}, "", "/settings") ?? dispatchEvent(new PopStateEvent("popstate")));
  await loaded;
  await page.locator("[data-screen=settings]").waitFor();
  check(gone.count === 2, `asked ${gone.count} times`);
  await page.goto(at("/t/t"));
  await page.getByText("Here.").waitFor();
  check((await page.getByLabel("Prompt").inputValue()) === "half a thought", "the draft is gone");
}

/** Enter is a new line on a phone; at a keyboard it sends, but not the one that ends a word of an input method. */
async function enter() {
  for (const [kind, sends] of [[PHONE, false], [DESKTOP, true]]) {
    const page = await watched(await device(kind));
    const host = await played(page, { head: { shown: shownOf({}), open: [] }, rows: numbered([{ kind: "text", text: "Here." }]) });
    await page.goto(at("/t/t"));
    const area = page.getByLabel("Prompt");
    await area.fill("one");
    await area.dispatchEvent("keydown", { key: "Enter", keyCode: 229, isComposing: true, bubbles: true });
    check((await area.inputValue()) === "one" && host.commands.length === 0, "the Enter of an input method sends");
    await area.press("Enter");
    if (sends) await until(() => host.commands.length > 0, "Enter at a keyboard does not send");
    else check((await area.inputValue()) === "one\n", "Enter on a phone is no new line");
    check(host.commands.length === (sends ? 1 : 0), `${host.commands.length} prompts were sent`);
  }
}

/** What another app shares goes to the composer of the thread a person chooses, its files too, and nothing is sent. */
async function shared() {
  const page = await watched(await device(PHONE));
  const there = { path: "/workspace/.box/attachments/photo.png", media_type: "image/png", bytes: 3 };
  const host = await played(page, { head: { shown: shownOf({}), open: [] }, rows: numbered([{ kind: "text", text: "Here." }]), api: { "POST /boxes/played/files": there } });
  await page.goto(at("/"));
  // As the worker puts it aside (`sw.js`).
  const to = await page.evaluate(async () => {
    const asked = indexedDB.open("boxes-shared", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore("shared", { keyPath: "id" });
    const tables = await new Promise((opened) => (asked.onsuccess = () => opened(asked.result)));
    const change = tables.transaction("shared", "readwrite");
    change.objectStore("shared").put({ id: "a1", at: 1, text: "A page\nhttps://example.org/a", files: [new File(["abc"], "photo.png", { type: "image/png" })] });
    await new Promise((done) => (change.oncomplete = done));
    tables.close();
    return new URL("/share?shared=a1", location.href).href;
  });
  await page.goto(to);
  await page.getByText("photo.png").waitFor();
  await looksRight(page, "share");
  await page.locator("[data-share-to=t]").click();
  await page.locator("[data-attached=there]", { hasText: "photo.png" }).waitFor();
  check((await page.getByLabel("Prompt").inputValue()) === "A page\nhttps://example.org/a", `the text: ${await page.getByLabel("Prompt").inputValue()}`);
  check(host.commands.length === 0, "something was sent");
  // It is there once.
  await page.goto(to);
  await page.getByText("Nothing was shared.").waitFor();
}
