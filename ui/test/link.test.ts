// The link to the host: resumed, watched, and patient with commands.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Link, type Wire } from "../src/link";
import { ThreadStore } from "../src/thread/store";
import type { ClientFrame, ServerFrame } from "../src/wire";

class Fake implements Wire {
  sent: ClientFrame[] = [];
  closed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  send(text: string) {
    this.sent.push(JSON.parse(text) as ClientFrame);
  }
  close() {
    this.closed = true;
  }
  say(frame: unknown) {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  subs() {
    return this.sent.flatMap((frame) => (frame.frame === "sub" ? [frame] : []));
  }
}

let wires: Fake[] = [];
let signedIn = true;
const last = (): Fake => wires.at(-1)!;
const begin = (): Link => {
  const link = new Link({
    connect: () => {
      const wire = new Fake();
      wires.push(wire);
      return wire;
    },
    signedIn: async () => signedIn,
  });
  link.start();
  return link;
};

beforeEach(() => {
  wires = [];
  signedIn = true;
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

const cursor = (seq: number, bytes = 0) => ({ epoch: 1, seq, bytes });
const log = (sub: number, start: string, from: unknown, to: unknown, updates: unknown[] = []) => ({ frame: "log", sub, start, from, to, updates, older: false }) as unknown as ServerFrame;
const text = (seq: number, said: string) => ({ event: "row", seq, at_ms: seq, text_from: 0, cut: false, kind: "text", text: said });

it("subscribes again with the cursor it had, and goes on from there", async () => {
  const link = begin();
  const store = new ThreadStore("t1", link);
  store.follow();
  last().onopen?.();
  const [first] = last().subs();
  expect(first?.topic).toEqual({ topic: "thread", thread: "t1" });
  last().say(log(first!.sub, "tail", cursor(0), cursor(1, 2), [text(1, "ab")]));
  last().onclose?.();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(wires).toHaveLength(2);
  last().onopen?.();
  const [again] = last().subs();
  expect(again?.topic).toEqual({ topic: "thread", thread: "t1", after: cursor(1, 2) });
  last().say(log(again!.sub, "cursor", cursor(1, 2), cursor(1, 4), [{ event: "grew", seq: 1, from_byte: 2, text: "cd" }]));
  expect(store.fold.views).toMatchObject([{ text: "abcd" }]);
});

it("asks for everything anew when a frame does not follow on the one before", () => {
  const link = begin();
  const store = new ThreadStore("t1", link);
  store.follow();
  last().onopen?.();
  const sub = last().subs()[0]!.sub;
  last().say(log(sub, "tail", cursor(0), cursor(1, 1), [text(1, "a")]));
  last().say(log(sub, "cursor", cursor(5), cursor(6), [text(6, "gap")]));
  expect(store.fold.views).toHaveLength(1);
  expect(last().subs().at(-1)?.topic).toEqual({ topic: "thread", thread: "t1" });
  last().say(log(sub, "tail", cursor(0), cursor(6), [text(1, "a"), text(6, "gap")]));
  expect(store.fold.views).toHaveLength(2);
});

it("gives up on a link that is silent, though it looks open", async () => {
  begin();
  last().onopen?.();
  await vi.advanceTimersByTimeAsync(44_000);
  last().say({ frame: "ping", now_ms: 1 });
  await vi.advanceTimersByTimeAsync(44_000);
  expect(wires[0]?.closed).toBe(false);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(wires[0]?.closed).toBe(true);
  expect(wires.length).toBeGreaterThan(1);
});

it("finds out at once after sleep that a link is dead", async () => {
  const link = begin();
  last().onopen?.();
  link.probe();
  expect(last().sent.at(-1)).toEqual({ frame: "ping" });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(wires[0]?.closed).toBe(true);
  expect(wires).toHaveLength(2);
  last().onopen?.();
  link.probe();
  last().say({ frame: "ping", now_ms: 1 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(last().closed).toBe(false);
});

it("sends a command over every connection until it is answered, under one name", async () => {
  const link = begin();
  const answer = link.command({ do: "thread", thread: "t1", act: { act: "prompt", text: "hi" } });
  last().onopen?.();
  last().onclose?.();
  await vi.advanceTimersByTimeAsync(10_000);
  last().onopen?.();
  const sent = wires.flatMap((wire) => wire.sent.flatMap((frame) => (frame.frame === "cmd" ? [frame] : [])));
  expect(sent).toHaveLength(2);
  expect(sent[0]?.cid).toBe(sent[1]?.cid);
  last().say({ frame: "result", cid: sent[0]?.cid });
  expect(await answer).toBeNull();
  last().onclose?.();
  await vi.advanceTimersByTimeAsync(10_000);
  last().onopen?.();
  expect(last().sent.some((frame) => frame.frame === "cmd")).toBe(false);
});

it("stops when the host no longer knows this browser", async () => {
  const link = begin();
  signedIn = false;
  last().onclose?.();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(link.standing.get()).toBe("signed-out");
  expect(wires).toHaveLength(1);
});

it("says when the host has become another build", () => {
  const link = begin();
  last().onopen?.();
  last().say({ frame: "hello", protocol: 1, build: "a", started_at_ms: 1, now_ms: 1 });
  expect(link.outdated.get()).toBe(false);
  last().say({ frame: "hello", protocol: 1, build: "b", started_at_ms: 2, now_ms: 2 });
  expect(link.outdated.get()).toBe(true);
});
