// What can be done with a box: power, freeze, a copy, another name, the trash.
import type { ComponentChildren } from "preact";
import { useState } from "react";
import { app } from "../app";
import { Refused, ask } from "../rest";
import { go } from "../router";
import { Sheet } from "../ui/sheet";
import type { BoxCard, BoxInfo } from "../wire";
import { undelete } from "./trash";

const refusedBy = (error: unknown): string => (error instanceof Refused ? error.message : "It did not work");

type Open = "rename" | "clone" | "remove" | null;

export function Controls({ card }: { card: BoxCard }) {
  const [busy, setBusy] = useState<string | null>(null);
  const [sheet, setSheet] = useState<Open>(null);
  const act = async (what: string) => {
    setBusy(what);
    try {
      await ask("POST", `/boxes/${card.id}/${what}`, what === "stop" || what === "restart" ? {} : undefined);
    } catch (error) {
      app.say(refusedBy(error));
    } finally {
      setBusy(null);
    }
  };
  const running = card.state === "running";
  const stopped = card.state === "stopped" || card.state === "failed";
  const close = () => setSheet(null);
  const button = (what: string, label: string, enabled: boolean) => (
    <button type="button" class={`btn ${what === "start" ? "btn-main" : "btn-soft"}`} disabled={busy !== null || !enabled} onClick={() => void act(what)}>
      {label}
    </button>
  );
  return (
    <div class="grid grid-cols-2 gap-2" data-controls data-busy={busy ?? ""}>
      {stopped ? button("start", "Start", true) : button("stop", "Stop", running)}
      {button("restart", "Restart", running)}
      {card.frozen ? button("thaw", "Thaw", running) : button("freeze", "Freeze", running)}
      <button type="button" class="btn btn-soft" onClick={() => setSheet("clone")}>
        Clone
      </button>
      <button type="button" class="btn btn-soft" onClick={() => setSheet("rename")}>
        Rename
      </button>
      <button type="button" class="btn btn-soft text-bad" onClick={() => setSheet("remove")}>
        Remove
      </button>
      {sheet === "rename" ? <Rename card={card} onClose={close} /> : null}
      {sheet === "clone" ? <Clone card={card} label={null} onClose={close} /> : null}
      {sheet === "remove" ? <Remove card={card} onClose={close} /> : null}
    </div>
  );
}

interface NamingProps {
  title: string;
  first: string;
  does: string;
  about?: ComponentChildren;
  onClose: () => void;
  /** Does it, and says where to go then. */
  run: (name: string) => Promise<string>;
}

/** A sheet that asks for a name. */
function Naming({ title, first, does, about, onClose, run }: NamingProps) {
  const [name, setName] = useState(first);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setRefused(null);
    try {
      const to = await run(name);
      onClose();
      go(to, "replace");
    } catch (error) {
      setRefused(refusedBy(error));
      setBusy(false);
    }
  };
  return (
    <Sheet title={title} onClose={onClose}>
      <form onSubmit={submit} class="grid gap-3">
        {about ? <p class="text-quiet">{about}</p> : null}
        <label class="grid gap-1.5">
          <span class="label">Name</span>
          <input class="field" value={name} autocapitalize="none" autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        {refused ? (
          <p role="alert" class="text-sm text-bad">
            {refused}
          </p>
        ) : null}
        <button type="submit" class="btn btn-main min-h-12" disabled={busy || name === ""}>
          {busy ? `${does}…` : does}
        </button>
      </form>
    </Sheet>
  );
}

function Rename({ card, onClose }: { card: BoxCard; onClose: () => void }) {
  const run = async (name: string) => `/b/${(await ask<BoxInfo>("POST", `/boxes/${card.id}/rename`, { to: name })).name}`;
  return <Naming title={`Rename ${card.name}`} first={card.name} does="Rename" onClose={onClose} run={run} />;
}

/** A box of the files as they are now, or as they were at a snapshot. */
export function Clone({ card, label, onClose }: { card: Pick<BoxCard, "id" | "name">; label: string | null; onClose: () => void }) {
  const run = async (name: string) => `/b/${(await ask<BoxInfo>("POST", `/boxes/${card.id}/clone`, { name, ...(label ? { label } : {}) })).name}`;
  const about = label ? `A new box with the files of ${card.name} as they were at ${label}.` : `A new box with the files of ${card.name} as they are now. It shares no process, address or key with it.`;
  return <Naming title={`Clone ${card.name}`} first={`${card.name}-2`} does="Clone" about={about} onClose={onClose} run={run} />;
}

function Remove({ card, onClose }: { card: BoxCard; onClose: () => void }) {
  const [refused, setRefused] = useState<Refused | null>(null);
  const remove = async (unpushed: "refuse" | "ignore") => {
    try {
      await ask("POST", `/boxes/${card.id}/remove`, { unpushed });
      onClose();
      go("/boxes", "replace");
      app.say(`${card.name} is in the trash`, () => void undelete(card.id));
    } catch (error) {
      if (error instanceof Refused) setRefused(error);
    }
  };
  return (
    <Sheet title={`Remove ${card.name}?`} onClose={onClose}>
      <p class="text-quiet">It is stopped and goes to the trash, with all its files. From there it can be taken back.</p>
      {refused ? (
        <p role="alert" class="mt-3 rounded-xl bg-bad-soft px-4 py-3 text-sm text-bad">
          {refused.message}
        </p>
      ) : null}
      <button type="button" class="btn btn-bad mt-4 min-h-12 w-full" onClick={() => void remove(refused ? "ignore" : "refuse")}>
        {refused ? "Remove it all the same" : "Remove"}
      </button>
    </Sheet>
  );
}
