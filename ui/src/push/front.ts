// Says to the host what is in front of a person, so that what happens there is told to no device.
import type { Link } from "../link";
import { place } from "../router";

/** The host believes it thrice as long (`FRONT_MS`). */
export const SAY_MS = 10_000;
/** A page that nobody touched for so long is in front of nobody. */
export const IDLE_MS = 300_000;

const TOUCHES = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"] as const;

/** Says it at once whenever it changes, and again and again while it holds. */
export function sayFront(link: Link): () => void {
  let usedAt = Date.now();
  const inFront = () => document.visibilityState === "visible" && document.hasFocus() && Date.now() - usedAt < IDLE_MS;
  const say = () => {
    const where = place.get();
    link.front(where.at === "thread" && inFront() ? where.thread : null);
  };
  const used = () => {
    const wasIdle = Date.now() - usedAt >= IDLE_MS;
    usedAt = Date.now();
    if (wasIdle) say();
  };
  for (const touch of TOUCHES) addEventListener(touch, used, { capture: true, passive: true });
  document.addEventListener("visibilitychange", say);
  for (const name of ["focus", "blur", "pagehide"]) addEventListener(name, say);
  const unwatch = place.watch(say);
  const timer = setInterval(say, SAY_MS);
  say();
  return () => {
    clearInterval(timer);
    unwatch();
    for (const touch of TOUCHES) removeEventListener(touch, used, { capture: true });
    document.removeEventListener("visibilitychange", say);
    for (const name of ["focus", "blur", "pagehide"]) removeEventListener(name, say);
  };
}
