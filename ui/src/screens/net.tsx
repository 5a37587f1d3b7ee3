// The network log of a box: what it reached, what was refused, and by which rule.
import { useEffect, useState } from "react";
import { Refused, ask } from "../rest";
import { Bar, Scroll } from "../ui/bar";
import { Icon } from "../ui/icons";
import { bytes, clock } from "../ui/time";
import type { NetLine } from "../wire";

const AGAIN_MS = 3_000;

export function NetScreen({ name }: { name: string }) {
  const [lines, setLines] = useState<NetLine[] | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    let wanted = true;
    const look = async () => {
      try {
        const said = await ask<{ lines: NetLine[] }>("GET", `/boxes/${encodeURIComponent(name)}/net`);
        if (wanted) setLines(said.lines);
      } catch (error) {
        if (wanted && error instanceof Refused) setRefused(error.message);
      }
      if (wanted) timer = setTimeout(() => void look(), AGAIN_MS);
    };
    void look();
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [name]);
  const newest = [...(lines ?? [])].reverse();
  return (
    <div class="flex h-full flex-col" data-screen="net">
      <Bar title="Network" from={`/b/${name}`} under={name} />
      <Scroll>
        {refused && !lines ? <p class="text-bad">{refused}</p> : null}
        {lines !== null && newest.length === 0 ? <p class="py-16 text-center text-quiet">It has reached for nothing.</p> : null}
        <ul class="card divide-y divide-line/60 overflow-hidden empty:hidden">
          {newest.map((line, index) => (
            <Line key={index} line={line} />
          ))}
        </ul>
      </Scroll>
    </div>
  );
}

function Line({ line }: { line: NetLine }) {
  const allowed = line.verdict === "allowed";
  const facts = [
    line.rule || null,
    line.times > 1 ? `${line.times} times` : null,
    allowed ? `${bytes(Number(line.sent_bytes))} out, ${bytes(Number(line.received_bytes))} in` : line.verdict.replaceAll("-", " "),
    line.credential ? `with ${line.credential}` : null,
    line.process ? line.process.name : null,
  ].filter(Boolean);
  return (
    <li class="flex gap-3 px-4 py-2.5" data-verdict={line.verdict}>
      <span class={allowed ? "text-ok" : "text-bad"} role="img" aria-label={allowed ? "allowed" : "refused"}>
        <Icon name={allowed ? "check" : "cross"} size={18} class="mt-0.5" />
      </span>
      <span class="min-w-0 flex-1">
        <span class="block font-mono text-sm [overflow-wrap:anywhere]">{line.host || "nothing named"}</span>
        <span class="block text-[0.8125rem] text-quiet [overflow-wrap:anywhere]">{facts.join(" · ")}</span>
      </span>
      <span class="shrink-0 text-[0.8125rem] text-quiet tabular-nums">{clock(Number(line.at_ms))}</span>
    </li>
  );
}
