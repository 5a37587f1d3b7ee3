// How threads and boxes stand: a sign and a word each, never a colour alone.
import { Icon } from "./icons";
import type { BoxCard, ThreadState } from "../wire";

interface Look {
  sign: string;
  word: string;
  tone: string;
  /** Of the favicon. */
  icon: string;
}

const LOOKS: Record<ThreadState, Look> = {
  starting: { sign: "⟳", word: "Starting", tone: "text-accent", icon: "running" },
  running: { sign: "⟳", word: "Running", tone: "text-accent", icon: "running" },
  needs_you: { sign: "⚠", word: "Needs you", tone: "text-warn", icon: "needs" },
  asks: { sign: "?", word: "Asks you", tone: "text-warn", icon: "asks" },
  idle: { sign: "○", word: "Idle", tone: "text-quiet", icon: "idle" },
  background: { sign: "◍", word: "In the background", tone: "text-accent", icon: "background" },
  parked: { sign: "⏸", word: "Parked", tone: "text-quiet", icon: "parked" },
  failed: { sign: "✗", word: "Failed", tone: "text-bad", icon: "failed" },
};

export function lookOf(state: ThreadState): Look {
  return LOOKS[state] ?? { sign: "·", word: state, tone: "text-quiet", icon: "idle" };
}

export function Sign({ state }: { state: ThreadState }) {
  const look = lookOf(state);
  const turning = state === "running" || state === "starting";
  return (
    <span class={`inline-grid size-6 shrink-0 place-items-center ${look.tone}`} role="img" aria-label={look.word} title={look.word}>
      {turning ? <Spinner /> : state === "parked" ? <Icon name="pause" size={18} /> : <span aria-hidden="true">{look.sign}</span>}
    </span>
  );
}

export function Spinner() {
  return (
    <svg class="spin" width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true">
      <circle cx="8" cy="8" r="6" opacity="0.25" />
      <path d="M14 8a6 6 0 0 0-6-6" />
    </svg>
  );
}

const BOX_WORDS: Record<string, string> = {
  creating: "Being made",
  stopped: "Stopped",
  starting: "Starting",
  running: "Running",
  stopping: "Stopping",
  removing: "Being removed",
  failed: "Failed",
  restoring: "Going back",
  trashed: "In the trash",
};

export function BoxStand({ card }: { card: Pick<BoxCard, "state" | "frozen"> }) {
  const running = card.state === "running";
  const dot = card.frozen ? "bg-accent/50" : running ? "bg-ok" : card.state === "failed" ? "bg-bad" : "border-2 border-quiet/60";
  return (
    <span class="inline-flex items-center gap-1.5 text-sm text-quiet">
      <span class={`size-2 rounded-full ${dot}`} aria-hidden="true" />
      {card.frozen && running ? "Frozen" : (BOX_WORDS[card.state] ?? card.state)}
    </span>
  );
}
