// Canned rows: one of every kind, and texts that try what texts of agents should not.
import type { Decision, LogUpdate } from "../wire";

let seq = 0;
const row = (item: Record<string, unknown>): LogUpdate => {
  seq += 1;
  return { event: "row", seq, at_ms: 1_790_000_000_000 + seq * 7_000, text_from: 0, cut: false, ...item } as unknown as LogUpdate;
};

const MARKDOWN = `The suite fails in **two places**; both come from the same cause.

## What I found

1. \`parse_port\` takes \`70000\`
2. the test reads *its own* port back

\`\`\`rust
fn parse_port(text: &str) -> Result<u16, PortError> {
    text.parse().map_err(|_| PortError::NotAPort(text.to_owned()))
}
\`\`\`

| File | Lines | Why |
| --- | --- | --- |
| \`src/port.rs\` | +4 −2 | the bound |
| \`tests/port.rs\` | +9 −0 | a test that fails without it |

> Nothing else reads the port.

- [x] read the code
- [ ] fix it

See [the book](https://doc.rust-lang.org/book/).`;

const HOSTILE = `<img src=x onerror="window.__owned=1"><script>window.__owned=2</script>
[click](javascript:window.__owned=3) ![beacon](https://tracker.example/p.gif) <iframe srcdoc="<script>parent.__owned=4</script>"></iframe>
<svg onload="window.__owned=5"></svg> <a href="data:text/html,<script>1</script>">data</a> [data](data:text/html;base64,PHNjcmlwdD4=)`;

export const CANNED: LogUpdate[] = [
  row({ kind: "prompt", text: "The tests in `tests/port.rs` fail since yesterday. Find out why and fix it." }),
  row({ kind: "thought", text: "First I look at what fails, then at what changed." }),
  row({ kind: "plan", entries: [{ text: "Run the tests", status: "completed" }, { text: "Find the cause", status: "in_progress" }, { text: "Fix it, with a test", status: "pending" }] }),
  row({ kind: "tool_call", call: "1", title: "src/port.rs", tool: "read", status: "completed", content: [{ type: "text", text: "fn parse_port…" }] }),
  row({ kind: "tool_call", call: "2", title: "cargo test --test port", tool: "execute", status: "running" }),
  row({ kind: "tool_update", call: "2", status: "failed", content: [{ type: "text", text: "running 2 tests\ntest reads_back ... FAILED\n\nassertion `left == right` failed\n  left: 4464\n right: 70000" }] }),
  row({ kind: "text", text: MARKDOWN }),
  row({ kind: "tool_call", call: "3", title: "Edit src/port.rs", tool: "edit", status: "completed", content: [{ type: "diff", path: "/workspace/src/port.rs", old_text: "fn parse_port(text: &str) -> u16 {\n    text.parse::<u32>().unwrap() as u16\n}\n", new_text: "fn parse_port(text: &str) -> Result<u16, PortError> {\n    text.parse().map_err(|_| PortError::NotAPort(text.to_owned()))\n}\n" }] }),
  row({ kind: "tool_call", call: "4", title: "an interrupted call", tool: "fetch", status: "interrupted" }),
  row({ kind: "text", text: HOSTILE }),
  row({ kind: "decision_opened", decision: "d1", box_id: "b", about: "permission", title: "git push origin fix-port", options: [{ id: "a", label: "Yes", kind: "allow_once" }], state: { state: "open" } }),
  row({ kind: "decision_closed", decision: "d1", state: { state: "answered", option: "a" }, by: "you", note: null }),
  row({ kind: "command", command: "ls -la", output: "total 8\n-rw-r--r-- 1 agent agent 12 port.rs\n", exit: 0 }),
  row({ kind: "command", command: "sleep 1000", output: "", note: "timed out" }),
  row({ kind: "steered", text: "Leave the other test as it is." }),
  row({ kind: "woke", summary: "Background command “cargo watch” ended", status: "completed", said: "12 tests passed" }),
  row({ kind: "option_set", option: "model", value: "opus" }),
  row({ kind: "notice", text: "The agent was started again." }),
  row({ kind: "unknown", raw: { sessionUpdate: "hologram_update", angle: 12 } }),
  row({ kind: "from_the_future", anything: [1, 2, 3] }),
  row({ kind: "turn_ended", outcome: "done", note: null }),
  row({ kind: "prompt", text: "And now?" }),
  row({ kind: "turn_ended", outcome: "parked", note: "the limit resets at 15:00" }),
];

const decision = (fields: Record<string, unknown>): Decision => ({ box_id: "b", state: { state: "open" }, ...fields }) as unknown as Decision;

export const CANNED_DECISIONS: Decision[] = [
  decision({
    decision: "c1",
    about: "permission",
    title: "cargo test --workspace -- --nocapture && git commit -am 'port: refuse what is none' && git push origin HEAD:box/fix-tests",
    options: [
      { id: "1", label: "Yes", kind: "allow_once" },
      { id: "2", label: "Yes, and don't ask again for cargo test commands in /workspace", kind: "allow_always" },
      { id: "3", label: "No, and tell it what to do differently", kind: "reject_once" },
    ],
  }),
  decision({
    decision: "c2",
    about: "question",
    title: "Which version is to be supported?",
    options: [
      { id: "1", label: "Only the newest", kind: "choice" },
      { id: "2", label: "The last three", kind: "choice" },
    ],
  }),
  decision({
    decision: "c3",
    about: "network",
    title: "npm wants registry.example:443, which this box's list does not have",
    options: [
      { id: "1", label: "Allow once", kind: "allow_once" },
      { id: "2", label: "Allow for this box", kind: "allow_always" },
      { id: "3", label: "Keep refusing", kind: "reject_once" },
    ],
  }),
  decision({ decision: "c4", about: "permission", title: "rm notes.txt \u202etxt.cod\u202c\u200b", options: [{ id: "1", label: "Yes", kind: "allow_once" }, { id: "2", label: "No", kind: "reject_once" }] }),
];
