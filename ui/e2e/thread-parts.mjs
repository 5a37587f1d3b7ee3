// What a thread shows and lets a person do, on a phone and on a desktop, at a host that is played here:
// pictures, what was cut, what hides, points to go back to, what a search found, options in their place,
// a queue beside a running turn, work in the background.
import { DESKTOP, PHONE, check, device, looksRight, run, unharmed, watched } from "./page.mjs";
import { numbered, played, shownOf, until } from "./played.mjs";

const [link] = process.argv.slice(2);
const at = (path) => new URL(path, link).href;
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const OPTIONS = [
  { option: "mode", label: "Mode", category: "mode", value: "default", choices: [{ value: "default", label: "Asks" }, { value: "plan", label: "Plans" }] },
  { option: "model", label: "Model", category: "model", value: "opus", choices: [{ value: "opus", label: "Opus" }, { value: "haiku", label: "Haiku" }] },
];
const whole = `${"first\n".repeat(3)}${"middle\n".repeat(3_000)}last\n`;
const cut = "first\n…\nlast\n";
const rows = () =>
  numbered([
    { kind: "detail", raw: { sessionUpdate: "available_commands_update", availableCommands: [{ name: "compact", description: "Make room", input: { hint: "what to keep" } }, { name: "review", description: "Look it over" }] } },
    { kind: "prompt", text: "<attachments>\n- /workspace/.box/attachments/shot.png (image/png, 70 bytes)\n- /workspace/.box/attachments/notes.txt (text/plain, 12 bytes)\n</attachments>\n\nWhat is wrong here?" },
    { kind: "plan", entries: [{ text: "Look at it\u202e", status: "in_progress" }] },
    { kind: "tool_call", call: "1", title: "cat big.log", tool: "execute", status: "completed", cut: true, content: [{ type: "text", text: cut }] },
    { kind: "tool_call", call: "2", title: "Edit a.sh", tool: "edit", status: "completed", content: [{ type: "diff", path: "/workspace/a.sh", old_text: "", new_text: "echo \u2066hidden\u2069\n" }] },
    { kind: "tool_call", call: "3", title: "screenshot", tool: "other", status: "completed", content: [{ type: "other", raw: { type: "content", content: { type: "image", mimeType: "image/png", data: DOT } } }] },
    ...Array.from({ length: 40 }, (_, index) => ({ kind: "text", text: index === 2 ? "Here the needle lies." : `Sentence ${index} with enough words that it takes more than one line on a telephone, twice.` })),
    { kind: "command", command: "printf 'a\u200bb'", output: "ab", exit: 0 },
    { kind: "turn_ended", outcome: "done", note: null },
  ]);
const point = { label: "turn-2", thread: "t", seq: 2, at_ms: 1_790_000_000_000, words: "What is wrong here?", bytes: 10, took_us: 1, undone: false };
const api = () => ({
  "GET /boxes/b/restore-points": { points: [point] },
  "GET /boxes/played/files": { bytes: Buffer.from(DOT, "base64"), type: "application/octet-stream" },
  "GET /threads/t/rows/4": { seq: 4, at_ms: 1, kind: "tool_call", call: "1", title: "cat big.log", tool: "execute", status: "completed", content: [{ type: "text", text: whole }] },
  "POST /boxes/b/snapshots/turn-2/restore": { info: {}, undo: "before-1" },
  "POST /threads/t/act": { ...shownOf({}), info: { ...shownOf({}).info, thread: "t2" } },
});
const head = (fields) => ({ shown: shownOf({ options: OPTIONS, ...fields }), open: [] });

async function phone() {
  const page = await watched(await device(PHONE));
  const host = await played(page, { head: head(), rows: rows(), api: api() });
  await page.goto(at("/t/t"));
  await page.getByText("Sentence 39").waitFor();

  // What was chosen is chosen where one writes, and goes to the host.
  await page.locator("[data-option=model]").selectOption("haiku");
  await until(() => host.commands.some(({ act }) => act?.act === "set" && act.chosen[0].value === "haiku"), "the model was not set");

  // At the end of the turn: back, and a copy. The dot of its prompt leads to the same.
  await looksRight(page, "thread-end");
  await page.locator("[data-digest]").getByRole("button", { name: "Undo" }).click();
  await page.getByRole("dialog").getByText("“What is wrong here?”").waitFor();
  await looksRight(page, "point");
  await page.getByRole("button", { name: "Put the files back" }).click();
  await page.getByText("are as they were at").waitFor();
  await until(() => host.asked.some(({ what }) => what === "POST /boxes/b/snapshots/turn-2/restore"), "nothing was put back");

  // What a search found opens in its place, far above the end, with its words marked.
  await page.goto(at("/t/t?row=9&words=needle"));
  const found = page.locator("[data-found]");
  await found.waitFor();
  await page.waitForFunction(() => {
    const box = document.querySelector("[data-found]").getBoundingClientRect();
    return box.top > 0 && box.bottom < innerHeight;
  });
  check((await found.innerText()).includes("needle"), "the wrong row");
  const marked = await page.evaluate(() => [...(CSS.highlights.get("found") ?? [])].map(String));
  check(marked.join() === "needle", `marked: ${marked}`);
  await looksRight(page, "thread-found");
  await page.getByRole("button", { name: /To the end|new/ }).click();
  await page.getByText("Sentence 39").waitFor();

  await top(page);
  // Pictures: of the person and of the agent, each large on a tap; other files are chips.
  await page.locator('[data-view=prompt] [data-picture=shown] img').waitFor();
  await page.getByRole("button", { name: "notes.txt" }).waitFor();
  await page.getByRole("button", { name: "Show shot.png large" }).click();
  await page.locator("dialog[data-large=whole] img").waitFor();
  await page.getByRole("button", { name: "Zoom in" }).click();
  await page.locator("dialog[data-large=zoomed]").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await page.locator("[data-point=turn-2]").waitFor();
  await looksRight(page, "thread-parts");

  // What hides is seen in a plan, in a difference and in a command.
  await page.locator("[data-view=plan] [data-hidden]").waitFor();
  check((await page.locator("[data-diff] [data-hidden]").count()) === 2, "nothing marked in the difference");
  // A call that was cut says so, and shows all of itself on demand.
  await page.locator("[data-view=work] summary").first().click();
  await page.locator("[data-view=work] summary", { hasText: "cat big.log" }).click();
  await page.locator("[data-cut]").getByRole("button", { name: "Show all of it" }).click();
  await page.waitForFunction(() => document.querySelector("[data-whole=true] pre")?.textContent.includes("middle\nmiddle"));
  await unharmed(page);
}

/** The wheel up to the beginning, as a hand does it. */
async function top(page) {
  const log = page.getByRole("log");
  await log.hover();
  for (let turn = 0; turn < 60 && (await log.evaluate((list) => list.scrollTop)) > 0; turn += 1) {
    await page.mouse.wheel(0, -1_200);
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  }
}

async function desktop() {
  const page = await watched(await device(DESKTOP));
  const running = { info: { state: "running" } };
  const host = await played(page, { head: head(running), rows: [...rows(), ...numbered([{ kind: "prompt", text: "And now?" }]).map((row) => ({ ...row, seq: rows().length + 1 }))], api: api() });
  await page.goto(at("/t/t"));
  await page.getByText("And now?").waitFor();
  const area = page.getByLabel("Prompt");

  // Commands of the agent, by keys.
  await page.keyboard.press("c");
  await area.pressSequentially("/co");
  const offers = page.getByRole("listbox");
  await offers.getByRole("option", { name: /compact/ }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll("[data-suggest=command] [role=option]").length === 1);
  await looksRight(page, "composer-commands");
  await area.press("Enter");
  await page.waitForFunction(() => document.querySelector("textarea").value === "/compact ");

  // While a turn runs there are two ways to say something, and Stop is a third thing.
  await area.fill("Leave the tests as they are.");
  const ways = page.locator("[data-while-running]");
  await ways.getByRole("button", { name: /^Queue/ }).waitFor();
  await looksRight(page, "composer-running");
  await ways.getByRole("button", { name: /^Steer/ }).click();
  await until(() => host.commands.some(({ act }) => act?.act === "steer" && act.text === "Leave the tests as they are."), "nothing was steered");
  await area.fill("Then write the docs.");
  await page.getByRole("button", { name: "Queue", exact: true }).click();
  await until(() => host.commands.some(({ act }) => act?.act === "prompt"), "nothing was queued");
  host.say(null, head({ ...running, queue: [{ queued: 1, text: "Then write the docs.", bytes: 20 }] }));
  const queued = page.locator("[data-queued='1']");
  await queued.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("dialog").getByLabel("Prompt").fill("Then write the docs, briefly.");
  await page.getByRole("button", { name: "Keep" }).click();
  await until(() => host.commands.some(({ act }) => act?.act === "edit" && act.text.endsWith("briefly.")), "nothing was changed");
  await queued.getByRole("button", { name: "Delete" }).click();
  await until(() => host.commands.some(({ act }) => act?.act === "unqueue"), "nothing was taken back");
  check(!host.commands.some(({ act }) => act?.act === "cancel"), "the turn was stopped");
  await page.getByRole("button", { name: "Stop the turn" }).click();
  await until(() => host.commands.some(({ act }) => act?.act === "cancel"), "the turn was not stopped");

  // Work that goes on when the agent has stopped talking leaves the composer as it is (C99).
  host.say({ kind: "turn_ended", outcome: "done", note: null });
  const task = { task: "x", title: "cargo watch", kind: "command", since_ms: Date.now() };
  host.say({ kind: "background", tasks: [task] }, head({ info: { state: "background", background: 1 }, tasks: [task] }));
  await page.locator("[data-screen=thread][data-state=background]").waitFor();
  await area.fill("What does it say?");
  await page.getByRole("button", { name: "Send" }).waitFor();
  check((await page.getByRole("button", { name: "Stop the turn" }).count()) === 0, "Stop without a turn");
  await page.locator("[data-now]").getByText("1 in the background").click();
  await page.getByRole("button", { name: "Stop it" }).click();
  await until(() => host.commands.some(({ act }) => act?.act === "stop_task"), "the task was not stopped");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  host.say({ kind: "woke", summary: "cargo watch ended", status: "completed", said: "12 tests passed" });
  const woke = page.locator("[data-view=woke]");
  await woke.waitFor();
  check(!(await woke.getByText("12 tests passed").isVisible()), "what the task said is not folded");
  await woke.locator("summary").click();
  await woke.getByText("12 tests passed").waitFor();

  // The map of keys, and a copy.
  await page.getByRole("log").click();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Next thread of the list").waitFor();
  await looksRight(page, "keys");
  await page.keyboard.press("Escape");
  await page.locator("[data-digest]").last().getByRole("button", { name: "Fork" }).click();
  await page.waitForURL(/\/t\/t2$/);
  await unharmed(page);
}

await run(async () => {
  await phone();
  await desktop();
});
