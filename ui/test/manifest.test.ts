// The page can be put on a home screen, and another app can share into it.
// @ts-expect-error: tests run in Node, whose types the page does not have
import { readFileSync, statSync } from "node:fs";
import { expect, it } from "vitest";

const manifest = JSON.parse(readFileSync("public/manifest.webmanifest", "utf8"));
const html = readFileSync("index.html", "utf8");

/** Width and height, as a PNG has them. */
function size(path: string): string {
  const bytes = readFileSync(path);
  expect(bytes.subarray(1, 4).toString()).toBe("PNG");
  return `${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`;
}

it("has every icon it names, in the size it names", () => {
  const purposes = manifest.icons.map((icon: { src: string; sizes: string; purpose: string }) => {
    expect(size(`public${icon.src}`)).toBe(icon.sizes);
    return icon.purpose;
  });
  expect(purposes).toEqual(["any", "any", "maskable"]);
  expect(size("public/icon-180.png")).toBe("180x180");
  for (const icon of ["icon-180", "icon-192", "icon-512", "icon-maskable-512", "badge-96"]) expect(statSync(`public/${icon}.png`).size).toBeLessThan(20_000);
});

it("is installed where a proxy asks for a sign-in too, and on iOS", () => {
  expect(html).toContain('<link rel="manifest" href="/manifest.webmanifest" crossorigin="use-credentials" />');
  expect(html).toContain('rel="apple-touch-icon" href="/icon-180.png"');
  expect(html).toContain('name="apple-mobile-web-app-capable" content="yes"');
  expect([manifest.display, manifest.start_url, manifest.scope]).toEqual(["standalone", "/", "/"]);
});

it("takes texts, links and files of other apps", () => {
  const { action, method, enctype, params } = manifest.share_target;
  expect([action, method, enctype]).toEqual(["/share", "POST", "multipart/form-data"]);
  expect(params.files[0].name).toBe("files");
});
