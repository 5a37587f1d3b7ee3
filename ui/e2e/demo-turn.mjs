// A phone is paired, begins a turn of the demo agent, answers what it asks, loads the page anew in
// the middle, and loses nothing.
import { DESKTOP, PHONE, answer, box, check, device, looksRight, pair, run, unharmed, watched } from "./page.mjs";

const [link] = process.argv.slice(2);

await run(async () => {
  const phone = await device(PHONE);
  const page = await watched(phone);
  await pair(page, link);
  await looksRight(page, "home-empty");

  await page.getByRole("link", { name: "New", exact: true }).click();
  await page.getByLabel("Prompt").fill("show me what you can do");
  await page.getByText("Demo", { exact: false }).first().waitFor();
  await looksRight(page, "new");
  await page.getByRole("button", { name: "Begin" }).click();
  await page.waitForSelector("[data-screen=thread]");
  await page.waitForSelector("[data-view=prompt]");

  // The first thing it asks is still asked after the page was loaded anew.
  const first = page.locator("[data-decision]").first();
  await first.waitFor();
  const asked = await first.getAttribute("data-decision");
  await looksRight(page, "thread-asks");
  check((await page.title()).match(/^[⚠?] \S+ · /u), `the title says nothing: ${await page.title()}`);
  const icon = await page.locator("#favicon").getAttribute("href");
  check(/needs|asks/.test(icon), `the favicon says nothing: ${icon}`);
  const said = await page.locator("[data-view]").count();
  await page.reload();
  await page.waitForSelector(`[data-decision="${asked}"]`);
  await page.waitForFunction((count) => document.querySelectorAll("[data-view]").length >= count, Math.min(said, 3));

  // The same card is at home, answerable there.
  await page.getByRole("button", { name: "Back" }).click();
  await page.waitForSelector(`[data-screen=home] [data-decision="${asked}"]`);
  await looksRight(page, "home-asks");
  const about = await page.locator(`[data-decision="${asked}"]`).getAttribute("data-about");
  const yes = (kind) => (kind === "permission" ? /^(Allow|Yes)/ : /^Report an error/);
  await answerAny(page, about, yes);
  await page.waitForFunction((id) => !document.querySelector(`[data-decision="${id}"]`), asked);

  // The rest on the thread itself, until the turn is over.
  await page.locator('main a[href^="/t/"]').first().click();
  await page.waitForSelector("[data-screen=thread]");
  for (;;) {
    const next = page.locator("[data-decision]").first();
    const ended = page.locator("[data-view=ended]");
    await next.or(ended).first().waitFor();
    if (await ended.count()) break;
    const id = await next.getAttribute("data-decision");
    await answerAny(page, await next.getAttribute("data-about"), yes);
    await page.waitForFunction((gone) => !document.querySelector(`[data-decision="${gone}"]`), id);
  }
  check((await page.locator("[data-view=ended]").getAttribute("data-outcome")) === "done", "the turn did not end well");
  await page.waitForSelector("[data-screen=thread][data-state=idle]");
  await looksRight(page, "thread-done");

  // What is typed with `!` runs in the box and is shown; what it prints does nothing here.
  await page.getByLabel("Prompt").fill("!printf '<img src=x onerror=window.__owned=1><script>window.__owned=2</script>'");
  await page.getByRole("button", { name: "Run in the box" }).click();
  const output = page.locator("[data-view=command] pre").last();
  await output.waitFor();
  check((await output.textContent()).includes("<img src=x onerror"), "the output is not shown as it is");
  await unharmed(page);

  const list = JSON.parse(await box("list", "--json"));
  const name = (list.boxes ?? list)[0].name;
  await page.goto(new URL(`/b/${name}`, page.url()).href);
  await page.getByText("Limits held by").waitFor();
  await looksRight(page, "box");
  await page.goto(new URL(`/b/${name}/net`, page.url()).href);
  await page.waitForSelector("[data-verdict]");
  await looksRight(page, "net");
  await page.goto(new URL("/settings", page.url()).href);
  await page.getByText("Paired browsers").waitFor();
  await looksRight(page, "settings");

  // The same on a desktop, with the cookie of the phone.
  const desktop = await device({ ...DESKTOP, storageState: await phone.storageState() });
  const wide = await watched(desktop);
  await wide.goto(new URL("/", page.url()).href);
  await wide.waitForSelector("[data-screen=home][data-loaded=true]");
  await wide.locator("[data-thread]").first().click();
  await wide.waitForSelector("[data-screen=thread] [data-view=ended]");
  await wide.getByText("Limits held by").waitFor();
  await looksRight(wide, "desktop-thread");
  await unharmed(wide);

  // Stopped, and started again.
  await page.goto(new URL(`/b/${name}`, page.url()).href);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.waitForSelector("[data-screen=box][data-state=stopped]");
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^Remove/ }).click();
  await page.getByRole("button", { name: "Undo" }).or(page.getByRole("button", { name: "Remove it all the same" })).first().waitFor();
  const all = page.getByRole("button", { name: "Remove it all the same" });
  if (await all.isVisible()) await all.click();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.waitForSelector("[data-screen=box][data-state=stopped]");
  await unharmed(page);
});

async function answerAny(page, about, yes) {
  const card = page.locator(`[data-about=${about}]`).first();
  const labels = await card.locator("button[data-kind]").allTextContents();
  const label = labels.find((text) => yes(about).test(text)) ?? labels[0];
  await answer(page, about, label);
}
