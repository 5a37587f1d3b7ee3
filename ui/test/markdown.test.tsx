// Texts of agents as elements: nothing in them does anything.
import { render } from "@testing-library/preact";
import { lexer } from "marked";
import { expect, it } from "vitest";
import { Growing, Markdown } from "../src/markdown";
import { CANNED } from "../src/screens/canned";

const shown = (text: string): HTMLElement => render(<Markdown text={text} />).container as HTMLElement;

it("leaves HTML as text and fetches no picture", () => {
  const hostile = CANNED.flatMap((update) => (update.event === "row" && update.kind === "text" && update.text.includes("<img") ? [update.text] : []));
  expect(hostile).toHaveLength(1);
  const page = shown(hostile[0]!);
  expect(page.querySelectorAll("img, script, iframe, svg, style, form, input, object, embed")).toHaveLength(0);
  expect(page.textContent).toContain('<img src=x onerror="window.__owned=1">');
  const links = [...page.querySelectorAll("a")].map((link) => link.getAttribute("href"));
  expect(links).toEqual(["https://tracker.example/p.gif"]);
});

it.each(["javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//elsewhere.example", "/api/sign-out"])("makes no link to %s", (address) => {
  const page = shown(`[click](<${address}>) and [again][r]\n\n[r]: <${address}>`);
  expect(page.querySelector("a")).toBeNull();
  expect(page.textContent).toContain("click");
});

it("opens links elsewhere, without a word about this page", () => {
  const link = shown("[book](https://example.org/x)").querySelector("a");
  expect(link?.getAttribute("rel")).toBe("noreferrer noopener");
  expect(link?.target).toBe("_blank");
});

it("reads a text that grows in pieces as it reads the whole", () => {
  const text = "# One\n\npara *em*\n\n```js\nlet a = 1;\n\nlet b = 2;\n```\n\n1. a\n2. b\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\nend";
  const growing = new Growing();
  let tokens = growing.read("");
  for (let end = 7; end < text.length + 7; end += 7) tokens = growing.read(text.slice(0, end));
  const words = (list: { type: string; raw: string }[]) => list.filter((token) => token.type !== "space").map((token) => [token.type, token.raw.trim()]);
  expect(words(tokens)).toEqual(words(lexer(text)));
});

it("begins headings below the page's own", () => {
  const page = shown("# a\n\n## b\n\n### c");
  expect([...page.querySelectorAll("h1,h2,h3")].map((heading) => heading.tagName)).toEqual(["H2", "H2", "H3"]);
});

it.each([
  ["quotes", "> ".repeat(8_000)],
  ["lists", "* ".repeat(4_000)],
  ["numbers", "1. ".repeat(4_000)],
  ["emphasis", "*a_".repeat(20_000)],
  ["brackets", "[".repeat(30_000)],
])("shows %s without end as they are", (_, bomb) => {
  const page = shown(`first ${bomb}\n\n${bomb}`);
  expect(page.textContent).toContain(bomb.trim().slice(0, 1_000));
  expect(page.querySelectorAll("*").length).toBeLessThan(20);
});

it("still reads what people write", () => {
  const page = shown("> a\n>\n> > b\n\n- 1\n  - 2\n    - 3\n\n------------------------------\n\n*x* and _y_");
  expect([...page.querySelectorAll("blockquote, ul, hr, em")].map((element) => element.tagName)).toEqual(["BLOCKQUOTE", "BLOCKQUOTE", "UL", "UL", "UL", "HR", "EM", "EM"]);
});
