// What a person writes with, at a real box: files after an `@`, attachments by the three ways and through a
// reload, a line for the shell, a queue while a turn runs, Stop; then back to before the turn.
import { PHONE, box, check, device, looksRight, pair, run, unharmed, watched } from "./page.mjs";

const [link] = process.argv.slice(2);
const DOT = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==", "base64");

/** What the host answers this browser. */
const asked = (page, method, path, body) =>
  page.evaluate(
    async ({ method, path, body }) => {
      const headers = { "x-box-proof": localStorage.getItem("boxes:proof"), ...(body ? { "content-type": "application/json" } : {}) };
      const answer = await fetch(`/api${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
      return { status: answer.status, headers: Object.fromEntries(answer.headers), said: await answer.text() };
    },
    { method, path, body },
  );

await run(async () => {
  await box("new", "work");
  await box("exec", "work", "--", "sh", "-c", "mkdir -p src .git && echo x > src/port.rs && echo x > notes.md && echo x > .git/portable && ln -s /etc out");
  const page = await watched(await device(PHONE));
  await pair(page, link);
  await fits(page);
  const begun = JSON.parse((await asked(page, "POST", "/boxes/work/threads", { agent: "demo" })).said);
  await page.goto(new URL(`/t/${begun.thread}`, page.url()).href);
  const area = page.getByLabel("Prompt");

  await files(page, area);
  await attachments(page, area);
  await turn(page, area);
  // This agent offers no commands: asked for, there are none.
  const offered = await asked(page, "GET", `/threads/${begun.thread}/commands`);
  check(offered.status === 200 && offered.said === '{"commands":[]}', `commands: ${offered.status} ${offered.said}`);
  await unharmed(page);
});

/** What is fetched before anything is seen stays within the budget, packed. */
async function fits(page) {
  await page.reload();
  await page.waitForSelector("[data-screen=home][data-loaded=true]");
  const initial = await page.evaluate(() => {
    const named = [...document.querySelectorAll("script[src], link[rel=stylesheet], link[rel=modulepreload]")].map((element) => element.src ?? element.href);
    return performance.getEntriesByType("resource").filter((entry) => named.includes(entry.name)).map((entry) => entry.encodedBodySize);
  });
  const bytes = initial.reduce((sum, one) => sum + one, 0);
  check(initial.length >= 2 && bytes > 10_000, `what is fetched was not seen: ${initial}`);
  // Chromium takes brotli only where a connection is safe; loopback is.
  check(bytes <= 60_000, `the page takes ${bytes} bytes before anything is seen`);
}

async function files(page, area) {
  await area.pressSequentially("look at @po");
  const offers = page.getByRole("listbox", { name: "Files of the box" });
  await offers.getByRole("option", { name: "src/port.rs" }).waitFor();
  // What is kept out of the list, such as `.git`, is not in it: what fits what was typed last is one file.
  await page.waitForFunction(() => document.querySelectorAll("[data-suggest=file] [role=option]").length === 1);
  await looksRight(page, "composer-files");
  await offers.getByRole("option", { name: "src/port.rs" }).click();
  await page.waitForFunction(() => document.querySelector("textarea").value === "look at @src/port.rs ");
  // A link out of the workspace is not followed; the same question finds what is inside.
  const found = async (words) => JSON.parse((await asked(page, "GET", `/boxes/work/workspace?find=${encodeURIComponent(words)}`)).said).files;
  check((await found("notes")).join() === "notes.md", "what is there is not found");
  for (const words of ["passwd", "out/", "../", "/etc/passwd"]) check((await found(words)).length === 0, `${words} leads out of the workspace: ${await found(words)}`);
}

async function attachments(page, area) {
  await page.locator("input[type=file]").setInputFiles([{ name: "shot.png", mimeType: "image/png", buffer: DOT }]);
  await page.locator("[data-attached=there]", { hasText: "shot.png" }).waitFor();
  await page.evaluate(() => {
    const dropped = new DataTransfer();
    dropped.items.add(new File(["<script>window.__owned=1</script>"], "dropped.html", { type: "text/html" }));
    document.querySelector("form[aria-label='Write to the agent']").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: dropped }));
    const pasted = new DataTransfer();
    pasted.setData("text/plain", "a long line\n".repeat(4_000));
    document.querySelector("textarea").dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: pasted }));
  });
  await page.locator("[data-attached=there]", { hasText: "dropped.html" }).waitFor();
  await page.locator("[data-attached=there]", { hasText: "pasted.txt" }).waitFor();
  await looksRight(page, "composer-attached");
  await page.reload();
  await page.locator("[data-attached=there]").nth(2).waitFor();
  check((await area.inputValue()) === "look at @src/port.rs ", "the draft is gone");
  await page.getByRole("button", { name: "Leave out pasted.txt" }).click();
  // As bytes to take away and as nothing else.
  const given = await asked(page, "GET", "/boxes/work/files?name=dropped.html");
  check(given.status === 200 && given.said.includes("__owned"), `not given: ${given.status}`);
  check(given.headers["content-disposition"] === "attachment" && given.headers["content-type"] === "application/octet-stream", `given as ${JSON.stringify(given.headers)}`);
  check((await asked(page, "GET", "/boxes/work/files?name=..%2f..%2fetc%2fpasswd")).status !== 200, "a path leads out");
}

async function turn(page, area) {
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("[data-view=prompt] [data-picture=shown] img").waitFor();
  const card = page.locator("[data-decision]").first();
  await card.waitFor();
  check((await page.locator("[data-attached]").count()) === 0, "the files stay in the composer");
  // It is called after what was said, not after what came with it.
  await page.getByRole("heading", { name: /^look at/ }).first().waitFor();

  // What is written while it works waits, and can be taken back; a line for the shell does not wait.
  await area.fill("and then the docs");
  await page.getByRole("button", { name: "Queue", exact: true }).click();
  const queued = page.locator("[data-queued]");
  await queued.getByText("and then the docs").waitFor();
  await queued.getByRole("button", { name: "Delete" }).click();
  await queued.waitFor({ state: "detached" });
  await area.fill("!cat src/port.rs; echo made > made.txt");
  await page.locator("[data-shell-limits]").waitFor();
  await page.getByRole("button", { name: "Run in the box" }).click();
  await page.locator("[data-view=command]").waitFor();
  await page.getByRole("button", { name: "Stop the turn" }).click();
  await page.locator("[data-view=ended][data-outcome=cancelled]").waitFor();

  // The box as it was before the turn: what was made since is gone, what was said stays.
  check((await box("exec", "work", "--", "cat", "made.txt")).trim() === "made", "the line did not run");
  await page.locator("[data-digest]").getByRole("button", { name: "Undo" }).click();
  await page.getByRole("button", { name: "Put the files back" }).click();
  await page.getByText("are as they were at").waitFor();
  const left = await box("exec", "work", "--", "ls");
  check(!left.includes("made.txt") && left.includes("notes.md"), `after going back: ${left}`);
  await page.locator("[data-view=notice]", { hasText: "again as they were" }).waitFor();
}
