// One row of a thread, by its kind.
import type { ComponentChildren } from "preact";
import { memo } from "react";
import { Markdown } from "../markdown";
import { Icon } from "../ui/icons";
import { clock, lasted } from "../ui/time";
import type { PlanEntry, TurnOutcome } from "../wire";
import { withoutAttachments } from "./attach";
import { unhidden } from "./decision";
import type { Digest, View } from "./fold";
import { Output, Work } from "./tools";

export const Row = memo(function Row({ view }: { view: View }) {
  switch (view.view) {
    case "prompt":
      return <Prompt text={view.text} note={view.steered ? "said into the running turn" : undefined} />;
    case "text":
      return (
        <div data-view="text">
          {view.cut ? <p class="mb-1 text-sm text-quiet">… the beginning of this text is left out</p> : null}
          <Markdown text={view.text} grows={view.grows} />
        </div>
      );
    case "work":
      return <Work steps={view.steps} live={view.live} />;
    case "plan":
      return <Plan entries={view.entries} />;
    case "decision":
      return <Decided view={view} />;
    case "ended":
      return <Ended outcome={view.outcome} note={view.note} digest={view.digest} />;
    case "command":
      return <ShellCommand view={view} />;
    case "woke":
      return <Woke view={view} />;
    case "notice":
      return (
        <p class="flex items-start gap-2 text-sm text-quiet" data-view="notice">
          <span aria-hidden="true">·</span>
          <span class="min-w-0 [overflow-wrap:anywhere]">{view.text}</span>
        </p>
      );
    case "unknown":
      return <Unknown kind={view.kind} raw={view.raw} />;
  }
});

export function Prompt({ text: prompt, note, dashed }: { text: string; note?: ComponentChildren; dashed?: boolean }) {
  const { files, text } = withoutAttachments(prompt);
  return (
    <div class="flex flex-col items-end pl-8" data-view="prompt">
      <div class={`max-w-full rounded-2xl rounded-br-md px-4 py-2.5 whitespace-pre-wrap [overflow-wrap:anywhere] ${dashed ? "border-2 border-dashed border-line text-quiet" : "bg-accent-soft"}`}>{text}</div>
      {files.map((file) => (
        <div key={file.name} class="mt-1 flex max-w-full items-center gap-2 rounded-xl bg-sunken px-3 py-1.5 text-sm" title={file.about}>
          <Icon name="file" size={16} class="text-quiet" />
          <span class="min-w-0 truncate">{file.name}</span>
        </div>
      ))}
      {note ? <div class="mt-1 px-1 text-[0.8125rem] text-quiet">{note}</div> : null}
    </div>
  );
}

function Folded({ summary, name, children }: { summary: ComponentChildren; name: string; children: ComponentChildren }) {
  return (
    <details data-view={name}>
      <summary class="-mx-2 flex min-h-11 items-center gap-2 rounded-xl px-2 text-[0.9375rem] text-quiet">{summary}</summary>
      <div class="mt-1">{children}</div>
    </details>
  );
}

const PLAN_SIGNS: Record<string, { sign: string; word: string; tone: string }> = {
  completed: { sign: "✓", word: "done", tone: "text-ok" },
  in_progress: { sign: "▸", word: "going on", tone: "text-accent" },
};

export function Plan({ entries }: { entries: PlanEntry[] }) {
  const done = entries.filter((entry) => entry.status === "completed").length;
  return (
    <div class="card px-4 py-3" data-view="plan">
      <div class="flex items-center gap-2 text-sm font-medium text-quiet">
        <Icon name="plan" size={18} /> Plan
        <span class="ml-auto tabular-nums">
          {done}/{entries.length}
        </span>
      </div>
      <ol class="mt-1.5 grid gap-1 text-[0.9375rem]">
        {entries.map((entry, index) => {
          const look = PLAN_SIGNS[entry.status] ?? { sign: "○", word: "to do", tone: "text-quiet" };
          return (
            <li key={index} class="flex gap-2.5">
              <span class={`w-4 shrink-0 text-center ${look.tone}`} role="img" aria-label={look.word}>
                {look.sign}
              </span>
              <span class={`min-w-0 [overflow-wrap:anywhere] ${entry.status === "completed" ? "text-quiet" : ""}`}>{entry.text}</span>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function Decided({ view }: { view: Extract<View, { view: "decision" }> }) {
  const { decision, state } = view;
  const chosen = state.state === "answered" ? (decision.options.find((option) => option.id === state.option)?.label ?? state.option) : null;
  const end = {
    open: "waits for you",
    answered: chosen ? `“${unhidden(chosen).text}”` : "answered",
    cancelled: "cancelled",
    lost: state.state === "lost" ? `over: ${state.reason}` : "over",
  }[state.state];
  const facts = [view.by ? `by ${view.by}` : null, view.closedAt ? clock(view.closedAt) : null, view.note].filter(Boolean);
  return (
    <div class="flex gap-2.5 text-[0.9375rem]" data-view="decision" data-state={state.state}>
      <Icon name={state.state === "open" ? "warn" : state.state === "answered" ? "check" : "cross"} size={18} class={`mt-0.5 ${state.state === "open" ? "text-warn" : "text-quiet"}`} />
      <div class="min-w-0 [overflow-wrap:anywhere]">
        <span class="text-quiet">{unhidden(decision.title).text}</span> <span class="font-medium">{end}</span>
        {facts.length > 0 ? <span class="text-sm text-quiet"> · {facts.join(" · ")}</span> : null}
      </div>
    </div>
  );
}

const OUTCOMES: Record<TurnOutcome, { word: string; tone: string }> = {
  done: { word: "Done", tone: "text-ok" },
  failed: { word: "Failed", tone: "text-bad" },
  refused: { word: "Refused", tone: "text-bad" },
  cancelled: { word: "Stopped", tone: "text-quiet" },
  parked: { word: "Parked: a usage limit", tone: "text-warn" },
  stopped_short: { word: "Stopped at a limit of its own", tone: "text-warn" },
};

function Ended({ outcome, note, digest }: { outcome: TurnOutcome; note: string | null; digest: Digest }) {
  const look = OUTCOMES[outcome] ?? { word: outcome, tone: "text-quiet" };
  const facts = [
    digest.files ? `${digest.files} ${digest.files === 1 ? "file" : "files"} +${digest.added} −${digest.removed}` : null,
    digest.commands ? `${digest.commands} ${digest.commands === 1 ? "command" : "commands"}` : null,
    digest.failed ? `${digest.failed} failed` : null,
    lasted(digest.ms),
  ].filter(Boolean);
  return (
    <div class="flex items-center gap-3 pt-1 text-sm text-quiet" data-view="ended" data-outcome={outcome}>
      <span class="h-px flex-1 bg-line" />
      <span class="min-w-0 text-center">
        <span class={`font-medium ${look.tone}`}>{look.word}</span> · {facts.join(" · ")}
        {note ? <span class="block [overflow-wrap:anywhere]">{note}</span> : null}
      </span>
      <span class="h-px flex-1 bg-line" />
    </div>
  );
}

function ShellCommand({ view }: { view: Extract<View, { view: "command" }> }) {
  const end = view.exit === null ? (view.note ?? "cut off") : `exit ${view.exit}`;
  return (
    <div class="overflow-hidden rounded-xl bg-sunken" data-view="command">
      <div class="flex items-center gap-2 px-3.5 py-2.5 font-mono text-[0.8125rem]">
        <Icon name="terminal" size={16} class="text-quiet" />
        <span class="min-w-0 flex-1 [overflow-wrap:anywhere]">{view.command}</span>
        <span class={`shrink-0 ${view.exit === 0 ? "text-quiet" : "text-bad"}`}>{end}</span>
      </div>
      <Output text={view.output.trimEnd()} />
    </div>
  );
}

function Woke({ view }: { view: Extract<View, { view: "woke" }> }) {
  const line = (
    <>
      <span aria-hidden="true">◍</span>
      <span class="min-w-0 truncate">{view.summary}</span>
      {view.status ? <span class="shrink-0">· {view.status}</span> : null}
      {view.said ? <Icon name="chevron" size={16} class="chevron" /> : null}
    </>
  );
  if (!view.said) {
    return (
      <p class="flex items-center gap-2 text-[0.9375rem] text-quiet" data-view="woke">
        {line}
      </p>
    );
  }
  return (
    <Folded name="woke" summary={line}>
      <Output text={view.said} />
    </Folded>
  );
}

function Unknown({ kind, raw }: { kind: string; raw: unknown }) {
  const inner = raw && typeof raw === "object" && "sessionUpdate" in raw ? String(raw.sessionUpdate) : kind;
  return (
    <Folded
      name="unknown"
      summary={
        <>
          <span aria-hidden="true">⋯</span>
          <span class="min-w-0 truncate">{inner}</span>
          <Icon name="chevron" size={16} class="chevron" />
        </>
      }
    >
      <Output text={JSON.stringify(raw, null, 2)} />
    </Folded>
  );
}
