// Threads in a list.
import { Sign } from "../ui/state";
import { Ago } from "../ui/time";
import type { ThreadInBox } from "../wire";

export function ThreadLine({ card, fresh, here }: { card: ThreadInBox; fresh?: boolean; here?: boolean }) {
  const info = card;
  return (
    <a
      data-inside
      href={`/t/${info.thread}`}
      class={`flex min-h-16 items-center gap-3 px-4 py-2.5 ${here ? "bg-accent-soft" : "hover:bg-sunken/60"}`}
      aria-current={here ? "page" : undefined}
      data-thread={info.thread}
      data-state={info.state}
    >
      <Sign state={info.state} />
      <span class="min-w-0 flex-1">
        <span class="flex items-baseline gap-2">
          <span class={`min-w-0 flex-1 truncate ${fresh ? "font-semibold" : "font-medium"}`}>{info.title || "Untitled"}</span>
          <span class="shrink-0 text-[0.8125rem] text-quiet">
            <Ago at={info.changed_at_ms || info.created_at_ms} />
          </span>
        </span>
        <span class="block truncate text-sm text-quiet">
          {card.name}
          {info.queued > 0 ? ` · ${info.queued} queued` : ""}
          {info.background > 0 ? ` · ${info.background} in the background` : ""}
          {info.last ? ` · ${info.last}` : ` · ${info.agent}`}
        </span>
      </span>
      {fresh ? <span class="size-2.5 shrink-0 rounded-full bg-accent" role="img" aria-label="new" /> : null}
    </a>
  );
}

export function ThreadLines({ cards, fresh, here }: { cards: ThreadInBox[]; fresh?: boolean; here?: string | undefined }) {
  return (
    <ul class="card divide-y divide-line/60 overflow-hidden">
      {cards.map((card) => (
        <li key={card.thread}>
          <ThreadLine card={card} {...(fresh ? { fresh } : {})} here={card.thread === here} />
        </li>
      ))}
    </ul>
  );
}

const WORKS = new Set(["starting", "running", "background"]);
const WAITS = new Set(["needs_you", "asks"]);

export interface Sorted {
  waiting: ThreadInBox[];
  parked: ThreadInBox[];
  running: ThreadInBox[];
  finished: ThreadInBox[];
  earlier: ThreadInBox[];
}

/** Threads by what they want of a person. Finished is what ended since it was last looked at. */
export function sorted(cards: Iterable<ThreadInBox>, seen: Readonly<Record<string, number>>): Sorted {
  const sorted: Sorted = { waiting: [], parked: [], running: [], finished: [], earlier: [] };
  const at = (card: ThreadInBox) => Number(card.changed_at_ms || card.created_at_ms);
  for (const card of [...cards].sort((a, b) => at(b) - at(a))) {
    if (WAITS.has(card.state)) sorted.waiting.push(card);
    else if (card.state === "parked") sorted.parked.push(card);
    else if (WORKS.has(card.state)) sorted.running.push(card);
    else if (at(card) > (seen[card.thread] ?? 0)) sorted.finished.push(card);
    else sorted.earlier.push(card);
  }
  return sorted;
}
