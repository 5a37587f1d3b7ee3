// Begins the page: connects, and shows where one is.
import { render } from "preact";
import { app, remember, remembered } from "./app";
import { followKeyboard } from "./keyboard";
import { keys } from "./keys";
import { sayFront } from "./push/front";
import { hear, worker } from "./push/worker";
import { followLinks, place } from "./router";
import { Shell } from "./shell";
import { followTheme } from "./theme";

/** A file of an older build is gone after an upgrade: the page is loaded anew, once. */
addEventListener("vite:preloadError", (event) => {
  event.preventDefault();
  if (Date.now() - remembered("reloaded", 0) < 60_000) return;
  // A host that is away has taken no file away: the page stays, and asks again later.
  fetch("/healthz", { cache: "no-store" }).then(
    (answer) => {
      if (!answer.ok) return;
      remember("reloaded", Date.now());
      location.reload();
    },
    () => undefined,
  );
});

async function begin(): Promise<void> {
  followTheme();
  followLinks();
  keys();
  const page = document.getElementById("page");
  if (!page) return;
  followKeyboard(page);
  let playground: (() => preact.JSX.Element) | null = null;
  if (place.get().at === "playground") {
    playground = (await import("./screens/playground")).PlaygroundScreen;
    render(<Shell playground={playground} />, page);
    return;
  }
  if (!(await app.signIn())) app.link.standing.set("signed-out");
  else app.link.start();
  render(<Shell playground={null} />, page);
  // What is most likely next, once there is nothing else to do.
  setTimeout(() => void import("./thread/screen").catch(() => undefined), 1_000);
  sayFront(app.link);
  void worker();
  // What broke while nobody looked: later, and not in anybody's way.
  const renew = () => void import("./push/subscribe").then(({ renew }) => renew()).catch(() => undefined);
  setTimeout(renew, 3_000);
  hear((word) => {
    if (word.worker === "renew") renew();
  });
  // After sleep a socket may look open and be dead.
  const probe = () => {
    if (document.visibilityState === "visible") app.link.probe();
  };
  document.addEventListener("visibilitychange", probe);
  for (const name of ["online", "pageshow", "focus"]) addEventListener(name, probe);
}

void begin();
