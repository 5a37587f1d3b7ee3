// Follows the end of a list until the reader scrolls away by hand, and again once they are back.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** A scroll so soon after a touch of wheel, finger or key is the reader's. */
const HAND_MS = 400;
const END_PX = 32;
const SCROLLING_KEYS = new Set(["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", " "]);

export interface Stick {
  scroller: { current: HTMLDivElement | null };
  following: boolean;
  toEnd(): void;
}

/** `drawn` changes whenever there may be more to show. `atEnd`: whether it begins there. */
export function useStick(drawn: number, key: string, atEnd = true): Stick {
  const scroller = useRef<HTMLDivElement>(null);
  const sticks = useRef(atEnd);
  const [following, setFollowing] = useState(atEnd);

  const follow = useCallback((yes: boolean) => {
    sticks.current = yes;
    setFollowing(yes);
  }, []);
  const pin = useCallback(() => {
    const list = scroller.current;
    if (list && sticks.current) list.scrollTop = list.scrollHeight;
  }, []);

  useLayoutEffect(() => {
    follow(atEnd);
    pin();
  }, [key]);
  useLayoutEffect(pin, [drawn]);
  useEffect(() => {
    const list = scroller.current;
    if (!list) return undefined;
    let handAt = -HAND_MS;
    let last = list.scrollTop;
    const roomOf = () => list.scrollHeight - list.clientHeight;
    let room = roomOf();
    const hand = (event: Event) => {
      // A tap on something in the list scrolls nothing; the list itself is hit at its scroll bar. Few keys scroll.
      if (event.type === "pointerdown" && event.target !== list) return;
      if (event.type === "keydown" && !SCROLLING_KEYS.has((event as KeyboardEvent).key)) return;
      handAt = performance.now();
    };
    const scrolled = () => {
      const now = performance.now();
      const byHand = now - handAt < HAND_MS;
      // Rolling on after the finger left belongs to it.
      if (byHand) handAt = now;
      // Where there is less to scroll, the browser goes up by itself.
      const shrunk = roomOf() < room - 1;
      const up = !shrunk && list.scrollTop < last - 1;
      last = list.scrollTop;
      room = roomOf();
      // Only going up lets go: measured after growth, the end is far without anybody's doing.
      if (byHand && up) follow(false);
      else if (byHand && list.scrollHeight - list.scrollTop - list.clientHeight < END_PX) follow(true);
    };
    const hands = ["wheel", "touchmove", "keydown", "pointerdown"] as const;
    for (const name of hands) list.addEventListener(name, hand, { passive: true });
    list.addEventListener("scroll", scrolled, { passive: true });
    const grown = new ResizeObserver(pin);
    grown.observe(list);
    for (const child of list.children) grown.observe(child);
    return () => {
      for (const name of hands) list.removeEventListener(name, hand);
      list.removeEventListener("scroll", scrolled);
      grown.disconnect();
    };
  }, [key]);
  const toEnd = useCallback(() => {
    follow(true);
    pin();
  }, []);
  return { scroller, following, toEnd };
}
