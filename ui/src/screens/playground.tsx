// Every kind of row and card from canned updates, to be looked at and tested. No host is asked.
import { DecisionCard } from "../thread/decision";
import { Fold } from "../thread/fold";
import { Row } from "../thread/views";
import { Bar } from "../ui/bar";
import { CANNED, CANNED_DECISIONS } from "./canned";

export function PlaygroundScreen() {
  const fold = new Fold();
  for (const row of CANNED) fold.take(row);
  return (
    <div class="flex h-full flex-col" data-screen="playground">
      <Bar title="Playground" from="/" />
      <div class="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label="Every kind of row">
        <div class="mx-auto grid max-w-3xl grid-cols-1 gap-4 px-4 pb-10">
          {fold.views.map((view) => (
            <article key={view.key}>
              <Row view={view} />
            </article>
          ))}
          {CANNED_DECISIONS.map((decision) => (
            <DecisionCard key={String(decision.decision)} decision={decision} box="fix-tests" />
          ))}
        </div>
      </div>
    </div>
  );
}
