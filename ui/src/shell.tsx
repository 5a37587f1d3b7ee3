// The frame round every screen: where one is, how the link stands, and one, two or three panes.
import { useEffect, useReducer } from "react";
import { app } from "./app";
import { keysShown } from "./keys";
import { later } from "./later";
import { type Place, place } from "./router";
import { BoxesScreen } from "./screens/boxes";
import { HomeScreen } from "./screens/home";
import { PairScreen } from "./screens/pair";
import { ThreadLines, sorted } from "./screens/threads";
import { useCell } from "./store";
import { DecisionCard } from "./thread/decision";
import { Icon, type IconName } from "./ui/icons";
import { lookOf } from "./ui/state";
import { clock } from "./ui/time";
import type { ThreadState } from "./wire";

const ThreadScreen = later(async () => (await import("./thread/screen")).ThreadScreen);
const BoxScreen = later(async () => (await import("./screens/box")).BoxScreen);
const NetScreen = later(async () => (await import("./screens/net")).NetScreen);
const NewScreen = later(async () => (await import("./screens/new")).NewScreen);
const SearchScreen = later(async () => (await import("./screens/search")).SearchScreen);
const SettingsScreen = later(async () => (await import("./screens/settings")).SettingsScreen);
const ShareScreen = later(async () => (await import("./screens/share")).ShareScreen);
const TrashScreen = later(async () => (await import("./screens/trash")).TrashScreen);
const TerminalScreen = later(async () => (await import("./screens/terminal")).TerminalScreen);
const UsageScreen = later(async () => (await import("./screens/usage")).UsageScreen);
const KeyMap = later(async () => (await import("./keymap")).KeyMap);

export function Shell({ playground }: { playground: (() => preact.JSX.Element) | null }) {
  const where = useCell(place);
  const standing = useCell(app.link.standing);
  useTitle(where);
  if (where.at === "playground" && playground) {
    const Playground = playground;
    return (
      <main class="h-full">
        <Playground />
      </main>
    );
  }
  if (standing === "signed-out") return <PairScreen />;
  return (
    <div class="flex h-full flex-col">
      <LinkBar />
      <div class="flex min-h-0 flex-1">
        <Side where={where} />
        <main class="min-w-0 flex-1">
          <Screen where={where} />
        </main>
        <Beside where={where} />
      </div>
      {where.at === "thread" ? null : <Tabs where={where} />}
      <Said />
      {useCell(keysShown) ? <KeyMap /> : null}
    </div>
  );
}

function Screen({ where }: { where: Place }) {
  switch (where.at) {
    case "home":
      return <HomeScreen />;
    case "boxes":
      return <BoxesScreen />;
    case "box":
      return <BoxScreen key={where.box} name={where.box} />;
    case "net":
      return <NetScreen key={where.box} name={where.box} />;
    case "terminal":
      return <TerminalScreen key={where.box} name={where.box} />;
    case "usage":
      return <UsageScreen />;
    case "thread":
      return <ThreadScreen key={where.thread} id={where.thread} hit={where.hit} />;
    case "new":
      return <NewScreen key={where.box ?? ""} box={where.box} />;
    case "share":
      return <ShareScreen key={where.id} id={where.id} />;
    case "trash":
      return <TrashScreen />;
    case "search":
      return <SearchScreen />;
    case "settings":
      return <SettingsScreen />;
    case "playground":
    case "nowhere":
      return (
        <div class="grid h-full place-items-center p-6 text-center">
          <div>
            <h1 class="text-xl font-semibold">There is nothing here</h1>
            <a data-inside href="/" class="btn btn-soft mt-4">
              Home
            </a>
          </div>
        </div>
      );
  }
}

const TABS: { href: string; icon: IconName; word: string; at: Place["at"][] }[] = [
  { href: "/", icon: "home", word: "Home", at: ["home"] },
  { href: "/boxes", icon: "boxes", word: "Boxes", at: ["boxes", "box", "net", "terminal", "usage", "trash"] },
  { href: "/new", icon: "plus", word: "New", at: ["new"] },
  { href: "/settings", icon: "gear", word: "Settings", at: ["settings"] },
];

function Tabs({ where }: { where: Place }) {
  const waiting = useCell(app.decisions)?.size ?? 0;
  return (
    <nav aria-label="Screens" class="grid shrink-0 grid-cols-4 border-t border-line/70 bg-surface pb-[env(safe-area-inset-bottom)] md:hidden">
      {TABS.map((tab) => {
        const here = tab.at.includes(where.at);
        return (
          <a key={tab.href} data-inside href={tab.href} aria-current={here ? "page" : undefined} class={`relative flex min-h-14 flex-col items-center justify-center gap-0.5 text-xs font-medium ${here ? "text-accent" : "text-quiet"}`}>
            <Icon name={tab.icon} size={22} />
            {tab.word}
            {tab.href === "/" && waiting > 0 ? <Badge count={waiting} /> : null}
          </a>
        );
      })}
    </nav>
  );
}

function Badge({ count }: { count: number }) {
  return (
    <span class="absolute top-1.5 left-1/2 ml-2 grid min-w-5 place-items-center rounded-full bg-warn px-1 text-[0.6875rem] leading-5 font-semibold text-ground" role="img" aria-label={`${count} waiting for you`}>
      {count}
    </span>
  );
}

/** The list at the left of a desktop. */
function Side({ where }: { where: Place }) {
  const threads = useCell(app.threads);
  const seen = useCell(app.seen);
  const waiting = useCell(app.decisions)?.size ?? 0;
  const all = sorted(threads?.values() ?? [], seen);
  const here = where.at === "thread" ? where.thread : undefined;
  const groups = [
    { title: "Needs you", cards: all.waiting, fresh: false },
    { title: "Parked", cards: all.parked, fresh: false },
    { title: "Running", cards: all.running, fresh: false },
    { title: "Finished", cards: all.finished, fresh: true },
    { title: "Earlier", cards: all.earlier.slice(0, 40), fresh: false },
  ].filter((group) => group.cards.length > 0);
  return (
    <aside class="hidden w-80 shrink-0 flex-col border-r border-line/70 md:flex" aria-label="Threads">
      <nav aria-label="Screens" class="grid gap-0.5 p-3">
        {TABS.map((tab) => {
          const on = tab.at.includes(where.at);
          return (
            <a key={tab.href} data-inside href={tab.href} aria-current={on ? "page" : undefined} class={`relative flex min-h-11 items-center gap-3 rounded-xl px-3 font-medium ${on ? "bg-accent-soft" : "text-quiet hover:text-ink"}`}>
              <Icon name={tab.icon} />
              {tab.word === "New" ? "New box" : tab.word}
              {tab.href === "/" && waiting > 0 ? <span class="ml-auto rounded-full bg-warn px-2 text-sm font-semibold text-ground">{waiting}</span> : null}
            </a>
          );
        })}
      </nav>
      <div class="min-h-0 flex-1 overflow-y-auto px-3 pb-4" tabIndex={0} role="region" aria-label="All threads">
        {groups.map((group) => (
          <div key={group.title} class="mt-3">
            <h2 class="px-1 pb-1.5 text-[0.8125rem] font-semibold text-quiet">{group.title}</h2>
            <ThreadLines cards={group.cards} fresh={group.fresh} here={here} />
          </div>
        ))}
      </div>
    </aside>
  );
}

/** The third pane of a wide desktop: beside a thread, what waits elsewhere and the box it is in. */
function Beside({ where }: { where: Place }) {
  const threads = useCell(app.threads);
  const decisions = useCell(app.decisions);
  if (where.at !== "thread") return null;
  const card = threads?.get(where.thread);
  if (!card) return null;
  const elsewhere = [...(decisions?.values() ?? [])].filter(({ decision }) => (decision.thread ? decision.thread !== where.thread : decision.box_id !== card.box_id));
  return (
    <aside class="hidden w-96 shrink-0 flex-col overflow-y-auto border-l border-line/70 xl:flex" aria-label="Beside the thread" tabIndex={0}>
      {elsewhere.length > 0 ? (
        <div class="grid grid-cols-1 gap-3 p-4 pb-0">
          <h2 class="text-[0.8125rem] font-semibold text-quiet">Needs you elsewhere</h2>
          {elsewhere.map((waiting) => (
            <DecisionCard key={String(waiting.decision.decision)} decision={waiting.decision} box={waiting.name} />
          ))}
        </div>
      ) : null}
      <div class="min-h-0 flex-1">
        <BoxScreen key={card.name} name={card.name} inside />
      </div>
    </aside>
  );
}

const LATE_MS = 3_000;

/** Says that what is shown may be old, once that lasts; and that the host is a newer build. */
function LinkBar() {
  const standing = useCell(app.link.standing);
  const outdated = useCell(app.link.outdated);
  const [late, setLate] = useReducer((_: boolean, next: boolean) => next, false);
  useEffect(() => {
    setLate(false);
    if (standing === "open") return undefined;
    const timer = setTimeout(() => setLate(true), LATE_MS);
    return () => clearTimeout(timer);
  }, [standing]);
  const heard = app.link.heardAt.get();
  if (standing !== "open" && late) {
    return (
      <div role="status" class="shrink-0 bg-warn-soft px-4 py-1.5 text-center text-sm text-warn" data-link="reconnecting">
        Reconnecting… {heard > 0 ? `as of ${clock(heard)}` : ""}
      </div>
    );
  }
  if (!outdated) return null;
  return (
    <div role="status" class="flex shrink-0 items-center justify-center gap-3 bg-accent-soft px-4 text-sm" data-link="outdated">
      The host is a new build.
      <button type="button" class="min-h-11 font-semibold text-accent underline" onClick={() => location.reload()}>
        Load it
      </button>
    </div>
  );
}

const SAID_MS = 8_000;

/** What was done, with a way back while it is shown. */
function Said() {
  const said = useCell(app.said);
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => app.said.set(null), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <div role="status" class="pointer-events-none fixed inset-x-0 bottom-20 z-20 flex justify-center px-4">
      {said ? (
        <div class="rise pointer-events-auto flex max-w-full items-center gap-2 rounded-2xl bg-ink py-1 pr-2 pl-4 text-ground shadow-lg">
          <span class="min-w-0 text-sm [overflow-wrap:anywhere]">{said.text}</span>
          {said.undo ? (
            <button
              type="button"
              class="btn px-3 underline"
              onClick={() => {
                said.undo?.();
                app.said.set(null);
              }}
            >
              Undo
            </button>
          ) : (
            <button type="button" class="btn px-3" aria-label="Close" onClick={() => app.said.set(null)}>
              <Icon name="cross" size={18} />
            </button>
          )}
        </div>
      ) : null}
    </div>
  );
}

/** Title and favicon: the sign of the thread, or of what waits anywhere. */
function useTitle(where: Place): void {
  const threads = useCell(app.threads);
  const decisions = useCell(app.decisions);
  const card = where.at === "thread" ? threads?.get(where.thread) : undefined;
  const waiting = decisions?.size ?? 0;
  const running = [...(threads?.values() ?? [])].some((one) => one.state === "running");
  const state: ThreadState = card?.state ?? (waiting > 0 ? "needs_you" : running ? "running" : "idle");
  const look = lookOf(state);
  const title = card ? `${look.sign} ${card.name} · ${card.title || "Thread"}` : waiting > 0 ? `⚠ ${waiting} · Boxes` : "Boxes";
  useEffect(() => {
    document.title = title;
    document.getElementById("favicon")?.setAttribute("href", `/icon-${look.icon}.svg`);
    const badged = navigator as Navigator & { setAppBadge?: (count: number) => Promise<void> };
    badged.setAppBadge?.(waiting).catch(() => undefined);
  }, [title, look.icon, waiting]);
}
