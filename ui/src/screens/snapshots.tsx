// Snapshots of a box: taken, gone back to, copied out, removed.
import { useEffect, useState } from "react";
import { app } from "../app";
import { Refused, ask } from "../rest";
import { Section } from "../ui/bar";
import { Icon } from "../ui/icons";
import { Sheet } from "../ui/sheet";
import { Ago, bytes } from "../ui/time";
import type { Restored, SnapshotInfo } from "../wire";
import { Clone } from "./controls";

const WORDS: Record<SnapshotInfo["kind"], string> = {
  manual: "taken by hand",
  pristine: "as it was made",
  bootstrapped: "as it was set up",
  before_restore: "before it went back",
  before_turn: "before a turn",
};
/** Those that are shown at once; a box gets one before each turn. */
const SHOWN_MAX = 6;

const refusedBy = (error: unknown): string => (error instanceof Refused ? error.message : "It did not work");

export function Snapshots({ box, name }: { box: string; name: string }) {
  const [all, setAll] = useState<SnapshotInfo[] | null>(null);
  const [busy, setBusy] = useState(false);
  const [whole, setWhole] = useState(false);
  const [chosen, setChosen] = useState<SnapshotInfo | null>(null);
  const path = `/boxes/${box}/snapshots`;
  const load = () => {
    ask<{ snapshots: SnapshotInfo[] }>("GET", path).then(
      (said) => setAll([...said.snapshots].sort((a, b) => b.created_at_ms - a.created_at_ms)),
      () => undefined,
    );
  };
  useEffect(load, [box]);
  const take = async () => {
    setBusy(true);
    try {
      const taken = await ask<SnapshotInfo>("POST", path, {});
      app.say(`Snapshot ${taken.label}`);
      load();
    } catch (error) {
      app.say(refusedBy(error));
    } finally {
      setBusy(false);
    }
  };
  if (!all) return null;
  return (
    <Section title="Snapshots" count={all.length}>
      <ul class="card divide-y divide-line/60 overflow-hidden empty:hidden">
        {all.slice(0, whole ? undefined : SHOWN_MAX).map((one) => (
          <li key={one.label}>
            <button type="button" class="flex min-h-14 w-full items-center gap-3 px-4 py-2 text-left hover:bg-sunken/60" onClick={() => setChosen(one)} data-snapshot={one.label}>
              <span class="min-w-0 flex-1">
                <span class="block truncate font-mono text-[0.8125rem]">{one.label}</span>
                <span class="block text-sm text-quiet">
                  {WORDS[one.kind] ?? one.kind} · <Ago at={one.created_at_ms} /> · {bytes(one.bytes)}
                </span>
              </span>
              <Icon name="chevron" size={18} class="text-quiet" />
            </button>
          </li>
        ))}
      </ul>
      <div class="mt-3 grid grid-cols-2 gap-2">
        <button type="button" class="btn btn-soft" disabled={busy} onClick={() => void take()}>
          {busy ? "Taking one…" : "Take a snapshot"}
        </button>
        {all.length > SHOWN_MAX && !whole ? (
          <button type="button" class="btn text-quiet" onClick={() => setWhole(true)}>
            Show all
          </button>
        ) : null}
      </div>
      {chosen ? <One box={box} name={name} snapshot={chosen} onClose={() => setChosen(null)} onDone={load} /> : null}
    </Section>
  );
}

interface OneProps {
  box: string;
  name: string;
  snapshot: SnapshotInfo;
  onClose: () => void;
  onDone: () => void;
}

function One({ box, name, snapshot, onClose, onDone }: OneProps) {
  const [clone, setClone] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const path = (label: string) => `/boxes/${box}/snapshots/${encodeURIComponent(label)}`;
  const tried = async (run: () => Promise<void>) => {
    setBusy(true);
    setRefused(null);
    try {
      await run();
      onDone();
      onClose();
    } catch (error) {
      setRefused(refusedBy(error));
      setBusy(false);
    }
  };
  const restore = (label: string) => async () => {
    const done = await ask<Restored>("POST", `${path(label)}/restore`);
    app.say(`${name} is as it was at ${label}`, () => {
      restore(done.undo)().then(onDone, (error) => app.say(refusedBy(error)));
    });
  };
  if (clone) return <Clone card={{ id: box, name }} label={snapshot.label} onClose={onClose} />;
  return (
    <Sheet title={snapshot.label} onClose={onClose}>
      <p class="text-quiet">
        {WORDS[snapshot.kind] ?? snapshot.kind}, {new Date(snapshot.created_at_ms).toLocaleString()}
      </p>
      <div class="mt-4 grid gap-2">
        <button type="button" class="btn btn-main min-h-12" disabled={busy} onClick={() => void tried(restore(snapshot.label))}>
          {busy ? "Working…" : "Go back to it"}
        </button>
        <p class="text-sm text-quiet">What is there now is kept as a snapshot. What runs in the box is stopped.</p>
        <button type="button" class="btn btn-soft" disabled={busy} onClick={() => setClone(true)}>
          A new box of it
        </button>
        <button type="button" class="btn btn-soft text-bad" disabled={busy} onClick={() => void tried(() => ask("DELETE", path(snapshot.label)))}>
          Remove the snapshot
        </button>
      </div>
      {refused ? (
        <p role="alert" class="mt-3 text-sm text-bad">
          {refused}
        </p>
      ) : null}
    </Sheet>
  );
}
