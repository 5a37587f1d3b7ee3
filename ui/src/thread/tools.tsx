// What an agent does: runs of tool calls in one line, failures and differences always in sight.
import { memo, useState } from "react";
import { Markdown } from "../markdown";
import { Sheet } from "../ui/sheet";
import { Shown } from "../ui/hidden";
import { Icon, type IconName } from "../ui/icons";
import { Spinner } from "../ui/state";
import type { ToolContent, ToolStatus } from "../wire";
import { type Call, type Step, changedLines, countLines, workInWords } from "./fold";
import { Picture, sent } from "./pictures";
import { Whole } from "./within";

const ICONS: Record<string, IconName> = {
  read: "file",
  edit: "edit",
  delete: "cross",
  move: "file",
  search: "search",
  execute: "terminal",
  think: "spark",
  fetch: "globe",
};

type Diff = Extract<ToolContent, { type: "diff" }>;

export const Work = memo(function Work({ steps, live, found }: { steps: Step[]; live: boolean; found?: boolean }) {
  const calls = steps.flatMap((step) => (step.step === "call" ? [step.call] : []));
  const failed = calls.filter((call) => call.status === "failed");
  const going = live ? calls.findLast((call) => call.status === "running" || call.status === "pending") : undefined;
  const words = calls.length === 0 ? (live ? "Thinking" : "Thought") : going ? going.title : workInWords(steps);
  return (
    <div class="grid grid-cols-1 gap-2" data-view="work">
      <details class="group" open={found ?? false}>
        <summary class="-mx-2 flex min-h-11 items-center gap-2 rounded-xl px-2 text-[0.9375rem] text-quiet hover:text-ink">
          <span class="grid size-5 shrink-0 place-items-center">{going || (live && calls.length === 0) ? <Spinner /> : <Icon name={calls.length === 0 ? "spark" : (ICONS[calls[0]!.tool] ?? "spark")} size={18} />}</span>
          <span class="min-w-0 truncate">
            <Shown text={words} />
          </span>
          {failed.length > 0 ? <span class="shrink-0 text-bad">· {failed.length} failed</span> : null}
          <Icon name="chevron" size={16} class="chevron" />
        </summary>
        <div class="mt-1 mb-1 ml-2.5 grid grid-cols-1 gap-1 border-l border-line pl-4">
          {steps.map((step, index) => (step.step === "thought" ? <Thought key={index} text={step.text} /> : <CallLine key={step.call.call} call={step.call} />))}
        </div>
      </details>
      {failed.map((call) => (
        <Failure key={call.call} call={call} />
      ))}
      {calls.flatMap((call) =>
        call.content.map((part, index) => {
          if (part.type === "diff") return <DiffCard key={`${call.call} ${index}`} diff={part} cut={call.cut} at={index} />;
          const source = part.type === "other" ? sent(part.raw) : null;
          return source && call.cut === null ? <Picture key={`${call.call} ${index}`} source={source} name={call.title} /> : null;
        }),
      )}
    </div>
  );
});

function Thought({ text }: { text: string }) {
  return (
    <div class="py-1 text-[0.9375rem] text-quiet">
      <Markdown text={text} />
    </div>
  );
}

const MARKS: Record<ToolStatus, { icon: IconName; tone: string; word: string }> = {
  pending: { icon: "more", tone: "text-quiet", word: "waits" },
  running: { icon: "more", tone: "text-accent", word: "runs" },
  completed: { icon: "check", tone: "text-ok", word: "done" },
  failed: { icon: "cross", tone: "text-bad", word: "failed" },
  interrupted: { icon: "stop", tone: "text-quiet", word: "interrupted" },
};

function CallLine({ call }: { call: Call }) {
  const mark = MARKS[call.status] ?? MARKS.pending;
  const inside = call.content.filter((part) => part.type !== "diff");
  const line = (
    <>
      <span class={mark.tone} role="img" aria-label={mark.word}>
        {call.status === "running" ? <Spinner /> : <Icon name={mark.icon} size={16} />}
      </span>
      <span class="min-w-0 flex-1 truncate font-mono text-[0.8125rem]">
        <Shown text={call.title} />
      </span>
    </>
  );
  if (inside.length === 0) return <div class="flex min-h-9 items-center gap-2">{line}</div>;
  return (
    <details>
      <summary class="flex min-h-11 items-center gap-2">
        {line}
        <Icon name="chevron" size={14} class="chevron text-quiet" />
      </summary>
      <div class="pb-2">
        <p class="mb-1 font-mono text-[0.8125rem] [overflow-wrap:anywhere]">
          <Shown text={call.title} />
        </p>
        <CallContents call={call} />
      </div>
    </details>
  );
}

/** What a call said, differences aside; on demand also what the page did not get at first. */
function CallContents({ call }: { call: Call }) {
  return (
    <Whole cut={call.cut} what="The middle of what this call said is left out.">
      {(row) => {
        const told = row && "content" in row && row.content ? row.content : call.content;
        return <Contents content={told.filter((part) => part.type !== "diff")} whole={row !== null} />;
      }}
    </Whole>
  );
}

function Failure({ call }: { call: Call }) {
  const said = call.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
  return (
    <div class="rounded-xl bg-bad-soft px-3.5 py-2.5 text-sm">
      <div class="flex items-center gap-2 text-bad">
        <Icon name="cross" size={16} />
        <span class="min-w-0 font-mono text-[0.8125rem] [overflow-wrap:anywhere]">
          <Shown text={call.title} />
        </span>
      </div>
      {said ? (
        <pre class="mt-1.5 max-h-32 overflow-auto font-mono text-[0.8125rem] whitespace-pre-wrap [overflow-wrap:anywhere]" tabIndex={0}>
          {lastLines(said, 8)}
        </pre>
      ) : null}
    </div>
  );
}

function lastLines(text: string, count: number): string {
  return bare(text).split("\n").slice(-count).join("\n");
}

/** Tool output as the agent fences it, without the fence. */
function bare(text: string): string {
  return text.replace(/^\s*```[^\n]*\n/, "").replace(/\n?```\s*$/, "").trimEnd();
}

export function Contents({ content, whole }: { content: ToolContent[]; whole?: boolean }) {
  return (
    <div class="grid grid-cols-1 gap-2" data-whole={whole ?? false}>
      {content.map((part, index) => (
        <Content key={index} part={part} />
      ))}
    </div>
  );
}

function Content({ part }: { part: ToolContent }) {
  switch (part.type) {
    case "text":
      return <Output text={bare(part.text)} />;
    case "diff":
      return <DiffCard diff={part} />;
    case "other":
    default: {
      const source = "raw" in part ? sent(part.raw) : null;
      if (source) return <Picture source={source} name="a picture of the agent" />;
      return <Output text={JSON.stringify("raw" in part ? part.raw : part, null, 2)} />;
    }
  }
}

export function Output({ text }: { text: string }) {
  if (text === "") return null;
  return (
    <pre class="max-h-72 overflow-auto rounded-lg bg-sunken px-3 py-2 font-mono text-[0.8125rem] leading-normal whitespace-pre-wrap [overflow-wrap:anywhere]" tabIndex={0}>
      {text}
    </pre>
  );
}

/** Lines of a difference that a card shows. */
const CARD_LINES = 3;

/** `cut` is the row that has the difference whole, as its part `at`. */
export function DiffCard({ diff, cut, at }: { diff: Diff; cut?: number | null; at?: number }) {
  const [whole, setWhole] = useState(false);
  const { added, removed } = countLines(diff.old_text ?? "", diff.new_text);
  return (
    <>
      <button type="button" class="w-full overflow-hidden rounded-xl bg-surface text-left ring-1 ring-line" onClick={() => setWhole(true)} data-diff={diff.path}>
        <span class="flex min-h-11 items-center gap-2 px-3.5 text-sm">
          <Icon name="edit" size={16} class="text-quiet" />
          <span class="min-w-0 flex-1 truncate font-mono text-[0.8125rem]">
            <Shown text={short(diff.path)} />
          </span>
          {cut ? <span class="shrink-0 text-quiet">cut</span> : <Counts added={added} removed={removed} />}
        </span>
        <Lines diff={diff} max={CARD_LINES} />
      </button>
      {whole ? (
        <Sheet title={short(diff.path)} onClose={() => setWhole(false)}>
          <p class="mb-3 flex items-center gap-2 text-sm text-quiet">
            <span class="min-w-0 [overflow-wrap:anywhere]">
              <Shown text={diff.path} />
            </span>
            <Counts added={added} removed={removed} />
          </p>
          <Whole cut={cut ?? null} what="The middle of this difference is left out.">
            {(row) => {
              const part = row && "content" in row ? row.content?.[at ?? 0] : undefined;
              return (
                <div class="overflow-hidden rounded-xl ring-1 ring-line">
                  <Lines diff={part?.type === "diff" ? part : diff} max={2000} />
                </div>
              );
            }}
          </Whole>
        </Sheet>
      ) : null}
    </>
  );
}

function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span class="flex shrink-0 gap-1.5 text-[0.8125rem] tabular-nums">
      <span class="text-ok">+{added}</span>
      <span class="text-bad">−{removed}</span>
    </span>
  );
}

function Lines({ diff, max }: { diff: Diff; max: number }) {
  const { from, gone, come } = changedLines(diff.old_text ?? "", diff.new_text);
  const lines = [
    ...gone.map((text, index) => ({ sign: "−", text, at: from + index + 1 })),
    ...come.map((text, index) => ({ sign: "+", text, at: from + index + 1 })),
  ];
  const shown = lines.slice(0, max);
  return (
    <span class="block bg-sunken/50 py-1 font-mono text-[0.8125rem] leading-snug">
      {shown.map((line, index) => (
        <span key={index} class={`flex ${line.sign === "+" ? "bg-ok-soft" : "bg-bad-soft"}`}>
          <span class="w-10 shrink-0 pr-2 text-right text-quiet tabular-nums">{line.at}</span>
          <span class="w-4 shrink-0" aria-label={line.sign === "+" ? "added" : "removed"}>
            {line.sign}
          </span>
          <span class="min-w-0 flex-1 pr-3 whitespace-pre-wrap [overflow-wrap:anywhere]">{line.text ? <Shown text={line.text} /> : " "}</span>
        </span>
      ))}
      {lines.length > max ? <span class="block px-3.5 py-1 text-quiet">{lines.length - max} more {lines.length - max === 1 ? "line" : "lines"}</span> : null}
    </span>
  );
}

/** The end of a path says most. */
function short(path: string): string {
  return path.replace(/^\/workspace\//, "");
}
