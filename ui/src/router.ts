// Where the page is, by its address.
import { Cell } from "./store";

export type Place =
  | { at: "home" }
  | { at: "boxes" }
  | { at: "box"; box: string }
  | { at: "net"; box: string }
  | { at: "thread"; thread: string }
  | { at: "new"; box: string | null }
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
      return third === "net" ? { at: "net", box: second } : { at: "box", box: second };
    case "t":
      return second ? { at: "thread", thread: second } : { at: "nowhere" };
    case "new":
      return { at: "new", box: new URLSearchParams(query).get("box") };
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
