// Two people look at one card: the first answer counts, and the second hears so.
import { DESKTOP, PHONE, answer, device, fail, pair, run, unharmed, watched } from "./page.mjs";

const [link, other, thread] = process.argv.slice(2);

await run(async () => {
  const one = await watched(await device(PHONE));
  const two = await watched(await device(DESKTOP));
  await pair(one, link);
  await pair(two, other);
  const path = new URL(`/t/${thread}`, one.url()).href;
  await one.goto(path);
  await two.goto(path);
  const card = one.locator("[data-decision]").first();
  await card.waitFor();
  const id = await card.getAttribute("data-decision");
  const about = await card.getAttribute("data-about");
  await two.waitForSelector(`[data-decision="${id}"]`);
  const [label] = await card.locator("button[data-kind]").allTextContents();

  await answer(one, about, label);
  await one.waitForFunction((gone) => !document.querySelector(`[data-decision="${gone}"]`), id);
  // On the other device the card goes by itself, and the thread says who answered.
  await two.waitForFunction((gone) => !document.querySelector(`[data-decision="${gone}"]`), id);
  await two.waitForSelector("[data-view=decision][data-state=answered]");
  // And an answer that comes too late is refused, with the reason.
  const late = await two.evaluate(async (decision) => {
    const answered = await fetch(`/api/decisions/${decision}/answer`, { method: "POST", headers: { "content-type": "application/json", "x-box-proof": localStorage.getItem("boxes:proof") }, body: JSON.stringify({ option: "x" }) });
    return { status: answered.status, problem: await answered.json() };
  }, id);
  if (late.status !== 409) fail(`a late answer is answered ${late.status}: ${JSON.stringify(late.problem)}`);
  await unharmed(one);
  await unharmed(two);
});
