// One row of a thread, by its kind.
import type { ComponentChildren } from "preact";
import { memo } from "react";
import { app } from "../app";
import { Markdown } from "../markdown";
import { Shown, unhidden } from "../ui/hidden";
import { Icon } from "../ui/icons";
import { clock, lasted } from "../ui/time";
import type { PlanEntry, TurnOutcome } from "../wire";
import { type NamedFile, withoutAttachments } from "./attach";
import type { View } from "./fold";
import { Picture, attached, isPicture, sent, take } from "./pictures";
import { Output, Work } from "./tools";
import { Whole, useThread } from "./within";

/** `found`: a search led here. */
export const Row = memo(function Row({ view, found }: { view: View; found?: boolean }) {
  switch (view.view) {
    case "prompt":
      return <Asked view={view} />;
    case "text":
      return (
        <div data-view="text">
          <Whole cut={view.cut ? view.seq : null} what="The beginning of this text is left out.">
            {(row) => <Markdown text={row?.kind === "text" ? row.text : view.text} grows={view.grows && row === null} />}
          </Whole>
        </div>
      );
    case "work":
      return <Work steps={view.steps} live={view.live} {...(found ? { found } : {})} />;
    case "plan":
      return <Plan entries={view.entries} />;
    case "decision":
      return <Decided view={view} />;
    case "ended":
      return <Ended view={view} />;
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
      return <Unknown view={view} />;
  }
});

/** A prompt in its place: with the point one can go back to, where there is one. */
function Asked({ view }: { view: Extract<View, { view: "prompt" }> }) {
  const within = useThread();
  const point = view.steered ? undefined : within?.points.get(view.seq);
  return (
    <div class="relative">
      {point && within ? (
        <button type="button" class="btn-icon absolute top-0 -left-3" aria-label={`Restore point: before “${point.words.slice(0, 40)}”`} title="Restore point" onClick={() => within.onPoint(point)} data-point={point.label}>
          <span class={`size-2.5 rounded-full ${point.undone ? "border-2 border-quiet" : "bg-accent"}`} />
        </button>
      ) : null}
      <Whole cut={view.cut ? view.seq : null} what="The middle of this prompt is left out.">
        {(row) => <Prompt text={row?.kind === "prompt" || row?.kind === "steered" ? row.text : view.text} note={view.steered ? "said into the running turn" : undefined} />}
      </Whole>
    </div>
  );
}

export function Prompt({ text: prompt, note, dashed }: { text: string; note?: ComponentChildren; dashed?: boolean }) {
  const { files, text } = withoutAttachments(prompt);
  return (
    <div class="flex flex-col items-end pl-8" data-view="prompt">
      <div class={`max-w-full rounded-2xl rounded-br-md px-4 py-2.5 whitespace-pre-wrap [overflow-wrap:anywhere] ${dashed ? "border-2 border-dashed border-line text-quiet" : "bg-accent-soft"}`}>{text}</div>
      {files.map((file) => (
        <File key={file.name} file={file} />
      ))}
      {note ? <div class="mt-1 px-1 text-[0.8125rem] text-quiet">{note}</div> : null}
    </div>
  );
}

/** A picture as itself, a PDF in a tab, anything else as a download (C56). */
function File({ file }: { file: NamedFile }) {
  const box = useThread()?.box ?? null;
  if (box && isPicture(file.type)) {
    return (
      <div class="mt-1.5 max-w-full">
        <Picture source={attached(box, file.name, file.type)} name={file.name} />
      </div>
    );
  }
  const look = (
    <>
      <Icon name="file" size={16} class="text-quiet" />
      <span class="min-w-0 truncate">{file.name}</span>
    </>
  );
  const chip = "mt-1 flex max-w-full items-center gap-2 rounded-xl bg-sunken px-3 py-1.5 text-sm";
  if (!box) {
    return (
      <div class={chip} title={file.about}>
        {look}
      </div>
    );
  }
  return (
    <button type="button" class={`${chip} min-h-11`} title={file.about} onClick={() => void take(box, file.name, file.type).catch(() => app.say(`${file.name} did not come`))}>
      {look}
    </button>
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
              <span class={`min-w-0 [overflow-wrap:anywhere] ${entry.status === "completed" ? "text-quiet" : ""}`}>
                <Shown text={entry.text} />
              </span>
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
        <span class="text-quiet">
          <Shown text={decision.title} />
        </span> <span class="font-medium">{end}</span>
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

function Ended({ view }: { view: Extract<View, { view: "ended" }> }) {
  const { outcome, note, digest } = view;
  const within = useThread();
  const point = view.turn === null ? undefined : within?.points.get(view.turn);
  const look = OUTCOMES[outcome] ?? { word: outcome, tone: "text-quiet" };
  const facts = [
    digest.files ? `${digest.files} ${digest.files === 1 ? "file" : "files"} +${digest.added} −${digest.removed}` : null,
    digest.commands ? `${digest.commands} ${digest.commands === 1 ? "command" : "commands"}` : null,
    digest.failed ? `${digest.failed} failed` : null,
    lasted(digest.ms),
  ].filter(Boolean);
  const forks = within?.ended === view.key ? within.onFork : null;
  return (
    <div class="pt-1 text-sm text-quiet" data-view="ended" data-outcome={outcome}>
      <div class="flex items-center gap-3">
        <span class="h-px flex-1 bg-line" />
        <span class="min-w-0 text-center">
          <span class={`font-medium ${look.tone}`}>{look.word}</span> · {facts.join(" · ")}
          {note ? <span class="block [overflow-wrap:anywhere]">{note}</span> : null}
        </span>
        <span class="h-px flex-1 bg-line" />
      </div>
      {(point && !point.undone) || forks ? (
        <div class="mt-1 flex flex-wrap justify-center gap-1" data-digest>
          {point && !point.undone && within ? (
            <button type="button" class="btn min-w-20 text-quiet hover:text-ink" onClick={() => within.onPoint(point)}>
              Undo
            </button>
          ) : null}
          {forks ? (
            <button type="button" class="btn min-w-20 text-quiet hover:text-ink" onClick={forks}>
              Fork
            </button>
          ) : null}
        </div>
      ) : null}
    </div>
  );
}

function ShellCommand({ view }: { view: Extract<View, { view: "command" }> }) {
  const end = view.exit === null ? (view.note ?? "cut off") : `exit ${view.exit}`;
  return (
    <div class="overflow-hidden rounded-xl bg-sunken" data-view="command">
      <div class="flex items-center gap-2 px-3.5 py-2.5 font-mono text-[0.8125rem]">
        <Icon name="terminal" size={16} class="text-quiet" />
        <span class="min-w-0 flex-1 [overflow-wrap:anywhere]">
          <Shown text={view.command} />
        </span>
        <span class={`shrink-0 ${view.exit === 0 ? "text-quiet" : "text-bad"}`}>{end}</span>
      </div>
      {view.exit !== null && view.note ? <p class="px-3.5 pb-1 text-sm text-warn">{view.note}</p> : null}
      <Whole cut={view.cut ? view.seq : null} what="The middle of what it printed is left out.">
        {(row) => <Output text={(row?.kind === "command" ? row.output : view.output).trimEnd()} />}
      </Whole>
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

function Unknown({ view }: { view: Extract<View, { view: "unknown" }> }) {
  const { kind, raw } = view;
  const inner = raw && typeof raw === "object" && "sessionUpdate" in raw ? String(raw.sessionUpdate) : kind;
  const picture = raw && typeof raw === "object" && "content" in raw && !view.cut ? sent(raw.content) : null;
  if (picture) return <Picture source={picture} name="a picture of the agent" />;
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
      <Whole cut={view.cut ? view.seq : null} what="Parts of this are left out.">
        {(row) => <Output text={JSON.stringify(row ?? raw, null, 2)} />}
      </Whole>
    </Folded>
  );
}
