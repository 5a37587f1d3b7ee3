// Figures of the page, one JSON line each: a thread of 5,000 parts that is opened and streamed into, a connection that
// missed 200 events, and 53 clients of one thread of the real host. `bench cockpit` prints them.
import { PHONE, check, device, pair, run, watched } from "./page.mjs";

const [link, scale] = process.argv.slice(2);
const small = scale === "small";
const PARTS = 5_000;
const MISSED = 200;
const CLIENTS = 53;
const STREAM_MS = small ? 2_000 : 8_000;

const print = (figure) => console.log(JSON.stringify(figure));
const info = { thread: "t", agent: "demo", title: "Long", state: "running", created_at_ms: 1, changed_at_ms: 1, last: "", queued: 0, background: 0, decisions: 0, archived: false };
const shown = { box_id: "b", name: "web", info, options: [], chosen: [], queue: [], held: false, tasks: [], can: { load: false, fork: false, steer: false, stop_task: false, images: false } };
const row = (seq, item) => ({ event: "row", seq, at_ms: seq, text_from: 0, cut: false, ...item });
const part = (seq) => {
  if (seq % 10 === 1) return row(seq, { kind: "prompt", text: `Question ${seq}` });
  if (seq % 10 === 2) return row(seq, { kind: "tool_call", call: `c${seq}`, title: `cargo test ${seq}`, tool: "execute", status: "completed" });
  return row(seq, { kind: "text", text: `Answer **${seq}** with \`code\` and enough words that it takes more than a line on a telephone.` });
};

await run(async () => {
  const context = await device(PHONE);
  const page = await watched(context);
  await pair(page, link);
  const tools = await context.newCDPSession(page);
  if (!small) await tools.send("Emulation.setCPUThrottlingRate", { rate: 4 });

  const rows = Array.from({ length: PARTS }, (_, index) => part(index + 1));
  let seq = PARTS + 1;
  let bytes = 6;
  rows.push(row(seq, { kind: "text", text: "Begin." }));
  let socket;
  let sub;
  let missed = 0;
  await page.routeWebSocket(/\/ws$/, (ws) => {
    socket = ws;
    ws.onMessage((text) => {
      const frame = JSON.parse(text);
      if (frame.frame === "ping") return ws.send(JSON.stringify({ frame: "ping", now_ms: 1 }));
      if (frame.frame !== "sub" || frame.topic.topic !== "thread") return undefined;
      sub = frame.sub;
      const to = { epoch: 1, seq, bytes };
      if (!frame.topic.after) return ws.send(JSON.stringify({ frame: "log", sub, start: "tail", from: { epoch: 1, seq: 0, bytes: 0 }, to, updates: rows, older: false, head: { shown, open: [] } }));
      const updates = Array.from({ length: missed }, (_, index) => row(seq + 1 + index, { kind: "text", text: `Missed ${index + 1}.` }));
      seq += missed;
      bytes = `Missed ${missed}.`.length;
      missed = 0;
      return ws.send(JSON.stringify({ frame: "log", sub, start: "cursor", from: to, to: { epoch: 1, seq, bytes }, updates, older: false }));
    });
    ws.send(JSON.stringify({ frame: "hello", protocol: 1, build: "x", started_at_ms: 1, now_ms: 1 }));
  });
  const heap = async () => {
    await tools.send("HeapProfiler.collectGarbage");
    return (await tools.send("Runtime.getHeapUsage")).usedSize / 1e6;
  };

  const begun = Date.now();
  await page.goto(new URL("/t/t", page.url()).href);
  await page.getByText("Begin.").waitFor();
  print({ what: "open 5,000 parts", value: Date.now() - begun, unit: "ms" });
  print({ what: "elements", value: await page.evaluate(() => document.querySelectorAll("*").length), unit: "" });
  print({ what: "heap", value: await heap(), unit: "MB" });

  await page.evaluate(() => {
    globalThis.__frames = [];
    const tick = (at) => {
      globalThis.__frames.push(at);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  const until = Date.now() + STREAM_MS;
  while (Date.now() < until) {
    const text = "twelve chars";
    const from = { epoch: 1, seq, bytes };
    bytes += text.length;
    socket.send(JSON.stringify({ frame: "log", sub, start: "cursor", from, to: { epoch: 1, seq, bytes }, updates: [{ event: "grew", seq, from_byte: from.bytes, text }], older: false }));
    await new Promise((rest) => setTimeout(rest, 10));
  }
  const frames = await page.evaluate(() => globalThis.__frames);
  const gaps = frames.slice(1).map((at, index) => at - frames[index]);
  print({ what: "streaming", value: (1000 * gaps.length) / (frames.at(-1) - frames[0]), unit: "fps" });
  print({ what: "frames longer than 25 ms", value: (100 * gaps.filter((gap) => gap > 25).length) / gaps.length, unit: "%" });
  print({ what: "heap after streaming", value: await heap(), unit: "MB" });

  missed = MISSED;
  const lost = Date.now();
  await socket.close();
  await page.getByText(`Missed ${MISSED}.`).waitFor();
  print({ what: "reconnect with 200 missed events", value: Date.now() - lost, unit: "ms" });

  // The real host: clients of one thread, each in its own time; all end with the same cursor.
  const own = await watched(context);
  await own.goto(new URL("/settings", page.url()).href);
  const ended = await own.evaluate(
    async ([clients, deadline]) => {
      const proof = localStorage.getItem("boxes:proof");
      const ask = async (path, body) => {
        const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json", "x-box-proof": proof }, body: JSON.stringify(body) });
        return answer.json();
      };
      const begun = performance.now();
      const { thread } = await ask("/api/threads", { agent: "demo", prompt: "go", allow_all: true });
      const follow = () =>
        new Promise((done) => {
          const ws = new WebSocket(`ws://${location.host}/ws`, ["boxes", proof]);
          const got = { frames: 0, to: null };
          ws.onopen = () => ws.send(JSON.stringify({ frame: "sub", sub: 1, topic: { topic: "thread", thread, after: null } }));
          ws.onmessage = ({ data }) => {
            const frame = JSON.parse(data);
            if (frame.frame !== "log") return;
            got.frames += 1;
            got.to = JSON.stringify(frame.to);
            const over = frame.updates.some((update) => update.event === "row" && update.kind === "turn_ended");
            if (over) {
              ws.close();
              done(got);
            }
          };
          setTimeout(() => done(got), deadline);
        });
      const all = await Promise.all(Array.from({ length: clients }, follow));
      return { all, ms: performance.now() - begun };
    },
    [CLIENTS, 90_000],
  );
  const cursors = new Set(ended.all.map((one) => one.to));
  check(cursors.size === 1 && !cursors.has(null), `clients ended at ${[...cursors].join(" ")}`);
  const counts = ended.all.map((one) => one.frames).sort((a, b) => a - b);
  print({ what: "53 clients, one turn", value: ended.ms, unit: "ms" });
  print({ what: "frames a client got, least", value: counts[0], unit: "" });
  print({ what: "frames a client got, most", value: counts.at(-1), unit: "" });
});
