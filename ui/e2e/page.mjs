// What every browser test needs: a browser, a phone or a desktop in it, and a watch over what must
// never happen (errors, refused content, requests to elsewhere).
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { execFile } from "node:child_process";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** Enough for a busy machine; every wait is for something that is seen. */
export const PATIENCE_MS = 60_000;

export const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
export const DESKTOP = { viewport: { width: 1440, height: 900 } };

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  headless: true,
  // Tests run as root, in a network namespace of their own.
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP rebind.example 127.0.0.1"],
});

const problems = [];

export function fail(text) {
  problems.push(text);
}

/** A person with a device: a browser context of its own, which has no cookie yet. */
export async function device(options) {
  const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
  context.setDefaultTimeout(PATIENCE_MS);
  return context;
}

/** A page under watch. */
export async function watched(context) {
  const page = await context.newPage();
  page.on("pageerror", (error) => fail(`an error in the page: ${error.stack}`));
  page.on("console", (message) => {
    // Refusals are answers here: the browser writes each 4xx to its console.
    if (message.type() === "error" && !/Failed to load resource|WebSocket connection/.test(message.text())) fail(`the console: ${message.text()}`);
  });
  await page.addInitScript(() => {
    globalThis.__refused = [];
    addEventListener("securitypolicyviolation", (event) => globalThis.__refused.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  return page;
}

/** Nothing was refused by the policy, nothing of an agent ran. */
export async function unharmed(page) {
  const found = await page.evaluate(() => ({ refused: globalThis.__refused, owned: globalThis.__owned ?? null }));
  if (found.refused.length > 0) fail(`refused by the policy: ${found.refused.join("; ")}`);
  if (found.owned !== null) fail(`a script of a text ran: ${found.owned}`);
}

/** By the link `box ui` prints. */
export async function pair(page, link) {
  await page.goto(link);
  await page.waitForSelector("[data-screen=home][data-loaded=true]");
  const address = new URL(page.url());
  check(address.hash === "" && address.pathname === "/", `the code stays in the address: ${page.url()}`);
}

export function check(holds, otherwise) {
  if (!holds) throw new Error(otherwise);
}

/** No violation, nothing wider than the screen. */
export async function looksRight(page, name) {
  await page.evaluate(AXE);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    const { violations } = await page.evaluate((rules) => globalThis.axe.run({ runOnly: rules }), RULES);
    for (const violation of violations) {
      const where = violation.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)}: ${node.failureSummary}`);
      fail(`${name}, ${scheme}: ${violation.id}\n  ${where.join("\n  ")}`);
    }
    if (process.env.BOX_TEST_SHOTS) {
      const { width } = page.viewportSize();
      await page.screenshot({ path: `${process.env.BOX_TEST_SHOTS}/${name}-${width}-${scheme}.png` });
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: "reduce" });
  const wide = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const scrolls = (element) => element.closest("pre, .bleed, [class*=overflow-x-auto], [class*=truncate], [class*=sr-only]");
    const over = [...document.querySelectorAll("#page *")].filter((element) => element.getBoundingClientRect().right > width + 1 && !scrolls(element));
    return over.slice(0, 3).map((element) => element.outerHTML.slice(0, 200));
  });
  if (wide.length > 0) fail(`${name}: wider than the screen: ${wide.join("\n  ")}`);
  const small = await page.evaluate(() => {
    const least = 44;
    const targets = [...document.querySelectorAll("#page button, #page summary, #page a[data-inside]")].filter((element) => element.checkVisibility());
    return targets
      .filter((element) => {
        const { height, width } = element.getBoundingClientRect();
        // Links in running text are as high as their line; a round button answers to more than it shows.
        return height > 0 && width > 0 && height < least - 0.5 && !element.closest("header p, header .truncate, .prose") && !getComputedStyle(element, "::after").height.startsWith("4");
      })
      .map((element) => element.outerHTML.slice(0, 160));
  });
  if (small.length > 0 && page.viewportSize().width < 500) fail(`${name}: too small for a thumb: ${small.join("\n  ")}`);
}

/** The `box` under test, at the host of this test. */
export function box(...words) {
  return new Promise((resolve, reject) => {
    execFile(process.env.BOX_PROGRAM, words, { timeout: PATIENCE_MS }, (error, out, err) => (error ? reject(new Error(`box ${words.join(" ")}: ${err}`)) : resolve(out)));
  });
}

/** Taps an option of the card that asks about this, once the card takes taps. */
export async function answer(page, about, label) {
  const card = page.locator(`[data-about=${about}]`).first();
  const button = card.getByRole("button", { name: label, exact: true });
  await button.waitFor();
  // Dead for a moment after it appeared or moved: tapped until it was taken.
  for (const until = Date.now() + PATIENCE_MS; Date.now() < until; ) {
    await button.click({ timeout: 2_000 }).catch(() => undefined);
    const taken = await card.getByText("Answer is on its way").or(card.getByRole("alert")).first().isVisible().catch(() => true);
    if (taken || !(await button.isVisible())) return;
  }
  throw new Error(`the card about ${about} took no answer`);
}

/** Runs a scenario; whatever was noted fails it. */
export async function run(scenario) {
  try {
    await scenario();
  } catch (error) {
    for (const context of browser.contexts()) {
      for (const page of context.pages()) {
        const text = await page.evaluate(() => document.body.innerText).catch(() => "gone");
        fail(`--- ${page.url()}\n${text}`);
      }
    }
    fail(error.stack);
  }
  await browser.close();
  if (problems.length > 0) {
    console.error(problems.join("\n"));
    process.exitCode = 1;
  }
}
