// A keyboard on the glass: where it lies over the page instead of making it smaller (iOS), the page is made
// as high as what is left. Only while there is one, and never while somebody has zoomed in.

/** What covers less is no keyboard: bars come and go. */
const KEYBOARD_PX_MIN = 120;
const ZOOM_MAX = 1.02;

interface Viewport {
  height: number;
  scale: number;
}

/** How high the page is to be; `null`: as it is by itself. */
export function heightFor(seen: Viewport, inner: number): number | null {
  if (seen.scale > ZOOM_MAX) return null;
  return inner - seen.height > KEYBOARD_PX_MIN ? seen.height : null;
}

/** Holds from now on. */
export function followKeyboard(page: HTMLElement): void {
  const seen = globalThis.visualViewport;
  if (!seen) return;
  const fit = () => {
    const height = heightFor(seen, innerHeight);
    page.style.height = height === null ? "" : `${height}px`;
    // The browser scrolls the text into sight by moving all of the page.
    if (height !== null) scrollTo(0, 0);
  };
  seen.addEventListener("resize", fit);
  seen.addEventListener("scroll", fit);
}
