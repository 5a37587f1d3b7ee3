// The terminal's link: what is shown is told, a break is healed from where it was, and an end is an end.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TerminalLink, type Wire } from "../src/terminal/link";

class Played implements Wire {
  binaryType = "";
  sent: (string | Uint8Array)[] = [];
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  constructor(readonly path: string) {}
  send(data: string | Uint8Array<ArrayBuffer>): void {
    this.sent.push(data);
  }
  close(): void {}
  says(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  prints(bytes: number): void {
    this.onmessage?.({ data: new Uint8Array(bytes).buffer });
  }
}

let wires: Played[];
let shown: number;
let cleared: number;

function open(): TerminalLink {
  wires = [];
  shown = cleared = 0;
  const screen = {
    write: (bytes: Uint8Array, done: () => void) => {
      shown += bytes.length;
      done();
    },
    clear: () => {
      cleared += 1;
    },
    size: () => ({ rows: 24, columns: 80 }),
  };
  const link = new TerminalLink("web", screen, (path) => {
    const wire = new Played(path);
    wires.push(wire);
    return wire;
  });
  link.open();
  return link;
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("tells what is shown, and is told its size", () => {
  open();
  wires[0]!.says({ frame: "opened", terminal: "x", from: 0 });
  expect(wires[0]!.sent).toEqual([JSON.stringify({ frame: "size", rows: 24, columns: 80 })]);
  wires[0]!.prints(20_000);
  expect(wires[0]!.sent).toHaveLength(1);
  wires[0]!.prints(20_000);
  expect(wires[0]!.sent.at(-1)).toBe(JSON.stringify({ frame: "taken", to: 40_000 }));
});

test("goes on after a break from where it was", () => {
  const link = open();
  wires[0]!.says({ frame: "opened", terminal: "x", from: 0 });
  wires[0]!.prints(100);
  wires[0]!.onclose?.();
  expect(link.standing.get()).toEqual({ at: "connecting" });
  vi.advanceTimersByTime(10_000);
  expect(wires[1]!.path).toContain("terminal=x&from=100");
  wires[1]!.says({ frame: "opened", terminal: "x", from: 100 });
  expect([cleared, shown]).toEqual([0, 100]);
  // From elsewhere: what is on the screen is not what goes on.
  wires[1]!.onclose?.();
  vi.advanceTimersByTime(10_000);
  wires[2]!.says({ frame: "opened", terminal: "x", from: 7 });
  expect(cleared).toBe(1);
});

test("an end is an end, and a terminal that was taken elsewhere is not taken back by itself", () => {
  const link = open();
  wires[0]!.says({ frame: "opened", terminal: "x", from: 0 });
  wires[0]!.says({ frame: "bye", why: "it was opened elsewhere" });
  vi.advanceTimersByTime(60_000);
  expect(wires).toHaveLength(1);
  expect(link.standing.get()).toEqual({ at: "closed", why: "it was opened elsewhere" });
  link.open();
  expect(wires[1]!.path).toContain("terminal=x");
  wires[1]!.says({ frame: "opened", terminal: "x", from: 0 });
  wires[1]!.says({ frame: "ended", code: 7 });
  link.open();
  expect(wires[2]!.path).not.toContain("terminal=x");
});

test("a terminal that cannot be had is not asked for again and again", () => {
  const link = open();
  wires[0]!.onclose?.();
  vi.advanceTimersByTime(60_000);
  wires[1]?.onclose?.();
  vi.advanceTimersByTime(600_000);
  expect(wires.length).toBeLessThan(4);
  expect(link.standing.get().at).toBe("closed");
});
