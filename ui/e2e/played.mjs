// A host that is played here, for what a real one shows only after long work: the page's own files come
// from wherever `link` leads, everything it is told from the scenario.
import { PATIENCE_MS } from "./page.mjs";

/** What a thread is, unless the scenario says otherwise. */
export const CAN = { load: false, fork: true, steer: true, stop_task: true, images: false };

export function shownOf(fields = {}) {
  const info = { thread: "t", agent: "demo", title: "A thread", state: "idle", created_at_ms: 1, changed_at_ms: 1, last: "", queued: 0, background: 0, decisions: 0, archived: false, ...fields.info };
  return { box_id: "b", name: "played", options: [], chosen: [], queue: [], held: false, tasks: [], can: CAN, ...fields, info };
}

/** Rows numbered from one on. */
export function numbered(items) {
  return items.map((item, index) => ({ event: "row", seq: index + 1, at_ms: 1_790_000_000_000 + index * 1_000, text_from: 0, cut: false, ...item }));
}

/** Plays the host for a page. `api` answers what is asked over HTTP: by `METHOD /path`, a value or what makes one.
 * Gives what was sent and the means to say more. */
export async function played(page, { head, rows, api = {}, lists = {} }) {
  const host = { commands: [], asked: [], sub: null, socket: null, seq: rows.length, head, connections: 0, dead: false, missed: [] };
  const bytes = (row) => (row && "text" in row && row.kind === "text" ? row.text.length : 0);
  const cursor = (seq) => ({ epoch: 1, seq, bytes: bytes(rows[seq - 1]) });
  const card = { box_id: "b", name: "played", ...head.shown.info };
  const topics = { boxes: [], threads: [card], decisions: [], ...lists };
  await page.routeWebSocket(/\/ws$/, (socket) => {
    host.socket = socket;
    host.connections += 1;
    // What was missed is there by the time somebody asks again.
    if (host.dead) for (const item of host.missed) append(item);
    host.dead = false;
    host.missed = [];
    socket.onMessage((text) => {
      if (host.dead) return;
      const frame = JSON.parse(text);
      if (frame.frame === "ping") return socket.send(JSON.stringify({ frame: "ping", now_ms: 1 }));
      if (frame.frame === "cmd") {
        host.commands.push(frame.command);
        socket.send(JSON.stringify({ frame: "result", cid: frame.cid }));
        return;
      }
      if (frame.frame !== "sub") return;
      const { topic, after } = frame.topic;
      host.onSub?.(frame);
      if (topic === "thread" && frame.topic.thread !== "t") return other(socket, frame.sub);
      if (topic === "thread") {
        host.sub = frame.sub;
        if (after) return socket.send(JSON.stringify({ frame: "log", sub: frame.sub, start: "cursor", from: after, to: cursor(rows.length), updates: rows.slice(after.seq), older: false, head: host.head }));
        socket.send(JSON.stringify({ frame: "log", sub: frame.sub, start: "tail", from: cursor(0), to: cursor(rows.length), updates: rows.slice(host.from ?? 0), older: (host.from ?? 0) > 0, head: host.head }));
      } else {
        socket.send(JSON.stringify({ frame: topic, sub: frame.sub, whole: true, [topic]: topics[topic] ?? [], gone: [] }));
      }
    });
    socket.send(JSON.stringify({ frame: "hello", protocol: 1, build: "x", started_at_ms: 1, now_ms: 1 }));
  });
  const append = (item) => {
    host.seq += 1;
    rows.push({ event: "row", seq: host.seq, at_ms: Date.now(), text_from: 0, cut: false, ...item });
  };
  /** Another thread, of which there is one row. */
  const other = (socket, sub) => {
    const one = { event: "row", seq: 1, at_ms: 1, text_from: 0, cut: false, kind: "text", text: "Of the other thread." };
    const to = { epoch: 9, seq: 1, bytes: one.text.length };
    socket.send(JSON.stringify({ frame: "log", sub, start: "tail", from: { epoch: 9, seq: 0, bytes: 0 }, to, updates: [one], older: false, head: { shown: shownOf({ info: { thread: "u" } }), open: [] } }));
    /** An update of the first thread that comes late, then one of this. */
    host.late = () => {
      append({ kind: "text", text: "Late." });
      socket.send(JSON.stringify({ frame: "log", sub: host.sub, start: "cursor", from: cursor(host.seq - 1), to: cursor(host.seq), updates: [rows.at(-1)], older: false }));
      const two = { ...one, seq: 2, text: "Of the other thread, too." };
      socket.send(JSON.stringify({ frame: "log", sub, start: "cursor", from: to, to: { epoch: 9, seq: 2, bytes: two.text.length }, updates: [two], older: false }));
    };
  };
  /** Another row at the end, or another head. */
  host.say = (item, head = null) => {
    const from = cursor(host.seq);
    if (item) append(item);
    if (head) host.head = head;
    const to = cursor(host.seq);
    host.socket.send(JSON.stringify({ frame: "log", sub: host.sub, start: "cursor", from, to, updates: item ? [rows.at(-1)] : [], older: false, ...(head ? { head } : {}) }));
  };
  const answers = { "GET /me": { owner: "you", tier: "owner", build: "x", sign_in: "s" }, "GET /agents": { agents: [] }, "GET /boxes/b/restore-points": { points: [] }, ...api };
  await page.route(/\/api\//, async (route) => {
    const request = route.request();
    const url = new URL(request.url());
    const what = `${request.method()} ${url.pathname.slice(4)}`;
    const body = /json/.test(request.headers()["content-type"] ?? "") ? request.postDataJSON() : null;
    host.asked.push({ what, query: url.searchParams, body });
    const answer = answers[what];
    if (answer === undefined) return route.fulfill({ status: 404, json: { type: "unknown", kind: "failed", title: `nobody plays ${what}` } });
    const said = typeof answer === "function" ? answer({ query: url.searchParams, body }) : answer;
    return Buffer.isBuffer(said?.bytes) ? route.fulfill({ status: 200, contentType: said.type, body: said.bytes }) : route.fulfill({ json: said });
  });
  return host;
}

/** Until the page has told this host something: what it sends takes its way. */
export async function until(holds, otherwise) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; ) {
    if (holds()) return;
    await new Promise((next) => setTimeout(next, 20));
  }
  throw new Error(otherwise);
}
