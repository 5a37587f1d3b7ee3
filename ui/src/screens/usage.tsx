// What the machine has and what boxes use of it, now.
import { useEffect, useState } from "react";
import { Refused, ask } from "../rest";
import { Bar, Scroll, Section } from "../ui/bar";
import { bytes } from "../ui/time";
import type { BoxUsage } from "../wire/BoxUsage";
import type { UsageNow } from "../wire/UsageNow";

const AGAIN_MS = 3_000;

export function UsageScreen() {
  const [usage, setUsage] = useState<UsageNow | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    let wanted = true;
    const look = async () => {
      try {
        // A page nobody sees asks for nothing.
        const said = document.visibilityState === "visible" ? await ask<UsageNow>("GET", "/usage") : null;
        if (wanted && said) setUsage(said);
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
  }, []);
  return (
    <div class="flex h-full flex-col" data-screen="usage" data-loaded={usage !== null}>
      <Bar title="Usage" from="/boxes" />
      <Scroll>
        {refused && !usage ? <p class="text-bad">{refused}</p> : null}
        {usage ? <Machine of={usage} /> : null}
        {usage ? (
          <Section title="Boxes">
            {usage.boxes.length === 0 ? <p class="px-1 text-quiet">There is no box.</p> : null}
            <ul class="card divide-y divide-line/60 empty:hidden">
              {usage.boxes.map((one) => (
                <Line key={one.id} of={one} />
              ))}
            </ul>
          </Section>
        ) : null}
      </Scroll>
    </div>
  );
}

function Machine({ of: { machine } }: { of: UsageNow }) {
  const memory = Number(machine.memory_bytes);
  const disk = Number(machine.disk_bytes);
  const used = memory - Number(machine.memory_free_bytes);
  const full = disk - Number(machine.disk_free_bytes);
  return (
    <Section title="This machine">
      <ul class="card grid gap-3 px-4 py-3.5">
        <Share name="CPU" part={machine.cpu_milli} of={machine.cpus * 1000} text={`${(machine.cpu_milli / 1000).toFixed(1)} of ${machine.cpus}`} />
        <Share name="Memory" part={used} of={memory} text={`${bytes(used)} of ${bytes(memory)}`} />
        <Share name="Disk" part={full} of={disk} text={`${bytes(full)} of ${bytes(disk)}`} />
      </ul>
    </Section>
  );
}

function Share({ name, part, of, text }: { name: string; part: number; of: number; text: string }) {
  return (
    <li>
      <span class="flex justify-between gap-3">
        <span>{name}</span>
        <span class="text-quiet tabular-nums">{text}</span>
      </span>
      <meter class="mt-1 h-2 w-full" aria-label={name} min={0} max={of || 1} value={part} />
    </li>
  );
}

function Line({ of: box }: { of: BoxUsage }) {
  const used = box.used;
  const facts = used
    ? [
        `${(used.cpu_milli / 1000).toFixed(2)} CPU`,
        `${bytes(Number(used.memory_bytes))} of ${bytes(Number(box.limits.memory_bytes))}`,
        `${used.processes} processes`,
        `${bytes(Number(used.net.sent_bytes))} out, ${bytes(Number(used.net.received_bytes))} in`,
      ]
    : [];
  return (
    <li>
      <a data-inside href={`/b/${box.name}`} class="block min-h-14 px-4 py-2.5">
        <span class="flex justify-between gap-3">
          <span class="truncate font-medium">{box.name}</span>
          <span class="text-sm text-quiet">{used?.frozen ? "frozen" : box.state}</span>
        </span>
        {facts.length > 0 ? <span class="block text-sm text-quiet tabular-nums">{facts.join(" · ")}</span> : null}
      </a>
    </li>
  );
}
