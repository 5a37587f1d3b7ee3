// Boxes on a phone: freeze and thaw, a snapshot and the way back to it, a clone, another name, the trash and
// the way out of it. Then the list at home: what runs, what is parked and let go on, what a search finds.
import { DESKTOP, PHONE, box, check, device, looksRight, pair, run, unharmed, watched } from "./page.mjs";

const [link] = process.argv.slice(2);

await run(async () => {
  await box("new", "work");
  const phone = await device(PHONE);
  const page = await watched(phone);
  await pair(page, link);
  await page.goto(new URL("/b/work", page.url()).href);
  const screen = (state) => page.locator(`[data-screen=box][data-state=${state}]`);
  const stand = (word) => page.locator("[data-screen=box] header").getByText(word, { exact: true });
  const tap = (name) => page.locator("[data-controls][data-busy='']").getByRole("button", { name, exact: true }).click();
  await screen("running").waitFor();

  await tap("Freeze");
  await stand("Frozen").waitFor();
  await tap("Thaw");
  await stand("Running").waitFor();

  // What is made after a snapshot is gone once the box went back to it, and there again after that.
  const snapshots = page.locator("[data-snapshot]");
  await page.getByRole("button", { name: "Take a snapshot" }).waitFor();
  const before = await snapshots.count();
  await page.getByRole("button", { name: "Take a snapshot" }).click();
  await snapshots.nth(before).waitFor();
  await box("exec", "work", "--", "sh", "-c", "echo made > made.txt");
  await snapshots.first().click();
  await looksRight(page, "snapshot");
  await page.getByRole("button", { name: "Go back to it" }).click();
  await snapshots.nth(before + 1).waitFor();
  check(!(await box("exec", "work", "--", "ls")).includes("made.txt"), "the box did not go back");
  await snapshots.first().filter({ hasText: "before it went back" }).click();
  await page.getByRole("button", { name: "Go back to it" }).click();
  await snapshots.nth(before + 2).waitFor();
  check((await box("exec", "work", "--", "ls")).includes("made.txt"), "the way back has no way back");

  // An address and a token for one's own client, once.
  await page.getByRole("button", { name: "Let an editor in by ACP" }).click();
  await page.locator("[data-client]").getByText(/^box_token_/).waitFor();
  check(/\/api\/boxes\/.+\/acp$/.test(await page.locator("[data-client] .font-mono").first().innerText()), "no address");
  await looksRight(page, "box-controls");
  await tap("Clone");
  await page.getByRole("dialog").getByLabel("Name").fill("copy");
  await page.getByRole("dialog").getByRole("button", { name: "Clone" }).click();
  await page.waitForURL(/\/b\/copy$/);
  check((await box("exec", "copy", "--", "cat", "made.txt")).trim() === "made", "the clone lacks a file");
  await screen("running").waitFor();
  await tap("Rename");
  await page.getByRole("dialog").getByLabel("Name").fill("other");
  await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
  await page.waitForURL(/\/b\/other$/);
  await tap("Stop");
  await screen("stopped").waitFor();
  await tap("Start");
  await screen("running").waitFor();

  await tap("Remove");
  await page.getByRole("dialog").getByRole("button", { name: /^Remove/ }).click();
  await page.waitForURL(/\/boxes$/);
  await page.getByRole("link", { name: "Trash" }).click();
  const trashed = page.locator("[data-trashed=other]");
  await trashed.waitFor();
  await looksRight(page, "trash");
  await trashed.getByRole("button", { name: "Take back" }).click();
  await page.waitForURL(/\/b\/other$/);
  await screen("stopped").waitFor();
  await unharmed(page);

  await home(await watched(await device({ ...DESKTOP, storageState: await phone.storageState() })));
});

async function home(page) {
  // Without a terminal it ends once it has to ask.
  await box("run", "demo", "count the otters", "--name", "work").catch(() => undefined);
  const list = JSON.parse(await box("info", "work", "--json"));
  const { thread } = list.threads[0];
  await page.goto(new URL("/", link).href);
  await page.locator("[data-screen=home] [data-decision]").first().waitFor();

  // A parked thread says so, and goes on when it is told to.
  await page.goto(new URL(`/t/${thread}`, link).href);
  await page.getByRole("button", { name: "Stop the turn" }).click();
  await page.locator("[data-view=ended]").waitFor();
  await box("park", "work");
  await page.goto(new URL("/", link).href);
  const parked = page.locator(`main [data-parked='${thread}']`);
  await parked.waitFor();
  await looksRight(page, "home-parked");
  await parked.getByRole("button", { name: "Resume now" }).click();
  await parked.waitFor({ state: "detached" });

  // What a search finds opens where it stands, by keys alone.
  await page.keyboard.press("/");
  await page.getByLabel("Search").fill("otters");
  await page.locator("[data-hit]").first().click();
  await page.locator("[data-found]", { hasText: "count the otters" }).waitFor();
  // Tab and favicon say how the thread stands.
  check(/^○ work · /.test(await page.title()), `the title is ${await page.title()}`);
  check((await page.locator("#favicon").getAttribute("href")) === "/icon-idle.svg", "the favicon is not idle's");
  await unharmed(page);
}
