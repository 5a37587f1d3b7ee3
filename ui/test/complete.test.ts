// What is offered while a person writes.
import { expect, it } from "vitest";
import { fitting, taken, wanted } from "../src/thread/complete";
import { pastedFiles } from "../src/thread/composer";

it("offers commands at the very beginning only, and files at the beginning of a word", () => {
  expect(wanted("/co", 3)).toEqual({ kind: "command", from: 0, to: 3, typed: "co" });
  expect(wanted("see /co", 7)).toBeNull();
  expect(wanted("/compact now", 12)).toBeNull();
  expect(wanted("/etc/passwd", 11)).toBeNull();
  expect(wanted("look at @src/po and", 15)).toEqual({ kind: "file", from: 8, to: 15, typed: "src/po" });
  expect(wanted("(@a", 3)?.typed).toBe("a");
  expect(wanted("me@example.org", 14)).toBeNull();
  expect(wanted("look at @src/po and", 19)).toBeNull();
});

it("offers nothing to the shell", () => {
  expect(wanted("!cat @src", 9)).toBeNull();
  expect(wanted("!/bin/ls", 8)).toBeNull();
});

it("puts what was chosen in its place, once, with a space behind it", () => {
  const want = wanted("look at @po and", 11)!;
  expect(taken("look at @po and", want, "src/port.rs")).toEqual({ text: "look at @src/port.rs and", caret: 21 });
  expect(taken("@po", wanted("@po", 3)!, "a")).toEqual({ text: "@a ", caret: 3 });
  expect(taken("/co", wanted("/co", 3)!, "compact")).toEqual({ text: "/compact ", caret: 9 });
});

it("lists commands that begin with it before those that hold it", () => {
  const named = (name: string) => ({ name, about: "" });
  const all = ["review", "pr-review", "compact", "re"].map(named);
  expect(fitting(all, "re").map((one) => one.name)).toEqual(["review", "re", "pr-review"]);
  expect(fitting(all, "")).toHaveLength(4);
});

it("takes a very long pasted text as a file, a short one as text", () => {
  const pasted = (text: string) => ({ files: [], getData: () => text }) as unknown as DataTransfer;
  expect(pastedFiles(pasted("x".repeat(40_000)))[0]?.name).toBe("pasted.txt");
  expect(pastedFiles(pasted("short"))).toEqual([]);
  expect(pastedFiles(null)).toEqual([]);
});
