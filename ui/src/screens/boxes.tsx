// Boxes: a card each.
import { app } from "../app";
import { useCell } from "../store";
import { Bar, Scroll } from "../ui/bar";
import { Icon } from "../ui/icons";
import { BoxStand } from "../ui/state";
import { Ago } from "../ui/time";
import type { BoxCard } from "../wire";

export function BoxesScreen() {
  const boxes = useCell(app.boxes);
  const cards = [...(boxes?.values() ?? [])].sort((a, b) => Number(b.created_at_ms) - Number(a.created_at_ms));
  return (
    <div class="flex h-full flex-col" data-screen="boxes">
      <Bar title="All boxes">
        <a data-inside href="/new" class="btn-icon" aria-label="New box">
          <Icon name="plus" />
        </a>
      </Bar>
      <Scroll>
        {boxes !== null && cards.length === 0 ? <p class="py-16 text-center text-quiet">There is no box yet.</p> : null}
        <ul class="grid grid-cols-1 gap-3">
          {cards.map((card) => (
            <li key={card.id}>
              <BoxLine card={card} />
            </li>
          ))}
        </ul>
        <a data-inside href="/usage" class="mt-4 flex min-h-11 items-center justify-center gap-1 text-sm text-quiet">
          Usage <Icon name="chevron" size={16} />
        </a>
        <a data-inside href="/trash" class="mt-4 flex min-h-11 items-center justify-center gap-1 text-sm text-quiet">
          Trash <Icon name="chevron" size={16} />
        </a>
      </Scroll>
    </div>
  );
}

function BoxLine({ card }: { card: BoxCard }) {
  const facts = [
    card.threads === 1 ? "1 thread" : `${card.threads} threads`,
    card.running > 0 ? `${card.running} running` : null,
  ].filter(Boolean);
  return (
    <a data-inside href={`/b/${card.name}`} class="card block px-4 py-3.5 hover:bg-raised" data-box={card.name} data-state={card.state}>
      <span class="flex items-center gap-2">
        <span class="min-w-0 flex-1 truncate text-[1.0625rem] font-semibold">{card.title ?? card.name}</span>
        {card.asks > 0 ? (
          <span class="rounded-full bg-warn-soft px-2.5 py-0.5 text-sm font-medium text-warn">
            {card.asks} <span class="sr-only">waiting for you</span>
            <span aria-hidden="true">⚠</span>
          </span>
        ) : null}
      </span>
      <span class="mt-1 flex items-center gap-2 text-sm text-quiet">
        <BoxStand card={card} />
        <span>· {facts.join(" · ")}</span>
        <span class="ml-auto">
          <Ago at={Number(card.created_at_ms)} />
        </span>
      </span>
      {card.problem ? <span class="mt-1.5 block text-sm text-bad [overflow-wrap:anywhere]">{card.problem}</span> : null}
    </a>
  );
}
