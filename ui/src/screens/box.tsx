// One box: how it stands, what it may use, and what can be done with it.
import { useEffect, useState } from "react";
import { app } from "../app";
import { Refused, ask } from "../rest";
import { go } from "../router";
import { useCell } from "../store";
import { Bar, Scroll, Section } from "../ui/bar";
import { Icon } from "../ui/icons";
import { Sheet } from "../ui/sheet";
import { BoxStand } from "../ui/state";
import { bytes, clock } from "../ui/time";
import type { BoxCard, BoxInfo } from "../wire";
import { ThreadLines } from "./threads";

export function BoxScreen({ name, inside }: { name: string; inside?: boolean }) {
  const boxes = useCell(app.boxes);
  const threads = useCell(app.threads);
  const card = [...(boxes?.values() ?? [])].find((one) => one.name === name || one.id === name);
  const info = useInfo(name, card);
  const own = [...(threads?.values() ?? [])].filter((thread) => thread.name === name || thread.box_id === name);
  if (boxes !== null && !card && !info) {
    return (
      <div class="flex h-full flex-col" data-screen="box">
        <Bar title={name} from="/boxes" />
        <p class="px-6 py-16 text-center text-quiet">There is no box of this name.</p>
      </div>
    );
  }
  return (
    <div class="flex h-full flex-col" data-screen="box" data-state={card?.state ?? ""}>
      <Bar title={card?.title ?? name} {...(inside ? {} : { from: "/boxes" })} level={inside ? 2 : 1} under={card ? <BoxStand card={card} /> : null} />
      <Scroll>
        {card?.problem ? <p class="mb-3 rounded-xl bg-bad-soft px-4 py-3 text-sm text-bad">{card.problem}</p> : null}
        {card ? <Controls card={card} /> : null}
        <Section title="Threads">
          {own.length > 0 ? <ThreadLines cards={own} /> : <p class="px-1 text-quiet">None yet.</p>}
          <a data-inside href={`/new?box=${name}`} class="btn btn-soft mt-3 w-full">
            <Icon name="plus" /> New thread here
          </a>
        </Section>
        <Section title="Network">
          <a data-inside href={`/b/${name}/net`} class="card flex min-h-14 items-center gap-3 px-4">
            <Icon name="globe" class="text-quiet" />
            <span class="flex-1">What it reached</span>
            <Icon name="chevron" size={18} class="text-quiet" />
          </a>
        </Section>
        {info ? <Details info={info} /> : null}
      </Scroll>
    </div>
  );
}

/** Asked again whenever the card says something else. */
function useInfo(name: string, card: BoxCard | undefined): BoxInfo | null {
  const [info, setInfo] = useState<BoxInfo | null>(null);
  useEffect(() => {
    let wanted = true;
    ask<BoxInfo>("GET", `/boxes/${encodeURIComponent(name)}`).then(
      (said) => wanted && setInfo(said),
      () => undefined,
    );
    return () => {
      wanted = false;
    };
  }, [name, card?.state, card?.frozen]);
  return info?.name === name || info?.id === name ? info : null;
}

function Controls({ card }: { card: BoxCard }) {
  const [busy, setBusy] = useState<string | null>(null);
  const [sheet, setSheet] = useState<"rename" | "remove" | null>(null);
  const act = async (what: string) => {
    setBusy(what);
    try {
      await ask("POST", `/boxes/${card.id}/${what}`, what === "stop" || what === "restart" ? {} : undefined);
    } catch (error) {
      app.say(error instanceof Refused ? error.message : "It did not work");
    } finally {
      setBusy(null);
    }
  };
  const running = card.state === "running";
  const stopped = card.state === "stopped" || card.state === "failed";
  return (
    <div class="grid grid-cols-2 gap-2">
      {stopped ? (
        <button type="button" class="btn btn-main" disabled={busy !== null} onClick={() => act("start")}>
          Start
        </button>
      ) : (
        <button type="button" class="btn btn-soft" disabled={busy !== null || !running} onClick={() => act("stop")}>
          Stop
        </button>
      )}
      <button type="button" class="btn btn-soft" disabled={busy !== null || !running} onClick={() => act("restart")}>
        Restart
      </button>
      <button type="button" class="btn btn-soft" onClick={() => setSheet("rename")}>
        Rename
      </button>
      <button type="button" class="btn btn-soft text-bad" onClick={() => setSheet("remove")}>
        Remove
      </button>
      {sheet === "rename" ? <Rename card={card} onClose={() => setSheet(null)} /> : null}
      {sheet === "remove" ? <Remove card={card} onClose={() => setSheet(null)} /> : null}
    </div>
  );
}

function Rename({ card, onClose }: { card: BoxCard; onClose: () => void }) {
  const [name, setName] = useState<string>(card.name);
  const [refused, setRefused] = useState<string | null>(null);
  const rename = async (event: Event) => {
    event.preventDefault();
    try {
      const info = await ask<BoxInfo>("POST", `/boxes/${card.id}/rename`, { to: name });
      onClose();
      go(`/b/${info.name}`, "replace");
    } catch (error) {
      setRefused(error instanceof Refused ? error.message : "It did not work");
    }
  };
  return (
    <Sheet title={`Rename ${card.name}`} onClose={onClose}>
      <form onSubmit={rename} class="grid gap-3">
        <label class="grid gap-1.5">
          <span class="label">Name</span>
          <input class="field" value={name} autocapitalize="none" autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        {refused ? (
          <p role="alert" class="text-sm text-bad">
            {refused}
          </p>
        ) : null}
        <button type="submit" class="btn btn-main min-h-12" disabled={name === card.name || name === ""}>
          Rename
        </button>
      </form>
    </Sheet>
  );
}

function Remove({ card, onClose }: { card: BoxCard; onClose: () => void }) {
  const [refused, setRefused] = useState<Refused | null>(null);
  const remove = async (unpushed: "refuse" | "ignore") => {
    try {
      await ask("POST", `/boxes/${card.id}/remove`, { unpushed });
      onClose();
      go("/boxes", "replace");
      app.say(`${card.name} is in the trash`, () => void undelete(card));
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
      <button type="button" class="btn btn-bad mt-4 min-h-12 w-full" onClick={() => remove(refused ? "ignore" : "refuse")}>
        {refused ? "Remove it all the same" : "Remove"}
      </button>
    </Sheet>
  );
}

async function undelete(card: BoxCard): Promise<void> {
  try {
    const info = await ask<BoxInfo>("POST", `/trash/${card.id}/undelete`, {});
    app.say(`${info.name} is back`);
    go(`/b/${info.name}`);
  } catch (error) {
    app.say(error instanceof Refused ? error.message : "It did not work");
  }
}

function Details({ info }: { info: BoxInfo }) {
  const facts: [string, string][] = [
    ["Id", info.id],
    ["Engine", info.runtime],
    ["Image", info.image],
    ["Profile", info.profile],
    ["Network", info.net],
    ["CPU", `${info.limits.cpu_milli / 1000}`],
    ["Memory", bytes(Number(info.limits.memory_bytes))],
    ["Processes", String(info.limits.pids)],
    ["Limits held by", info.limits_held_by],
    ["Accounts", info.accounts.join(", ") || "none"],
    ...(info.workspace ? [["Workspace", info.workspace] as [string, string]] : []),
    ["Made", new Date(Number(info.created_at_ms)).toLocaleString()],
  ];
  return (
    <>
      {info.events.length > 0 ? (
        <Section title="What befell it">
          <ul class="card grid gap-1.5 px-4 py-3 text-sm">
            {info.events.map((event, index) => (
              <li key={index} class="flex gap-3">
                <span class="shrink-0 text-quiet tabular-nums">{clock(Number(event.at_ms))}</span>
                <span class="min-w-0 [overflow-wrap:anywhere]">{event.text}</span>
              </li>
            ))}
          </ul>
        </Section>
      ) : null}
      <Section title="Details">
        <dl class="card grid grid-cols-[auto_1fr] gap-x-5 gap-y-2 px-4 py-3.5 text-sm">
          {facts.map(([name, value]) => (
            <>
              <dt key={name} class="text-quiet">
                {name}
              </dt>
              <dd class="min-w-0 text-right [overflow-wrap:anywhere]">{value}</dd>
            </>
          ))}
        </dl>
      </Section>
    </>
  );
}
