// A thread: what was said and done, what it asks, and where to write.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { app } from "../app";
import { ParkedLine } from "../screens/parked";
import { Refused, ask, inWords } from "../rest";
import { useCell } from "../store";
import { Bar } from "../ui/bar";
import { Icon } from "../ui/icons";
import { Sheet } from "../ui/sheet";
import { Sign, Spinner, lookOf } from "../ui/state";
import { Since, clock } from "../ui/time";
import type { Decision, RestorePoint, ThreadAct, ThreadHead } from "../wire";
import { Composer } from "./composer";
import { DecisionCard } from "./decision";
import type { Fold, View } from "./fold";
import { drop, outbox, send } from "./outbox";
import { useStick } from "./stick";
import type { ThreadStore } from "./store";
import { Chips, Options, Queue } from "./options";
import { mark } from "./mark";
import { PointSheet, fork, usePoints } from "./points";
import { Plan, Prompt, Row } from "./views";
import { InThread, type Within } from "./within";

/** What a search found: a row, and the words it has. */
export interface Hit {
  row: number;
  words: string;
}

export function ThreadScreen({ id, hit }: { id: string; hit: Hit | null }) {
  const store = useMemo(() => app.thread(id), [id]);
  const drawn = useCell(store.drawn);
  const loaded = useCell(store.loaded);
  const gone = useCell(store.gone);
  const head = useCell(store.head);
  const [since] = useState(() => app.seen.get()[id] ?? 0);
  useEffect(() => store.follow(), [store]);
  useEffect(() => {
    app.look(id);
    return () => app.look(id);
  }, [id, drawn === 0]);

  const decisions = useCell(app.decisions);
  // What the box itself waits for, such as a host it may not reach, is no thread's own.
  const ofBox = [...(decisions?.values() ?? [])].map((waiting) => waiting.decision).filter((one) => !one.thread && one.box_id === head?.shown.box_id);
  const asked = [...(head?.open ?? []), ...ofBox];
  const info = head?.shown.info ?? null;
  const fold = store.fold;
  const [point, setPoint] = useState<RestorePoint | null>(null);
  const points = usePoints(head, id, fold.turns);
  const forks = useCallback(() => void fork(id), [id]);
  const canFork = head?.shown.can.fork ?? false;
  const ended = useMemo(() => fold.views.findLast((view) => view.view === "ended")?.key ?? null, [drawn]);
  const within = useMemo<Within>(() => ({ thread: id, box: head?.shown.name ?? null, points, onPoint: setPoint, onFork: canFork ? forks : null, ended }), [id, head?.shown.name, points, canFork, ended]);
  const running = info ? info.state === "running" || info.state === "starting" || info.state === "needs_you" || info.state === "asks" : fold.running;
  return (
    <div class="flex h-full min-h-0 flex-col" data-screen="thread" data-state={info?.state ?? ""}>
      <Bar
        title={info?.title || "Thread"}
        from="/"
        under={
          head ? (
            <>
              <a data-inside href={`/b/${head.shown.name}`} class="truncate underline-offset-2 hover:underline">
                {head.shown.name}
              </a>
              <span>· {info?.agent}</span>
            </>
          ) : null
        }
      >
        {info ? <Sign state={info.state} /> : null}
        {head ? <Options id={id} shown={head.shown} /> : <span class="w-2" />}
      </Bar>
      {gone ? (
        <p role="alert" class="m-4 rounded-xl bg-bad-soft p-4 text-bad">
          {gone.replaceAll("`", "")}
        </p>
      ) : (
        <>
          <NowStrip head={head} fold={fold} running={running} drawn={drawn} />
          <InThread.Provider value={within}>
            <Log key={hit ? `${hit.row}` : ""} store={store} drawn={drawn} loaded={loaded} since={since} id={id} head={head} open={asked.length} running={running} hit={hit} />
          </InThread.Provider>
          {info?.state === "parked" ? <ParkedLine card={info} /> : null}
          <Dock open={asked} fold={fold} />
          <Composer
            thread={id}
            running={running}
            box={head?.shown.name ?? null}
            onSend={(text) => (text.startsWith("!") ? void shell(id, text.slice(1).trim()) : send(id, text))}
            onStop={() => void told(id, { act: "cancel" })}
            onSteer={(text) => void told(id, { act: "steer", text })}
            steers={head?.shown.can.steer ?? false}
            commands={fold.commands}
          >
            {head ? <Chips id={id} shown={head.shown} /> : null}
          </Composer>
          {point && head ? <PointSheet point={point} head={head} onFork={canFork ? forks : null} onClose={() => setPoint(null)} /> : null}
        </>
      )}
      <Announce fold={fold} drawn={drawn} open={asked.length} />
    </div>
  );
}

async function told(thread: string, act: ThreadAct): Promise<void> {
  const problem = await app.act(thread, act);
  if (problem) app.say(inWords(problem));
}

/** A line for the box's own shell: it never reaches the model. Its row comes by the journal. */
async function shell(thread: string, line: string): Promise<void> {
  try {
    await ask("POST", `/threads/${thread}/shell`, { line });
  } catch (error) {
    app.say(error instanceof Refused ? error.message : "The command did not run");
  }
}

interface LogProps {
  store: ThreadStore;
  id: string;
  drawn: number;
  loaded: boolean;
  since: number;
  head: ThreadHead | null;
  open: number;
  running: boolean;
  hit: Hit | null;
}

function Log({ store, id, drawn, loaded, since, head, open, running, hit }: LogProps) {
  const queue = head?.shown.queue ?? [];
  const held = head?.shown.held ?? false;
  const sending = useCell(outbox(id));
  const older = useCell(store.older);
  const { scroller, following, toEnd } = useStick(drawn + sending.length, id, hit === null);
  const list = useRef<VirtualizerHandle>(null);
  const views = store.fold.views;
  const found = useFound(store, loaded, drawn, hit, list);
  const countAtRelease = useRef(0);
  // Who was led elsewhere has not missed what was there already.
  if (following || (hit !== null && countAtRelease.current === 0)) countAtRelease.current = views.length;
  const fresh = views.length - countAtRelease.current;
  const newFrom = useMemo(() => (since > 0 && loaded ? firstAfter(views, since) : null), [loaded]);
  const prepended = useRef(store.prepended);
  const shift = prepended.current !== store.prepended;
  useEffect(() => {
    prepended.current = store.prepended;
  });
  // Its own messages are what somebody who has just sent one wants to see.
  useEffect(() => {
    if (sending.length > 0) toEnd();
  }, [sending.length]);
  return (
    <div class="relative min-h-0 flex-1">
      <div
        ref={scroller}
        class="h-full overflow-y-auto overscroll-contain [overflow-anchor:none]"
        role="log"
        aria-live="off"
        aria-label="Thread"
        tabIndex={0}
        onScroll={(event) => {
          if (event.currentTarget.scrollTop < 600) void store.fetchOlder();
        }}
      >
        <div class="mx-auto w-full max-w-3xl px-4 py-3">
          {older ? <p class="pb-3 text-center text-sm text-quiet">Older messages…</p> : null}
          {!loaded ? <Skeleton /> : null}
          {loaded && views.length === 0 && sending.length === 0 ? <p class="py-16 text-center text-quiet">Nothing was said yet.</p> : null}
          <Virtualizer ref={list} scrollRef={scroller} data={[...views]} shift={shift} bufferSize={400}>
            {(view: View, index: number) => (
              <article key={view.key} class="pb-4" aria-posinset={index + 1} aria-setsize={views.length}>
                {newFrom === view.key ? <NewSince at={since} /> : null}
                {found === view.key ? (
                  <FoundHere words={hit?.words ?? ""}>
                    <Row view={view} found />
                  </FoundHere>
                ) : (
                  <Row view={view} />
                )}
              </article>
            )}
          </Virtualizer>
          <Queue id={id} waiting={queue} held={held} running={running} />
          {sending.map((one) => (
            <div key={one.cid} class="pb-4">
              <Prompt dashed text={one.text} note={one.failed ? <Failed text={one.failed} onDrop={() => drop(id, one.cid)} /> : "being sent…"} />
            </div>
          ))}
          {running && open === 0 && loaded && !busyRow(views) ? (
            <p class="flex items-center gap-2 pb-4 text-[0.9375rem] text-quiet">
              <Spinner /> <span class="pulse">Working</span>
            </p>
          ) : null}
        </div>
      </div>
      {following ? null : (
        <button type="button" class="btn rise absolute bottom-3 left-1/2 -translate-x-1/2 rounded-full bg-raised px-4 text-sm shadow-lg ring-1 ring-line" onClick={toEnd} data-to-end>
          {open > 0 ? <span class="text-warn">⚠</span> : null}
          {fresh > 0 ? `${fresh} new` : "To the end"}
          <Icon name="down" size={16} />
        </button>
      )}
    </div>
  );
}

/** The view a search led to, once it is loaded; the list goes there, once. */
function useFound(store: ThreadStore, loaded: boolean, drawn: number, hit: Hit | null, list: { readonly current: VirtualizerHandle | null }): string | null {
  const gone = useRef(false);
  const [found, setFound] = useState<string | null>(null);
  useEffect(() => {
    // Rows before those that are loaded come page by page, until it is among them.
    if (loaded && hit) void store.fetchUntil(hit.row);
  }, [loaded, hit?.row]);
  useLayoutEffect(() => {
    if (!hit || !loaded || gone.current || !store.has(hit.row)) return;
    const at = store.fold.viewOf(hit.row);
    const view = store.fold.views[at];
    if (!view) return;
    gone.current = true;
    setFound(view.key);
    list.current?.scrollToIndex(at, { align: "center" });
    // Rows are as high as they are only once they were drawn.
    requestAnimationFrame(() => list.current?.scrollToIndex(at, { align: "center" }));
  }, [loaded, drawn, hit?.row]);
  return found;
}

function FoundHere({ words, children }: { words: string; children: ComponentChildren }) {
  const shown = useRef<HTMLDivElement>(null);
  useEffect(() => (shown.current ? mark(shown.current, words) : undefined), [words]);
  return (
    <div ref={shown} class="-mx-2 rounded-xl px-2 py-1 ring-2 ring-accent" data-found>
      {children}
    </div>
  );
}

/** Whether the last row itself shows that something goes on. */
function busyRow(views: View[]): boolean {
  const last = views.at(-1);
  return (last?.view === "work" && last.live) || (last?.view === "text" && last.grows);
}

function firstAfter(views: View[], since: number): string | null {
  const at = views.findIndex((view) => view.at > since);
  return at > 0 ? views[at]!.key : null;
}

function Failed({ text, onDrop }: { text: string; onDrop: () => void }) {
  return (
    <span class="text-bad">
      {text}{" "}
      <button type="button" class="underline" onClick={onDrop}>
        Remove
      </button>
    </span>
  );
}

function NewSince({ at }: { at: number }) {
  return (
    <div class="flex items-center gap-3 pb-3 text-[0.8125rem] font-medium text-accent">
      <span class="h-px flex-1 bg-accent/40" /> new since {clock(at)} <span class="h-px flex-1 bg-accent/40" />
    </div>
  );
}

function Skeleton() {
  return (
    <div class="pulse grid gap-4 py-2" aria-hidden="true">
      <div class="ml-auto h-11 w-2/3 rounded-2xl bg-sunken" />
      <div class="h-4 w-11/12 rounded bg-sunken" />
      <div class="h-4 w-4/5 rounded bg-sunken" />
      <div class="h-4 w-1/2 rounded bg-sunken" />
    </div>
  );
}

/** One line on what goes on now. */
function NowStrip({ head, fold, running, drawn }: { head: ThreadHead | null; fold: Fold; running: boolean; drawn: number }) {
  const [sheet, setSheet] = useState(false);
  const doing = useMemo(() => goingOn(fold.views), [drawn]);
  const plan = fold.plan;
  const done = plan.filter((entry) => entry.status === "completed").length;
  const usage = fold.usage;
  if (!running && plan.length === 0 && !usage && fold.tasks.length === 0) return null;
  const word = head ? lookOf(head.shown.info.state).word : "Running";
  const facts = [
    plan.length > 0 ? `plan ${done}/${plan.length}` : null,
    usage && usage.size > 0 ? `${Math.round((usage.used / usage.size) * 100)} % context` : null,
    usage?.cost ?? null,
    fold.tasks.length > 0 ? `${fold.tasks.length} in the background` : null,
  ].filter(Boolean);
  return (
    <>
      <button type="button" class="mx-3 flex min-h-11 shrink-0 items-center gap-1.5 rounded-xl bg-sunken px-3.5 text-left text-sm text-quiet" onClick={() => setSheet(true)} data-now>
        <span class="min-w-0 flex-1 truncate">
          {running ? (
            <>
              {word} {doing ? <span class="font-mono text-[0.8125rem] text-ink">{doing}</span> : null}
              {fold.since > 0 ? (
                <>
                  {" · "}
                  <Since at={fold.since} />
                </>
              ) : null}
              {facts.length > 0 ? " · " : ""}
            </>
          ) : null}
          {facts.join(" · ")}
        </span>
        <Icon name="chevron" size={16} />
      </button>
      {sheet ? (
        <Sheet title="Plan and usage" onClose={() => setSheet(false)}>
          {plan.length > 0 ? <Plan entries={plan} /> : <p class="text-quiet">The agent has made no plan.</p>}
          {usage ? (
            <p class="mt-4 text-sm text-quiet">
              Context: {usage.used.toLocaleString()} of {usage.size.toLocaleString()} tokens{usage.cost ? ` · ${usage.cost} so far` : ""}
            </p>
          ) : null}
          {fold.mode ? <p class="mt-2 text-sm text-quiet">Mode: {fold.mode}</p> : null}
          {fold.tasks.map((task) => (
            <p key={task.task} class="mt-2 flex items-center gap-2 text-sm">
              <span class="min-w-0 flex-1 [overflow-wrap:anywhere]">
                ◍ {task.title} <span class="text-quiet">since {clock(Number(task.since_ms))}</span>
              </span>
              {head?.shown.can.stop_task ? (
                <button type="button" class="btn btn-soft text-bad" onClick={() => void told(head.shown.info.thread, { act: "stop_task", task: task.task })}>
                  Stop it
                </button>
              ) : null}
            </p>
          ))}
        </Sheet>
      ) : null}
    </>
  );
}

function goingOn(views: View[]): string | null {
  const last = views.findLast((view) => view.view === "work");
  const step = last?.view === "work" ? last.steps.findLast((one) => one.step === "call" && (one.call.status === "running" || one.call.status === "pending")) : undefined;
  return step?.step === "call" ? step.call.title : null;
}

/** What it asks lies above the composer: never over it, and never in the way of reading. */
function Dock({ open, fold }: { open: Decision[]; fold: Fold }) {
  const [folded, setFolded] = useState(false);
  const first = open[0];
  if (!first) return null;
  if (folded) {
    return (
      <button type="button" class="btn mx-3 mt-1 bg-warn-soft text-warn" onClick={() => setFolded(false)}>
        <Icon name="warn" size={18} /> {open.length === 1 ? "It waits for your answer" : `${open.length} answers are waited for`}
      </button>
    );
  }
  return (
    <div class="mx-auto max-h-[62dvh] w-full max-w-3xl shrink-0 overflow-y-auto px-3 pt-1">
      <DecisionCard key={String(first.decision)} decision={first} call={first.call ? fold.call(first.call) : undefined} more={open.length - 1} />
      <button type="button" class="mx-auto block min-h-11 px-4 text-sm text-quiet" onClick={() => setFolded(true)}>
        Later
      </button>
    </div>
  );
}

/** What somebody who does not see the page is told: ends and questions, not every token. */
function Announce({ fold, drawn, open }: { fold: Fold; drawn: number; open: number }) {
  const last = useMemo(() => fold.views.findLast((view) => view.view === "ended"), [drawn]);
  const text = open > 0 ? "An answer is needed" : last?.view === "ended" ? `Turn finished: ${last.outcome}, ${last.digest.files} files changed` : "";
  return (
    <div class="sr-only" role="status" aria-live="polite">
      {text}
    </div>
  );
}
