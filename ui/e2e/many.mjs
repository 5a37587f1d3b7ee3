// Ten tabs of one browser on one thread, one of them on a slow phone, one that loses its network: each shows the card,
// one answer ends it everywhere, and the one that was away misses nothing.
import { DESKTOP, PHONE, answer, check, device, pair, run, unharmed, watched } from "./page.mjs";

const [link, other, thread] = process.argv.slice(2);
const TABS = 10;

await run(async () => {
  const desk = await device(DESKTOP);
  const first = await watched(desk);
  await pair(first, link);
  const path = new URL(`/t/${thread}`, first.url()).href;
  const tabs = [first];
  while (tabs.length < TABS) tabs.push(await watched(desk));
  for (const tab of tabs) await tab.goto(path);

  const phone = await device(PHONE);
  const slow = await watched(phone);
  await pair(slow, other);
  const tools = await phone.newCDPSession(slow);
  await tools.send("Network.enable");
  await tools.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 95_000 });
  await tools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  // A network that is lost takes no leave: sockets look open, and nothing comes.
  let away = false;
  await slow.routeWebSocket(/\/ws$/, (ws) => {
    if (away) return ws.close();
    const host = ws.connectToServer();
    ws.onMessage((text) => (away ? undefined : host.send(text)));
    host.onMessage((text) => (away ? undefined : ws.send(text)));
    return undefined;
  });
  await slow.goto(path);

  const card = first.locator("[data-decision]").first();
  await card.waitFor();
  const id = await card.getAttribute("data-decision");
  for (const tab of [...tabs, slow]) await tab.waitForSelector(`[data-decision="${id}"]`);

  // The phone goes where there is no network, and says that what it shows may be old.
  away = true;
  await phone.setOffline(true);
  await slow.evaluate(() => dispatchEvent(new Event("online")));
  await slow.waitForSelector("[data-link=reconnecting]");
  const about = await card.getAttribute("data-about");
  const [label] = await card.locator("button[data-kind]").allTextContents();
  await answer(tabs[4], about, label);
  for (const tab of tabs) await tab.waitForFunction((gone) => !document.querySelector(`[data-decision="${gone}"]`), id);
  check((await slow.locator(`[data-decision="${id}"]`).count()) > 0, "a page without a network knows the answer");
  away = false;
  await phone.setOffline(false);
  await slow.waitForSelector("[data-link=reconnecting]", { state: "detached" });
  await slow.waitForFunction((gone) => !document.querySelector(`[data-decision="${gone}"]`), id);
  for (const tab of [...tabs, slow]) await unharmed(tab);
});
