// Follows the end of a list until the reader scrolls away by hand, and again once they are back.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** A scroll so soon after a touch of wheel, finger or key is the reader's. */
const HAND_MS = 400;
const END_PX = 32;

export interface Stick {
  scroller: { current: HTMLDivElement | null };
  following: boolean;
  toEnd(): void;
}

/** `drawn` changes whenever there may be more to show. */
export function useStick(drawn: number, key: string): Stick {
  const scroller = useRef<HTMLDivElement>(null);
  const sticks = useRef(true);
  const [following, setFollowing] = useState(true);

  const follow = useCallback((yes: boolean) => {
    sticks.current = yes;
    setFollowing(yes);
  }, []);
  const pin = useCallback(() => {
    const list = scroller.current;
    if (list && sticks.current) list.scrollTop = list.scrollHeight;
  }, []);

  useLayoutEffect(() => {
    follow(true);
    pin();
  }, [key]);
  useLayoutEffect(pin, [drawn]);
  useEffect(() => {
    const list = scroller.current;
    if (!list) return undefined;
    let handAt = -HAND_MS;
    let last = list.scrollTop;
    const hand = () => {
      handAt = performance.now();
    };
    const scrolled = () => {
      const now = performance.now();
      const byHand = now - handAt < HAND_MS;
      // Rolling on after the finger left belongs to it.
      if (byHand) handAt = now;
      const up = list.scrollTop < last - 1;
      last = list.scrollTop;
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
