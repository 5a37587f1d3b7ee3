// Rows of a journal become what a thread shows.
import { describe, expect, it } from "vitest";
import { Fold, changedLines, workInWords } from "../src/thread/fold";
import type { LogUpdate, PageRow } from "../src/wire";

let seq = 0;
const row = (item: Record<string, unknown>): LogUpdate => ({ event: "row", seq: ++seq, at_ms: seq * 1000, text_from: 0, cut: false, ...item }) as unknown as LogUpdate;
const grew = (of: number, from_byte: number, text: string): LogUpdate => ({ event: "grew", seq: of, from_byte, text });
const fold = (...updates: LogUpdate[]): Fold => {
  const made = new Fold();
  for (const update of updates) expect(made.take(update)).toBe(true);
  return made;
};

describe("texts", () => {
  it("grow by bytes, not by characters", () => {
    const first = row({ kind: "text", text: "grü" });
    const made = fold(first, grew(seq, 4, "ß dich 👋"), grew(seq, 4 + 12, "!"));
    expect(made.views).toMatchObject([{ view: "text", text: "grüß dich 👋!", grows: true }]);
  });

  it("take what is told twice once", () => {
    const made = fold(row({ kind: "text", text: "ab" }), grew(seq, 2, "cd"), grew(seq, 2, "cd"), grew(seq, 3, "def"));
    expect(made.views).toMatchObject([{ text: "abcdef" }]);
  });

  it("refuse what leaves a gap", () => {
    const made = fold(row({ kind: "text", text: "ab" }));
    expect(made.take(grew(seq, 3, "x"))).toBe(false);
    expect(made.take(grew(seq + 7, 0, "x"))).toBe(false);
    expect(made.views).toMatchObject([{ text: "ab" }]);
  });

  it("go on where a cut tail begins", () => {
    const made = fold(row({ kind: "text", text: "tail", text_from: 100 }), grew(seq, 104, " goes on"));
    expect(made.views).toMatchObject([{ text: "tail goes on", cut: true }]);
  });
});

describe("work", () => {
  it("is one view with its thoughts and calls, and knows what failed", () => {
    const made = fold(
      row({ kind: "thought", text: "hm" }),
      row({ kind: "tool_call", call: "a", title: "ls", tool: "execute", status: "running" }),
      row({ kind: "tool_call", call: "b", title: "x.rs", tool: "edit", status: "pending" }),
      row({ kind: "tool_update", call: "a", status: "failed" }),
      row({ kind: "text", text: "so" }),
      // After the run has ended, an update still finds its call.
      row({ kind: "tool_update", call: "b", status: "completed", content: [{ type: "diff", path: "x.rs", old_text: "a\n", new_text: "a\nb\n" }] }),
    );
    expect(made.views.map((view) => view.view)).toEqual(["work", "text"]);
    expect(made.call("a")?.status).toBe("failed");
    expect(made.call("b")?.content).toHaveLength(1);
    const work = made.views[0];
    expect(work?.view === "work" && workInWords(work.steps)).toBe("Ran 1 command, edited 1 file");
  });

  it("changes the object of the view it touches and no other", () => {
    const made = fold(row({ kind: "tool_call", call: "a", title: "ls", tool: "execute", status: "running" }), row({ kind: "text", text: "t" }));
    const [work, text] = made.views;
    made.take(row({ kind: "tool_update", call: "a", status: "completed" }));
    expect(made.views[0]).not.toBe(work);
    expect(made.views[1]).toBe(text);
  });
});

it("keeps a decision with who answered it, and a plan in its place", () => {
  const made = fold(
    row({ kind: "prompt", text: "do" }),
    row({ kind: "plan", entries: [{ text: "one", status: "pending" }] }),
    row({ kind: "decision_opened", decision: 7, box_id: "b", about: "permission", title: "rm", options: [{ id: "y", label: "Yes", kind: "allow_once" }], state: { state: "open" } }),
    row({ kind: "plan", entries: [{ text: "one", status: "completed" }] }),
    row({ kind: "decision_closed", decision: 7, state: { state: "answered", option: "y" }, by: "ann", note: null }),
    row({ kind: "turn_ended", outcome: "done", note: null }),
  );
  expect(made.views.map((view) => view.view)).toEqual(["prompt", "plan", "decision", "ended"]);
  expect(made.views[2]).toMatchObject({ state: { state: "answered", option: "y" }, by: "ann" });
  expect(made.plan).toEqual([{ text: "one", status: "completed" }]);
  expect(made.running).toBe(false);
});

it("shows what it does not know as itself", () => {
  const made = fold(row({ kind: "from_the_future", secret: 1 }), row({ kind: "unknown", raw: { sessionUpdate: "hologram" } }), row({ kind: "detail", raw: {} }));
  expect(made.views).toMatchObject([
    { view: "unknown", kind: "from_the_future", raw: { secret: 1 } },
    { view: "unknown", raw: { sessionUpdate: "hologram" } },
  ]);
});

it("is the same with older rows before it as if they had always been there", () => {
  const call = row({ kind: "tool_call", call: "z", title: "ls", tool: "execute", status: "running" });
  const rest = [row({ kind: "tool_update", call: "z", status: "completed" }), row({ kind: "text", text: "a" }), grew(seq, 1, "bc")];
  const late = fold(...rest);
  expect(late.call("z")).toBeUndefined();
  const whole = late.withOlder([call as unknown as PageRow]);
  expect(whole.call("z")?.status).toBe("completed");
  expect(whole.views.at(-1)).toMatchObject({ view: "text", text: "abc" });
  // It goes on growing.
  expect(whole.take(grew(seq, 3, "d"))).toBe(true);
  expect(whole.views.at(-1)).toMatchObject({ text: "abcd" });
});

it("tells lines that changed from those that did not", () => {
  expect(changedLines("a\nb\nc\n", "a\nx\ny\nc\n")).toEqual({ from: 1, gone: ["b"], come: ["x", "y"] });
  expect(changedLines("", "new\n")).toEqual({ from: 0, gone: [], come: ["new"] });
});

it("knows what was cut, what the agent offers, and where a row is shown", () => {
  const fold = new Fold();
  const row = (seq: number, item: Record<string, unknown>) => fold.take({ event: "row", seq, at_ms: seq, text_from: 0, cut: false, ...item } as unknown as LogUpdate);
  row(1, { kind: "detail", raw: { sessionUpdate: "available_commands_update", availableCommands: [{ name: "compact", description: "Make room\nand more" }, { nameless: 1 }] } });
  row(2, { kind: "prompt", text: "go" });
  row(3, { kind: "tool_call", call: "a", title: "cat", tool: "execute", status: "running" });
  row(4, { kind: "text", text: "meanwhile" });
  row(5, { kind: "tool_update", call: "a", status: "completed", cut: true, content: [{ type: "text", text: "head … tail" }] });
  row(6, { kind: "turn_ended", outcome: "done", note: null });
  expect(fold.commands).toEqual([{ name: "compact", about: "Make room", hint: null }]);
  expect(fold.call("a")?.cut).toBe(5);
  // The update of a call is where the call is, not where it came.
  expect(fold.views[fold.viewOf(5)]?.view).toBe("work");
  expect(fold.views[fold.viewOf(4)]?.view).toBe("text");
  expect(fold.views.at(-1)).toMatchObject({ view: "ended", turn: 2 });
  expect(fold.turns).toBe(1);
});
