// Where the page is, by its address.
import { Cell } from "./store";

export type Place =
  | { at: "home" }
  | { at: "boxes" }
  | { at: "box"; box: string }
  | { at: "net"; box: string }
  | { at: "terminal"; box: string }
  | { at: "usage" }
  | { at: "thread"; thread: string; hit: { row: number; words: string } | null }
  | { at: "new"; box: string | null }
  | { at: "trash" }
  | { at: "share"; id: string }
  | { at: "search" }
  | { at: "settings" }
  | { at: "playground" }
  | { at: "nowhere" };

export function parse(path: string, query = ""): Place {
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  const [first, second, third] = parts;
  switch (first) {
    case undefined:
      return { at: "home" };
    case "boxes":
      return { at: "boxes" };
    case "b":
      if (!second) return { at: "boxes" };
      if (third === "terminal") return { at: "terminal", box: second };
      return third === "net" ? { at: "net", box: second } : { at: "box", box: second };
    case "t":
      return second ? { at: "thread", thread: second, hit: hitOf(query) } : { at: "nowhere" };
    case "new":
      return { at: "new", box: new URLSearchParams(query).get("box") };
    case "share":
      return { at: "share", id: new URLSearchParams(query).get("shared") ?? "" };
    case "trash":
      return { at: "trash" };
    case "usage":
      return { at: "usage" };
    case "search":
      return { at: "search" };
    case "settings":
      return { at: "settings" };
    case "playground":
      return { at: "playground" };
    default:
      return { at: "nowhere" };
  }
}

/** `?row=17&words=port`: what a search found. */
function hitOf(query: string): { row: number; words: string } | null {
  const asked = new URLSearchParams(query);
  const row = Number(asked.get("row"));
  return Number.isSafeInteger(row) && row > 0 ? { row, words: asked.get("words") ?? "" } : null;
}

const here = (): Place => parse(location.pathname, location.search);

export const place = new Cell<Place>(here());

addEventListener("popstate", () => place.set(here()));

export function go(path: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState({ inside: true }, "", path);
  else history.replaceState(history.state, "", path);
  place.set(here());
}

/** Back to where the reader came from; to `otherwise` when they came by a link. */
export function back(otherwise: string): void {
  if ((history.state as { inside?: boolean } | null)?.inside) history.back();
  else go(otherwise, "replace");
}

/** Follows links to the page itself without loading it again. */
export function followLinks(): void {
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.target || link.origin !== location.origin || !link.hasAttribute("data-inside")) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
