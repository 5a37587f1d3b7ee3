// The host ends with the page open: the page says so, comes back by itself, and what was asked is
// still asked.
import { PHONE, answer, box, device, pair, run, unharmed, watched } from "./page.mjs";

const [link, thread] = process.argv.slice(2);

await run(async () => {
  const page = await watched(await device(PHONE));
  await pair(page, link);
  await page.goto(new URL(`/t/${thread}`, page.url()).href);
  const card = page.locator("[data-decision]").first();
  await card.waitFor();
  const id = await card.getAttribute("data-decision");
  const about = await card.getAttribute("data-about");
  await page.getByLabel("Prompt").fill("half a thought");

  await box("serve", "--stop");
  await page.waitForSelector("[data-link=reconnecting]");
  // The next command starts a host, at the same port.
  await box("list");
  await page.waitForSelector("[data-link=reconnecting]", { state: "detached" });
  await page.waitForSelector(`[data-decision="${id}"]`);
  const [label] = await card.locator("button[data-kind]").allTextContents();
  await answer(page, about, label);
  await page.waitForFunction((gone) => !document.querySelector(`[data-decision="${gone}"]`), id);
  await page.waitForSelector("[data-view=decision][data-state=answered]");
  const kept = await page.getByLabel("Prompt").inputValue();
  if (kept !== "half a thought") throw new Error(`the draft is gone: ${kept}`);
  await unharmed(page);
});
