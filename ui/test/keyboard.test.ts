// The keyboard of a phone.
import { expect, it } from "vitest";
import { heightFor } from "../src/keyboard";

it("makes room for a keyboard, and for nothing else", () => {
  expect(heightFor({ height: 844, scale: 1 }, 844)).toBeNull();
  expect(heightFor({ height: 508, scale: 1 }, 844)).toBe(508);
  // A bar of the browser.
  expect(heightFor({ height: 780, scale: 1 }, 844)).toBeNull();
  // Somebody has zoomed in.
  expect(heightFor({ height: 422, scale: 2 }, 844)).toBeNull();
  // The browser itself has made the page smaller.
  expect(heightFor({ height: 508, scale: 1 }, 508)).toBeNull();
});
