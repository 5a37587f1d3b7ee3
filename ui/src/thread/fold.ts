// Rows of a journal become what a thread shows: prompts, texts, work, plans, decisions, ends.
import type { AgentCommand, BackgroundTask, Decision, DecisionState, LogUpdate, PageRow, PlanEntry, QueuedPrompt, ToolContent, ToolStatus, TurnOutcome } from "../wire";

export interface Call {
  call: string;
  title: string;
  tool: string;
  status: ToolStatus;
  content: ToolContent[];
  /** The row that has what was left out of `content`. */
  cut: number | null;
}

export type Step = { step: "call"; call: Call } | { step: "thought"; seq: number; text: string };

/** One thing a thread shows. A changed view is a new object: what is the same is not drawn again. */
export type View = { key: string; at: number } & (
  | { view: "prompt"; seq: number; text: string; steered: boolean; cut: boolean }
  | { view: "text"; seq: number; text: string; grows: boolean; cut: boolean }
  | { view: "work"; steps: Step[]; live: boolean }
  | { view: "plan"; entries: PlanEntry[] }
  | { view: "decision"; decision: Decision; state: DecisionState; by: string | null; note: string | null; closedAt: number | null }
  | { view: "ended"; outcome: TurnOutcome; note: string | null; digest: Digest; turn: number | null }
  | { view: "command"; seq: number; command: string; output: string; exit: number | null; note: string | null; cut: boolean }
  | { view: "woke"; summary: string; status: string | null; said: string | null }
  | { view: "notice"; text: string }
  | { view: "unknown"; seq: number; kind: string; raw: unknown; cut: boolean }
);

/** What a turn did. */
export interface Digest {
  files: number;
  added: number;
  removed: number;
  commands: number;
  failed: number;
  ms: number;
}

export interface Usage {
  used: number;
  size: number;
  cost?: string | null;
}

const utf8 = new TextEncoder();
const bytesOf = (text: string): number => utf8.encode(text).length;
/** `text` from this byte of it on. */
const fromByte = (text: string, byte: number): string => new TextDecoder().decode(utf8.encode(text).subarray(byte));

/** A text of a row: where it is shown, and which bytes of the whole are known. */
interface Text {
  place: Place;
  from: number;
  end: number;
}

interface Place {
  view: number;
  step: number;
}

/** A thread as it is known so far. */
export class Fold {
  views: View[] = [];
  plan: PlanEntry[] = [];
  usage: Usage | null = null;
  mode: string | null = null;
  queue: QueuedPrompt[] = [];
  tasks: BackgroundTask[] = [];
  /** What the agent offers after a `/`, as far as it was said in what is known. */
  commands: AgentCommand[] | null = null;
  /** Counts up with each prompt and each way back: what there is to go back to is another then. */
  turns = 0;
  running = false;
  /** When the turn that runs began. */
  since = 0;

  #rows: PageRow[] = [];
  #texts = new Map<number, Text>();
  #calls = new Map<string, Place>();
  #decisions = new Map<string | number, number>();
  #planAt: number | null = null;
  #turnFrom = 0;
  #turn: number | null = null;
  /** Where rows are shown that have no view of their own. */
  #at = new Map<number, number>();

  /** The first row that is known. */
  get first(): number {
    return this.#rows[0]?.seq ?? 0;
  }

  get last(): number {
    return this.#rows.at(-1)?.seq ?? 0;
  }

  /** Takes one update; says whether it followed on what is known. */
  take(update: LogUpdate): boolean {
    switch (update.event) {
      case "row":
        return this.#row(update);
      case "grew":
        return this.#grew(update.seq, update.from_byte, update.text);
      default:
        // Updates of a newer host.
        return true;
    }
  }

  /** The same thread with older rows before it. */
  withOlder(older: PageRow[]): Fold {
    const whole = new Fold();
    for (const row of [...older, ...this.#rows]) if (row.seq > whole.last) whole.#row(row);
    return whole;
  }

  call(id: string): Call | undefined {
    const place = this.#calls.get(id);
    const view = place && this.views[place.view];
    const step = view?.view === "work" ? view.steps[place!.step] : undefined;
    return step?.step === "call" ? step.call : undefined;
  }

  /** The view that shows the row of this number, or what came before it. */
  viewOf(seq: number): number {
    const told = this.#at.get(seq);
    if (told !== undefined) return told;
    return this.views.findLastIndex((view) => Number(view.key) <= seq);
  }

  #row(row: PageRow): boolean {
    if (row.seq <= this.last) return true;
    this.#settle(row.kind);
    this.#rows.push(row);
    this.#place(row);
    return true;
  }

  /** A text no longer grows once another row follows. */
  #settle(next: string): void {
    if (QUIET.has(next)) return;
    const last = this.views.length - 1;
    const view = this.views[last];
    if (view?.view === "text" && view.grows) this.views[last] = { ...view, grows: false };
    if (view?.view === "work" && view.live && !WORK.has(next)) this.views[last] = { ...view, live: false };
  }

  #text(row: PageRow & { text: string }, place: Place): void {
    const from = row.text_from ?? 0;
    this.#texts.set(row.seq, { place, from, end: from + bytesOf(row.text) });
  }

  #place(row: PageRow): void {
    const base = { key: String(row.seq), at: row.at_ms };
    switch (row.kind) {
      case "prompt":
        this.running = true;
        this.since = row.at_ms;
        this.turns += 1;
        this.#turn = row.seq;
        this.#turnFrom = this.views.length;
        this.#planAt = null;
        this.#push({ ...base, view: "prompt", seq: row.seq, text: row.text, steered: false, cut: row.cut });
        return;
      case "steered":
        this.#push({ ...base, view: "prompt", seq: row.seq, text: row.text, steered: true, cut: row.cut });
        return;
      case "text":
        this.#text(row, { view: this.views.length, step: -1 });
        this.#push({ ...base, view: "text", seq: row.seq, text: row.text, grows: true, cut: (row.text_from ?? 0) > 0 });
        return;
      case "thought":
        this.#text(row, this.#step({ step: "thought", seq: row.seq, text: row.text }, base));
        return;
      case "tool_call": {
        const call: Call = { call: row.call, title: row.title, tool: row.tool, status: row.status, content: row.content ?? [], cut: row.cut ? row.seq : null };
        const known = this.#calls.get(row.call);
        // A second start of the same call is an update of it.
        if (known) this.#setCall(known, call);
        else this.#calls.set(row.call, this.#step({ step: "call", call }, base));
        return;
      }
      case "tool_update":
        this.#update(row);
        return;
      case "plan":
        this.#setPlan(row.entries, base);
        return;
      case "decision_opened": {
        this.#decisions.set(row.decision, this.views.length);
        this.#push({ ...base, view: "decision", decision: row, state: row.state, by: null, note: null, closedAt: null });
        return;
      }
      case "decision_closed":
        this.#close(row);
        return;
      case "turn_ended":
        this.running = false;
        this.#push({ ...base, view: "ended", outcome: row.outcome, note: row.note, digest: this.#digest(row.at_ms), turn: this.#turn });
        this.#turn = null;
        return;
      case "command":
        this.#push({ ...base, view: "command", seq: row.seq, command: row.command, output: row.output, exit: row.exit ?? null, note: row.note ?? null, cut: row.cut });
        return;
      case "queue":
        this.queue = row.waiting;
        return;
      case "background":
        this.tasks = row.tasks;
        return;
      case "woke":
        this.#push({ ...base, view: "woke", summary: row.summary, status: row.status ?? null, said: row.said ?? null });
        return;
      case "forked":
        this.#push({ ...base, view: "notice", text: "A copy of another thread up to here; from here on it goes its own way." });
        return;
      case "option_set":
        this.#push({ ...base, view: "notice", text: row.refused ? `${row.option} stays: ${row.refused}` : `${row.option}: ${row.value}` });
        return;
      case "went_back":
        this.turns += 1;
        this.#push({ ...base, view: "notice", text: `The files of the box are again as they were before what was asked at that time (snapshot ${row.snapshot}).` });
        return;
      case "notice":
        this.#push({ ...base, view: "notice", text: row.text });
        return;
      case "mode":
        this.mode = row.mode;
        return;
      case "usage":
        this.usage = { used: Number(row.used), size: Number(row.size), cost: row.cost };
        return;
      case "detail":
        this.commands = commandsOf(row.raw) ?? this.commands;
        return;
      default: {
        // Of a newer host or a newer agent: shown as what it is.
        const { seq, at_ms: _at, event: _event, text_from: _from, cut, kind, ...raw } = row as unknown as Record<string, unknown>;
        this.#push({ ...base, view: "unknown", seq: Number(seq), kind: String(kind), raw: "raw" in raw ? raw.raw : raw, cut: cut === true });
      }
    }
  }

  #push(view: View): void {
    this.views.push(view);
  }

  /** Adds a step to the work that is going on, or begins one. */
  #step(step: Step, base: { key: string; at: number }): Place {
    const last = this.views.length - 1;
    const view = this.views[last];
    if (view?.view === "work") {
      this.views[last] = { ...view, steps: [...view.steps, step], live: true };
      return { view: last, step: view.steps.length };
    }
    this.#push({ ...base, view: "work", steps: [step], live: true });
    return { view: last + 1, step: 0 };
  }

  #update(row: PageRow & { kind: "tool_update" }): void {
    const known = this.#calls.get(row.call);
    const view = known && this.views[known.view];
    const step = view?.view === "work" ? view.steps[known!.step] : undefined;
    if (!known || step?.step !== "call") return;
    const before = step.call;
    const told = row.content?.length ? row.content : null;
    this.#at.set(row.seq, known.view);
    this.#setCall(known, {
      ...before,
      title: row.title ?? before.title,
      status: row.status ?? before.status,
      content: told ?? before.content,
      cut: told ? (row.cut ? row.seq : null) : before.cut,
    });
  }

  #setCall(place: Place, call: Call): void {
    this.#setStep(place, { step: "call", call });
  }

  #setStep(place: Place, step: Step): void {
    const view = this.views[place.view];
    if (view?.view !== "work") return;
    const steps = [...view.steps];
    steps[place.step] = step;
    this.views[place.view] = { ...view, steps };
  }

  #setText(place: Place, text: string): void {
    const view = this.views[place.view];
    if (view?.view === "text") this.views[place.view] = { ...view, text };
    else if (view?.view === "work") {
      const step = view.steps[place.step];
      if (step?.step === "thought") this.#setStep(place, { ...step, text });
    }
  }

  #textOf(place: Place): string {
    const view = this.views[place.view];
    if (view?.view === "text") return view.text;
    const step = view?.view === "work" ? view.steps[place.step] : undefined;
    return step?.step === "thought" ? step.text : "";
  }

  #grew(seq: number, from: number, text: string): boolean {
    const known = this.#texts.get(seq);
    if (known === undefined) return false;
    if (from > known.end) return false;
    const end = from + bytesOf(text);
    // Told twice.
    if (end <= known.end) return true;
    this.#setText(known.place, this.#textOf(known.place) + fromByte(text, known.end - from));
    known.end = end;
    this.#keep(seq, known.place);
    return true;
  }

  /** The row as it is now, for when the thread is folded anew. */
  #keep(seq: number, place: Place): void {
    const at = this.#rows.findLastIndex((row) => row.seq === seq);
    const row = this.#rows[at];
    if (row && "text" in row) this.#rows[at] = { ...row, text: this.#textOf(place) } as PageRow;
  }

  #setPlan(entries: PlanEntry[], base: { key: string; at: number }): void {
    this.plan = entries;
    const at = this.#planAt;
    const view = at === null ? undefined : this.views[at];
    if (at !== null && view?.view === "plan") {
      this.views[at] = { ...view, entries };
      return;
    }
    this.#planAt = this.views.length;
    this.#push({ ...base, view: "plan", entries });
  }

  #close(row: PageRow & { kind: "decision_closed" }): void {
    const at = this.#decisions.get(row.decision);
    const view = at === undefined ? undefined : this.views[at];
    if (at === undefined || view?.view !== "decision") return;
    this.#at.set(row.seq, at);
    this.views[at] = { ...view, state: row.state, by: row.by, note: row.note, closedAt: row.at_ms };
  }

  #digest(endedAt: number): Digest {
    const digest: Digest = { files: 0, added: 0, removed: 0, commands: 0, failed: 0, ms: endedAt - this.since };
    const files = new Set<string>();
    for (const view of this.views.slice(this.#turnFrom)) {
      if (view.view !== "work") continue;
      for (const step of view.steps) {
        if (step.step !== "call") continue;
        if (step.call.tool === "execute") digest.commands += 1;
        if (step.call.status === "failed") digest.failed += 1;
        for (const part of step.call.content) {
          if (part.type !== "diff") continue;
          files.add(part.path);
          const lines = countLines(part.old_text ?? "", part.new_text);
          digest.added += lines.added;
          digest.removed += lines.removed;
        }
      }
    }
    digest.files = files.size;
    return digest;
  }
}

/** Rows that are no part of what is read from top to bottom. */
const QUIET = new Set(["detail", "usage", "mode", "queue", "background", "tool_update"]);
const WORK = new Set(["thought", "tool_call"]);

/** What an agent offers after a `/` (ACP's `available_commands_update`); it tells all of it each time. */
function commandsOf(raw: unknown): AgentCommand[] | null {
  const told = raw as { sessionUpdate?: unknown; availableCommands?: unknown } | null;
  if (told?.sessionUpdate !== "available_commands_update" || !Array.isArray(told.availableCommands)) return null;
  const line = (text: unknown): string => (typeof text === "string" ? (text.split("\n")[0] ?? "") : "");
  return told.availableCommands
    .slice(0, 200)
    .map((one) => ({ name: line(one?.name), about: line(one?.description), hint: typeof one?.input?.hint === "string" ? line(one.input.hint) : null }))
    .filter((one) => one.name !== "");
}

/** How many lines came and went. Lines that are the same at both ends are not looked at. */
export function countLines(before: string, after: string): { added: number; removed: number } {
  const { gone, come } = changedLines(before, after);
  return { added: come.length, removed: gone.length };
}

/** The lines that differ, once those equal at both ends are taken away, and where they begin. */
export function changedLines(before: string, after: string): { from: number; gone: string[]; come: string[] } {
  const old = before === "" ? [] : before.replace(/\n$/, "").split("\n");
  const now = after === "" ? [] : after.replace(/\n$/, "").split("\n");
  let from = 0;
  while (from < old.length && from < now.length && old[from] === now[from]) from += 1;
  let end = 0;
  while (end < old.length - from && end < now.length - from && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  return { from, gone: old.slice(from, old.length - end), come: now.slice(from, now.length - end) };
}

/** Work in a few words: `Edited 3 files, ran 4 commands`. */
export function workInWords(steps: Step[]): string {
  const counts = new Map<string, number>();
  for (const step of steps) {
    if (step.step !== "call") continue;
    const kind = KINDS[step.call.tool] ? step.call.tool : "other";
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const parts = [...counts].map(([kind, count]) => {
    const [verb, one, many] = KINDS[kind] ?? KINDS.other!;
    return `${verb} ${count} ${count === 1 ? one : many}`;
  });
  const words = parts.join(", ");
  return words ? words[0]!.toUpperCase() + words.slice(1) : "Thought";
}

const KINDS: Record<string, [string, string, string]> = {
  read: ["read", "file", "files"],
  edit: ["edited", "file", "files"],
  delete: ["deleted", "file", "files"],
  move: ["moved", "file", "files"],
  search: ["searched", "time", "times"],
  execute: ["ran", "command", "commands"],
  think: ["thought", "time", "times"],
  fetch: ["fetched", "page", "pages"],
  other: ["used", "tool", "tools"],
};
