// Every kind of row is shown as something of its own.
import { render } from "@testing-library/preact";
import { expect, it } from "vitest";
import { PlaygroundScreen } from "../src/screens/playground";
import { parse } from "../src/router";
import { sorted } from "../src/screens/threads";
import type { ThreadInBox } from "../src/wire";

it("shows every kind of row and every kind of card", () => {
  const page = render(<PlaygroundScreen />).container;
  const kinds = new Set([...page.querySelectorAll("[data-view]")].map((row) => row.getAttribute("data-view")));
  expect([...kinds].sort()).toEqual(["command", "decision", "ended", "notice", "plan", "prompt", "text", "unknown", "woke", "work"]);
  const cards = [...page.querySelectorAll("[data-decision]")].map((card) => card.getAttribute("data-about"));
  expect(cards).toEqual(["permission", "question", "network", "permission"]);
  // A failure is seen without opening anything.
  expect(page.textContent).toContain("assertion `left == right` failed");
});

it("finds its places by their addresses", () => {
  expect(parse("/")).toEqual({ at: "home" });
  expect(parse("/t/abc")).toEqual({ at: "thread", thread: "abc", hit: null });
  expect(parse("/t/abc", "?row=17&words=a%20port")).toEqual({ at: "thread", thread: "abc", hit: { row: 17, words: "a port" } });
  expect(parse("/t/abc", "?row=x")).toEqual({ at: "thread", thread: "abc", hit: null });
  expect(parse("/trash")).toEqual({ at: "trash" });
  expect(parse("/b/web/net")).toEqual({ at: "net", box: "web" });
  expect(parse("/new", "?box=web")).toEqual({ at: "new", box: "web" });
  expect(parse("/wp-login.php")).toEqual({ at: "nowhere" });
});

it("sorts threads by what they want of a person", () => {
  const thread = (id: string, state: string, changed_at_ms: number) => ({ thread: id, state, changed_at_ms, created_at_ms: 0 }) as unknown as ThreadInBox;
  const all = sorted([thread("a", "idle", 5), thread("b", "needs_you", 1), thread("c", "running", 2), thread("d", "idle", 9), thread("e", "failed", 7)], { a: 6 });
  expect(all.waiting.map((one) => one.thread)).toEqual(["b"]);
  expect(all.running.map((one) => one.thread)).toEqual(["c"]);
  expect(all.finished.map((one) => one.thread)).toEqual(["d", "e"]);
  expect(all.earlier.map((one) => one.thread)).toEqual(["a"]);
});
