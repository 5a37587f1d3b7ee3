// What a person is asked: the agent's options verbatim, and buttons that cannot be hit by accident.
import { useEffect, useRef, useState } from "react";
import { app } from "../app";
import { Markdown } from "../markdown";
import { inWords } from "../rest";
import { useCell } from "../store";
import { unhidden } from "../ui/hidden";
import { Icon, type IconName } from "../ui/icons";
import type { Decision, DecisionOption, FormAnswer } from "../wire";
import type { Call } from "./fold";
import { FormCard } from "./form";
import { Contents } from "./tools";

/** A button that has just appeared or moved does nothing for so long. */
export const DEAD_MS = 400;
const MOVED_PX = 8;

const ABOUT: Record<string, { icon: IconName; word: string }> = {
  permission: { icon: "warn", word: "Permission" },
  question: { icon: "question", word: "Question" },
  network: { icon: "globe", word: "Network" },
  push: { icon: "send", word: "Push" },
  plan: { icon: "plan", word: "Plan" },
  budget: { icon: "warn", word: "Budget" },
};

export interface DecisionCardProps {
  decision: Decision;
  /** Where it comes from, for cards away from their thread. */
  box?: string;
  call?: Call | undefined;
  more?: number;
}

export function DecisionCard({ decision, box, call, more }: DecisionCardProps) {
  const card = useRef<HTMLDivElement>(null);
  const armed = useArmed(card, String(decision.decision));
  const [refused, setRefused] = useState<string | null>(null);
  const answered = useCell(app.answered).has(String(decision.decision));
  const about = ABOUT[decision.about] ?? { icon: "question" as const, word: decision.about };
  const title = unhidden(decision.title);
  const texts = [decision.title, decision.text ?? "", ...decision.options.map((option) => option.label), ...(call ? textsOf(call) : [])];
  const hidden = texts.reduce((count, text) => count + unhidden(text).count, 0);

  const choose = async (option: DecisionOption) => {
    if (!armed() || answered) return;
    setRefused(null);
    const problem = await app.answer(decision.decision, option.id);
    if (problem) setRefused(inWords(problem));
  };
  const fill = async (answer: FormAnswer) => {
    if (!armed() || answered) return;
    setRefused(null);
    const problem = await app.fill(decision.decision, answer);
    if (problem) setRefused(inWords(problem));
  };
  return (
    <section
      ref={card}
      class="card rise overflow-hidden p-4 shadow-[0_1px_3px_rgb(0_0_0/0.08),0_6px_24px_rgb(0_0_0/0.08)] ring-1 ring-line"
      aria-label={`${about.word}: ${decision.title}`}
      data-decision={String(decision.decision)}
      data-about={decision.about}
      tabIndex={-1}
      onKeyDown={(event) => {
        // Only while the card itself has the focus: never while somebody types.
        if (event.target !== card.current || event.metaKey || event.ctrlKey || event.altKey) return;
        const kind = { a: "allow_once", d: "reject_once" }[event.key];
        const option = decision.options.find((one) => one.kind === kind) ?? decision.options[Number(event.key) - 1];
        if (option) void choose(option);
      }}
    >
      <div class="flex items-center gap-2 text-sm font-medium text-warn">
        <Icon name={about.icon} size={18} />
        <span>{about.word}</span>
        {box ? <span class="min-w-0 truncate font-normal text-quiet">{box}</span> : null}
        {more ? <span class="ml-auto font-normal text-quiet">{more} more</span> : null}
      </div>
      <p class="mt-1.5 font-medium [overflow-wrap:anywhere]">{title.text}</p>
      {hidden > 0 ? (
        <p role="alert" class="mt-2 flex gap-2 rounded-lg bg-bad-soft px-3 py-2 text-sm text-bad">
          <Icon name="warn" size={18} />
          {hidden === 1 ? "It holds a character" : `It holds ${hidden} characters`} that hide or turn text around; they are shown as ⟨U+…⟩.
        </p>
      ) : null}
      {decision.text ? (
        <div class="mt-2 max-h-[40dvh] overflow-y-auto rounded-lg bg-sunken p-3 text-[0.9375rem]" tabIndex={0} role="region" aria-label="To be read first">
          <Markdown text={unhidden(decision.text).text} />
        </div>
      ) : null}
      {call && call.content.length > 0 ? (
        <div class="mt-2 max-h-[30dvh] overflow-y-auto" tabIndex={0} role="region" aria-label="What it wants to do">
          <Contents content={call.content} />
        </div>
      ) : null}
      {decision.form && decision.options.length === 0 ? (
        <FormCard form={decision.form} disabled={answered} answer={fill} />
      ) : (
        <Options decision={decision} disabled={answered} choose={choose} />
      )}
      {answered ? <p class="mt-2 text-sm text-quiet">Answer is on its way…</p> : null}
      {refused ? (
        <p role="alert" class="mt-2 text-sm text-bad">
          {refused}
        </p>
      ) : null}
    </section>
  );
}

function Options({ decision, disabled, choose }: { decision: Decision; disabled: boolean; choose: (option: DecisionOption) => void }) {
  // The agent's order, as it says it. What allows once stands out, wherever it is.
  const main = decision.options.find((option) => option.kind === "allow_once");
  return (
    <div class="mt-3 grid gap-2">
      {decision.options.map((option) => (
        <button
          key={option.id}
          type="button"
          disabled={disabled}
          data-kind={option.kind}
          class={`btn min-h-12 w-full py-2 [overflow-wrap:anywhere] ${option === main ? "btn-main" : option.kind.startsWith("reject") ? "btn-soft text-bad" : "btn-soft"}`}
          onClick={() => choose(option)}
        >
          {unhidden(option.label).text}
        </button>
      ))}
    </div>
  );
}

function textsOf(call: Call): string[] {
  return [call.title, ...call.content.map((part) => (part.type === "text" ? part.text : part.type === "diff" ? `${part.path}\n${part.new_text}` : ""))];
}

/** Whether the card has stood still long enough for a tap to be meant for it. */
function useArmed(card: { readonly current: HTMLElement | null }, key: string): () => boolean {
  const still = useRef({ since: 0, top: 0 });
  useEffect(() => {
    const look = () => {
      const top = card.current?.getBoundingClientRect().top ?? 0;
      if (Math.abs(top - still.current.top) > MOVED_PX) still.current = { since: performance.now(), top };
    };
    still.current = { since: performance.now(), top: card.current?.getBoundingClientRect().top ?? 0 };
    const timer = setInterval(look, 100);
    return () => clearInterval(timer);
  }, [card, key]);
  return () => {
    const top = card.current?.getBoundingClientRect().top ?? 0;
    if (Math.abs(top - still.current.top) > MOVED_PX) still.current = { since: performance.now(), top };
    return performance.now() - still.current.since >= DEAD_MS;
  };
}
