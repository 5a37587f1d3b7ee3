// The thread a row stands in, for rows that can ask for more of themselves or go back to themselves.
import { type ComponentChildren, createContext } from "preact";
import { useContext, useState } from "react";
import { Refused, ask } from "../rest";
import type { JournalRow, RestorePoint } from "../wire";

export interface Within {
  thread: string;
  /** The name of its box. */
  box: string | null;
  /** What the box was before a turn, by the row of its prompt. */
  points: ReadonlyMap<number, RestorePoint>;
  /** Opens what can be done with a point. */
  onPoint: (point: RestorePoint) => void;
  /** Begins a copy; absent where the agent cannot. */
  onFork: (() => void) | null;
  /** The last end of a turn that is known. */
  ended: string | null;
}

/** Absent where rows are shown without a host, as in the playground. */
export const InThread = createContext<Within | null>(null);

export const useThread = (): Within | null => useContext(InThread);

/** What was left out of a row, once it is asked for. `cut` is the row that has it, `what` says that something
 * is missing. */
export function Whole({ cut, what, children }: { cut: number | null; what: string; children: (row: JournalRow | null) => ComponentChildren }) {
  const within = useThread();
  const [row, setRow] = useState<JournalRow | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const load = async () => {
    try {
      setRow(await ask<JournalRow>("GET", `/threads/${within?.thread}/rows/${cut}`));
    } catch (error) {
      setRefused(error instanceof Refused ? error.message : "It did not come");
    }
  };
  const known = row && row.seq === cut ? row : null;
  return (
    <>
      {children(known)}
      {cut !== null && !known ? (
        <p class="flex min-h-11 flex-wrap items-center gap-x-2 text-sm text-quiet" data-cut>
          {refused ?? what}
          {within ? (
            <button type="button" class="min-h-11 px-1 font-medium text-accent underline underline-offset-2" onClick={() => void load()}>
              Show all of it
            </button>
          ) : null}
        </p>
      ) : null}
    </>
  );
}
