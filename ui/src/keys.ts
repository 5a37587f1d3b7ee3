// Keys of a keyboard; `?` shows them all (`keymap.tsx`). None of them does anything while somebody types,
// and none answers a card that does not have the focus itself.
import { app } from "./app";
import { go, place } from "./router";
import { sorted } from "./screens/threads";
import { Cell } from "./store";

/** Whether the sheet of all keys is open. */
export const keysShown = new Cell(false);

const PLACES: Record<string, string> = { i: "/", h: "/", b: "/boxes", n: "/new", s: "/settings" };

/** The thread before or after the one that is open, in the order of the list. */
function step(by: 1 | -1): void {
  const all = sorted(app.threads.get()?.values() ?? [], app.seen.get());
  const list = [...all.waiting, ...all.parked, ...all.running, ...all.finished, ...all.earlier];
  const here = place.get();
  const at = here.at === "thread" ? list.findIndex((card) => card.thread === here.thread) : by > 0 ? -1 : list.length;
  const next = list[at + by];
  if (next) go(`/t/${next.thread}`);
}

const focus = (selector: string): void => document.querySelector<HTMLElement>(selector)?.focus();

/** What single keys do, by their name. */
const KEYS: Record<string, () => void> = {
  "?": () => keysShown.set(true),
  "/": () => go("/search"),
  j: () => step(1),
  k: () => step(-1),
  c: () => focus('main textarea[aria-label="Prompt"]'),
  e: () => document.querySelector<HTMLElement>("[data-to-end]")?.click(),
  o: () => focus("main [data-decision]"),
};

/** Listens from now on. */
export function keys(): void {
  let led = false;
  addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement | null;
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || target?.closest?.("input, textarea, select, dialog, [contenteditable]")) return;
    if (led) {
      led = false;
      const to = PLACES[event.key];
      if (to) go(to);
      return;
    }
    led = event.key === "g";
    const does = KEYS[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });
}
