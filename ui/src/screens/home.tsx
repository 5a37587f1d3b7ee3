// Home: what needs you, what runs, what finished.
import { app } from "../app";
import { later } from "../later";
import { useCell } from "../store";
import { DecisionCard } from "../thread/decision";
import { Bar, Scroll, Section } from "../ui/bar";
import { Icon } from "../ui/icons";
import type { Waiting } from "../wire";
import { ParkedLine } from "./parked";
import { ThreadLine, ThreadLines, sorted } from "./threads";

const Checklist = later(async () => (await import("../checklist")).Checklist);
const EARLIER_MAX = 20;

export function HomeScreen() {
  const decisions = useCell(app.decisions);
  const threads = useCell(app.threads);
  const seen = useCell(app.seen);
  const waiting = [...(decisions?.values() ?? [])];
  const all = sorted(threads?.values() ?? [], seen);
  const nothing = threads !== null && decisions !== null && threads.size === 0 && waiting.length === 0;
  return (
    <div class="flex h-full flex-col" data-screen="home" data-loaded={threads !== null && decisions !== null}>
      <Bar title="Boxes">
        <a data-inside href="/search" class="btn-icon" aria-label="Search">
          <Icon name="search" />
        </a>
      </Bar>
      <Scroll>
        {nothing ? <Welcome /> : null}
        {nothing ? <Checklist title="What is on" /> : null}
        {waiting.length > 0 ? (
          <Section title="Needs you" count={waiting.length}>
            <div class="grid grid-cols-1 gap-3">
              {waiting.map((one) => (
                <WaitingCard key={String(one.decision.decision)} waiting={one} />
              ))}
            </div>
          </Section>
        ) : nothing || threads === null ? null : (
          <p class="flex items-center gap-2.5 px-1 pt-1 pb-2 text-quiet">
            <Icon name="check" class="text-ok" /> Nothing waits for you.
          </p>
        )}
        {all.parked.length > 0 ? (
          <Section title="Parked" count={all.parked.length}>
            <ul class="card divide-y divide-line/60 overflow-hidden">
              {all.parked.map((card) => (
                <li key={card.thread}>
                  <ThreadLine card={card} />
                  <ParkedLine card={card} />
                </li>
              ))}
            </ul>
          </Section>
        ) : null}
        {all.running.length > 0 ? (
          <Section title="Running" count={all.running.length}>
            <ThreadLines cards={all.running} />
          </Section>
        ) : null}
        {all.finished.length > 0 ? (
          <Section title="Finished" count={all.finished.length}>
            <ThreadLines cards={all.finished} fresh />
          </Section>
        ) : null}
        {all.earlier.length > 0 ? (
          <Section title="Earlier">
            <ThreadLines cards={all.earlier.slice(0, EARLIER_MAX)} />
          </Section>
        ) : null}
      </Scroll>
    </div>
  );
}

function WaitingCard({ waiting }: { waiting: Waiting }) {
  const threads = useCell(app.threads);
  const thread = waiting.decision.thread ? threads?.get(String(waiting.decision.thread)) : undefined;
  const where = thread?.title ? `${waiting.name} · ${thread.title}` : waiting.name;
  return (
    <div>
      <DecisionCard decision={waiting.decision} box={where} />
      {waiting.decision.thread ? (
        <a data-inside href={`/t/${waiting.decision.thread}`} class="flex min-h-11 items-center justify-end gap-1 px-2 text-sm text-quiet">
          Open the thread <Icon name="chevron" size={16} />
        </a>
      ) : null}
    </div>
  );
}

function Welcome() {
  return (
    <div class="mx-auto max-w-md py-10 text-center">
      <div class="mx-auto mb-5 grid size-16 place-items-center rounded-2xl bg-accent-soft text-accent">
        <Icon name="boxes" size={32} />
      </div>
      <h2 class="text-xl font-semibold">A machine of its own for an agent</h2>
      <p class="mt-2 text-quiet">Say what is to be done. A box is made for it in a moment, with nothing in it worth stealing and nowhere to go that you did not allow.</p>
      <a data-inside href="/new" class="btn btn-main mt-6 w-full min-h-12">
        <Icon name="plus" /> New box
      </a>
      <p class="mt-3 text-sm text-quiet">The demo agent needs no account: it does real work in a real box.</p>
    </div>
  );
}
