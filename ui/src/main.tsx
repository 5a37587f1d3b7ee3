// Begins the page: connects, and shows where one is.
import { render } from "preact";
import { app, remember, remembered } from "./app";
import { followLinks, place } from "./router";
import { Shell, keys } from "./shell";
import { followTheme } from "./theme";

/** A file of an older build is gone after an upgrade: the page is loaded anew, once. */
addEventListener("vite:preloadError", (event) => {
  event.preventDefault();
  if (Date.now() - remembered("reloaded", 0) < 60_000) return;
  remember("reloaded", Date.now());
  location.reload();
});

async function begin(): Promise<void> {
  followTheme();
  followLinks();
  keys();
  const page = document.getElementById("page");
  if (!page) return;
  let playground: (() => preact.JSX.Element) | null = null;
  if (place.get().at === "playground") {
    playground = (await import("./screens/playground")).PlaygroundScreen;
    render(<Shell playground={playground} />, page);
    return;
  }
  if (!(await app.signIn())) app.link.standing.set("signed-out");
  else app.link.start();
  render(<Shell playground={null} />, page);
  // After sleep a socket may look open and be dead.
  const probe = () => {
    if (document.visibilityState === "visible") app.link.probe();
  };
  document.addEventListener("visibilitychange", probe);
  for (const name of ["online", "pageshow", "focus"]) addEventListener(name, probe);
}

void begin();
