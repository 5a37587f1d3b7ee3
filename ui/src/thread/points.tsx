// Points a box can go back to: one before each turn, as a dot beside its prompt.
import { useEffect, useState } from "react";
import { app } from "../app";
import { Refused, ask } from "../rest";
import { go } from "../router";
import { Icon } from "../ui/icons";
import { Sheet } from "../ui/sheet";
import { clock } from "../ui/time";
import type { BoxInfo, RestorePoint, Restored, ThreadHead, ThreadShown } from "../wire";

const NONE: ReadonlyMap<number, RestorePoint> = new Map();

/** The points of a thread by the rows of its prompts; asked anew whenever `turns` says something else. */
export function usePoints(head: ThreadHead | null, thread: string, turns: number): ReadonlyMap<number, RestorePoint> {
  const [points, setPoints] = useState(NONE);
  const box = head?.shown.box_id;
  useEffect(() => {
    if (!box) return undefined;
    let wanted = true;
    ask<{ points: RestorePoint[] }>("GET", `/boxes/${box}/restore-points`).then(
      (said) => wanted && setPoints(new Map(said.points.filter((point) => point.thread === thread).map((point) => [point.seq, point]))),
      () => undefined,
    );
    return () => {
      wanted = false;
    };
  }, [box, thread, turns]);
  return points;
}

const refusedBy = (error: unknown): string => (error instanceof Refused ? error.message : "It did not work");

/** Begins a copy of a thread, and says where it is. */
export async function fork(thread: string): Promise<void> {
  try {
    const shown = await ask<ThreadShown>("POST", `/threads/${thread}/act`, { act: "fork" });
    go(`/t/${shown.info.thread}`);
    app.say("This is the copy, in plan mode. The other thread goes on as it was.", undefined);
  } catch (error) {
    app.say(refusedBy(error));
  }
}

interface PointSheetProps {
  point: RestorePoint;
  head: ThreadHead;
  onFork: (() => void) | null;
  onClose: () => void;
}

export function PointSheet({ point, head, onFork, onClose }: PointSheetProps) {
  const [busy, setBusy] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const [name, setName] = useState(`${head.shown.name}-${point.seq}`);
  const { box_id: box, name: of } = head.shown;
  const running = head.shown.info.state === "running";
  const tried = async (what: string, run: () => Promise<void>) => {
    setBusy(what);
    setRefused(null);
    try {
      await run();
      onClose();
    } catch (error) {
      setRefused(refusedBy(error));
      setBusy(null);
    }
  };
  const restore = () =>
    tried("restore", async () => {
      const done = await ask<Restored>("POST", `/boxes/${box}/snapshots/${encodeURIComponent(point.label)}/restore`);
      app.say(`The files of ${of} are as they were at ${clock(point.at_ms)}`, () => void forward(box, done.undo));
    });
  const clone = () =>
    tried("clone", async () => {
      const made = await ask<BoxInfo>("POST", `/boxes/${box}/clone`, { name, label: point.label });
      go(`/b/${made.name}`);
    });
  return (
    <Sheet title="Before this turn" onClose={onClose}>
      <p class="[overflow-wrap:anywhere]">“{point.words}”</p>
      <p class="mt-1 text-sm text-quiet">
        The files of <span class="font-medium">{of}</span> as they were at {clock(point.at_ms)}
        {point.undone ? " · gone back to already" : ""}
      </p>
      <button type="button" class="btn btn-main mt-4 min-h-12 w-full" disabled={busy !== null} onClick={() => void restore()}>
        {busy === "restore" ? "Going back…" : "Put the files back"}
      </button>
      <p class="mt-1.5 text-sm text-quiet">{running ? "The turn that runs is stopped. " : ""}What is there now stays as a snapshot. What was said since stays to be read; the agent forgets it.</p>
      <form
        class="mt-5 grid gap-1.5"
        onSubmit={(event) => {
          event.preventDefault();
          void clone();
        }}
      >
        <label class="label" htmlFor="clone-name">
          Or a new box of these files
        </label>
        <div class="flex gap-2">
          <input id="clone-name" class="field" value={name} autocapitalize="none" autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />
          <button type="submit" class="btn btn-soft shrink-0" disabled={busy !== null || name === ""}>
            {busy === "clone" ? "Cloning…" : "Clone"}
          </button>
        </div>
      </form>
      {onFork ? (
        <button type="button" class="btn btn-soft mt-4 w-full" disabled={busy !== null} onClick={onFork}>
          Fork the thread as it is now
        </button>
      ) : null}
      {refused ? (
        <p role="alert" class="mt-3 flex gap-2 rounded-xl bg-bad-soft px-4 py-3 text-sm text-bad">
          <Icon name="warn" size={18} /> {refused}
        </p>
      ) : null}
    </Sheet>
  );
}

async function forward(box: string, label: string): Promise<void> {
  try {
    await ask("POST", `/boxes/${box}/snapshots/${encodeURIComponent(label)}/restore`);
    app.say("The files are as they were before");
  } catch (error) {
    app.say(refusedBy(error));
  }
}
