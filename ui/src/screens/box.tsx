// One box: how it stands, what it may use, and what can be done with it.
import { useEffect, useState } from "react";
import { app } from "../app";
import { ask } from "../rest";
import { useCell } from "../store";
import { Bar, Scroll, Section } from "../ui/bar";
import { Icon } from "../ui/icons";
import { BoxStand } from "../ui/state";
import { bytes, clock } from "../ui/time";
import type { BoxCard, BoxInfo } from "../wire";
import { OwnClient } from "./client";
import { Controls } from "./controls";
import { Snapshots } from "./snapshots";
import { AcpToken } from "./acp";
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
        <Bar title={name} {...(inside ? {} : { from: "/boxes" })} level={inside ? 2 : 1} />
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
        {card?.state === "running" ? (
          <Section title="Terminal">
            <a data-inside href={`/b/${name}/terminal`} class="card flex min-h-14 items-center gap-3 px-4">
              <Icon name="terminal" class="text-quiet" />
              <span class="flex-1">Open a shell</span>
              <Icon name="chevron" size={18} class="text-quiet" />
            </a>
          </Section>
        ) : null}
        {card ? <Snapshots box={card.id} name={card.name} /> : null}
        {card && !inside ? <OwnClient name={card.name} /> : null}
        {info ? <Details info={info} /> : null}
        {info ? (
          <Section title="Your own client">
            <AcpToken name={info.name} />
          </Section>
        ) : null}
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
    ["Traffic", traffic(info)],
    ...(info.pid ? [["Process 1 is", String(info.pid)] as [string, string]] : []),
    ...(info.origin ? [["Made of", originOf(info)] as [string, string]] : []),
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
                <span class="min-w-0 [overflow-wrap:anywhere]">
                  <span class="font-medium">{event.kind.replaceAll("_", " ")}:</span> {event.text}
                </span>
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

function traffic(info: BoxInfo): string {
  const { sent_bytes, received_bytes, open } = info.traffic;
  return `${bytes(sent_bytes)} out, ${bytes(received_bytes)} in${open > 0 ? `, ${open} open` : ""}`;
}

function originOf(info: BoxInfo): string {
  const origin = info.origin;
  if (!origin) return "";
  return origin.from === "clone" ? `${origin.name}${origin.label ? ` at ${origin.label}` : ""}` : `an archive of ${origin.name}`;
}
