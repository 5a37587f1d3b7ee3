// A thread of 5,000 rows from a host that is played here: it shows what fits the screen, follows its end while
// text comes, and does not take a reader away from what they read. Texts that try to do something do
// nothing, in the playground where each kind of row is.
import { PHONE, check, device, looksRight, pair, run, unharmed, watched } from "./page.mjs";

const [link] = process.argv.slice(2);
const ROWS = 5_000;

const info = { thread: "t", agent: "demo", title: "A long thread", state: "running", created_at_ms: 1, changed_at_ms: 1, last: "", queued: 0, background: 0, decisions: 0, archived: false };
const shown = { box_id: "b", name: "long", info, options: [], chosen: [], queue: [], held: false, tasks: [], can: { load: false, fork: false, steer: false, stop_task: false, images: false } };
const row = (seq, item) => ({ event: "row", seq, at_ms: seq, text_from: 0, cut: false, ...item });
const rows = Array.from({ length: ROWS }, (_, index) => {
  const seq = index + 1;
  if (seq % 10 === 1) return row(seq, { kind: "prompt", text: `Question ${seq}` });
  if (seq % 10 === 2) return row(seq, { kind: "tool_call", call: `c${seq}`, title: `cargo test ${seq}`, tool: "execute", status: "completed" });
  return row(seq, { kind: "text", text: `Answer **${seq}** with \`code\` and enough words that it takes more than a line on a telephone.` });
});
const last = row(ROWS + 1, { kind: "text", text: "It begins." });

await run(async () => {
  const page = await watched(await device(PHONE));
  await pair(page, link);
  let socket;
  let bytes = last.text.length;
  await page.routeWebSocket(/\/ws$/, (ws) => {
    socket = ws;
    ws.onMessage((text) => {
      const frame = JSON.parse(text);
      if (frame.frame !== "sub" || frame.topic.topic !== "thread") return;
      const to = { epoch: 1, seq: ROWS + 1, bytes };
      ws.send(JSON.stringify({ frame: "log", sub: frame.sub, start: "tail", from: { epoch: 1, seq: 0, bytes: 0 }, to, updates: [...rows, last], older: false, head: { shown, open: [] } }));
      socket.sub = frame.sub;
    });
    ws.send(JSON.stringify({ frame: "hello", protocol: 1, build: "x", started_at_ms: 1, now_ms: 1 }));
  });
  const say = (text) => {
    const from = { epoch: 1, seq: ROWS + 1, bytes };
    const update = { event: "grew", seq: ROWS + 1, from_byte: bytes, text };
    bytes += text.length;
    socket.send(JSON.stringify({ frame: "log", sub: socket.sub, start: "cursor", from, to: { ...from, bytes }, updates: [update], older: false }));
  };

  await page.goto(new URL("/t/t", page.url()).href);
  await page.getByText("It begins.").waitFor();
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  check(nodes < 2_000, `${nodes} elements: nothing is virtual`);

  // The end is followed while text comes.
  const log = page.getByRole("log");
  const gap = () => log.evaluate((list) => list.scrollHeight - list.scrollTop - list.clientHeight);
  for (let index = 0; index < 60; index += 1) say(`Sentence ${index} of what is said now.\n\n`);
  await page.getByText("Sentence 59").waitFor();
  await page.waitForFunction(() => {
    const list = document.querySelector("[role=log]");
    return list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  });

  // A reader who goes up by hand stays where they are, and is told what is new.
  await log.hover();
  await page.mouse.wheel(0, -1_500);
  const pill = page.getByRole("button", { name: /new|To the end/ });
  await pill.waitFor();
  const read = await log.evaluate((list) => list.scrollTop);
  for (let index = 60; index < 90; index += 1) say(`Sentence ${index} of what is said now.\n\n`);
  say("The last word.");
  await page.waitForFunction((before) => document.querySelector("[role=log]").scrollHeight > before, (await log.evaluate((list) => list.scrollHeight)) - 1);
  const after = await log.evaluate((list) => list.scrollTop);
  check(Math.abs(after - read) < 200, `the reader was moved from ${read} to ${after}`);
  check((await gap()) > 500, "the list went to its end by itself");
  await pill.click();
  await page.getByText("The last word.").waitFor();
  await pill.waitFor({ state: "detached" });
  await unharmed(page);

  await page.goto(new URL("/playground", page.url()).href);
  await page.waitForSelector("[data-screen=playground] [data-view=unknown]");
  await looksRight(page, "playground");
  check((await page.locator("[data-screen=playground] img, [data-screen=playground] iframe, [data-screen=playground] script").count()) === 0, "an element of a text");
  await unharmed(page);
});
