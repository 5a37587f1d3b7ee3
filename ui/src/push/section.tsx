// Notifications in the settings: on with one tap, tried with another, and every device that is told.
import { useEffect, useState } from "react";
import { Refused, ask } from "../rest";
import { Section } from "../ui/bar";
import { Icon } from "../ui/icons";
import { Ago } from "../ui/time";
import type { PushDevice, PushHop, PushState } from "../wire";
import { TINTS } from "../ui/tints";
import { OBSTACLES, type Obstacle, obstacle, subscribe, test, unsubscribe } from "./subscribe";

const failure = (error: unknown): string => (error instanceof Refused ? error.message : error instanceof Error && error.message ? error.message : "It did not work");

export function Notifications() {
  const [state, setState] = useState<PushState | null>(null);
  const [inTheWay, setInTheWay] = useState<Obstacle | null>(obstacle);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const [hops, setHops] = useState<PushHop[] | null>(null);
  const load = () =>
    ask<PushState>("GET", "/push").then(
      (said) => setState(said),
      () => undefined,
    );
  useEffect(() => void load(), []);
  if (!state) return null;
  const own = state.devices.find((device) => device.sign_in === state.own);
  const doing = async (act: () => Promise<void>) => {
    setBusy(true);
    setRefused(null);
    try {
      await act();
    } catch (error) {
      setRefused(failure(error));
    }
    await load();
    setBusy(false);
  };
  const begin = (namesOnly: boolean) =>
    doing(async () => {
      const made = await subscribe(namesOnly);
      setInTheWay(typeof made === "string" ? made : null);
    });
  const end = (signIn: string) =>
    doing(async () => {
      setHops(null);
      if (signIn === state.own) await unsubscribe(signIn);
      else await ask("DELETE", `/push/${encodeURIComponent(signIn)}`);
    });
  const others = state.devices.filter((device) => device.sign_in !== state.own);
  return (
    <Section title="Notifications">
      <div class="card px-4 py-3" data-push={own ? "on" : (inTheWay ?? "off")}>
        {own ? (
          <On own={own} busy={busy} settle={state.settle_s} onTest={() => doing(async () => setHops(await test()))} onEnd={() => end(own.sign_in)} onNames={(only) => begin(only)} />
        ) : (
          <Off inTheWay={inTheWay} busy={busy} settle={state.settle_s} onBegin={() => begin(false)} />
        )}
        {refused ? (
          <p role="alert" class="mt-3 rounded-xl bg-bad-soft px-3 py-2 text-sm text-bad [overflow-wrap:anywhere]">
            {refused}
          </p>
        ) : null}
        {hops ? <Hops hops={hops} /> : null}
      </div>
      {others.length > 0 ? (
        <ul class="card mt-2 divide-y divide-line/60" aria-label="Other devices that are told">
          {others.map((device) => (
            <Device key={device.sign_in} device={device} busy={busy} onEnd={() => end(device.sign_in)} />
          ))}
        </ul>
      ) : null}
    </Section>
  );
}

function Off({ inTheWay, busy, settle, onBegin }: { inTheWay: Obstacle | null; busy: boolean; settle: number; onBegin: () => void }) {
  if (inTheWay) {
    const { text, hint } = OBSTACLES[inTheWay];
    return (
      <div class="flex gap-3">
        <Icon name="warn" class="mt-0.5 text-warn" />
        <p>
          {text}
          <span class="mt-0.5 block text-sm text-quiet">{hint.replaceAll("`", "")}</span>
        </p>
      </div>
    );
  }
  return (
    <>
      <p>
        Be told when an agent asks, and when a turn ended
        <span class="block text-sm text-quiet">Only while you do not look at it yourself; a turn counts as over after {settle} seconds. Nobody on the way can read it.</span>
      </p>
      <button type="button" class="btn btn-main mt-3 w-full min-h-12" disabled={busy} onClick={onBegin}>
        {busy ? "One moment…" : "Notify me here"}
      </button>
    </>
  );
}

interface OnProps {
  own: PushDevice;
  busy: boolean;
  settle: number;
  onTest: () => void;
  onEnd: () => void;
  onNames: (only: boolean) => void;
}

function On({ own, busy, settle, onTest, onEnd, onNames }: OnProps) {
  return (
    <>
      <p class="flex gap-3">
        <Icon name="check" class="mt-0.5 text-ok" />
        <span class="min-w-0 [overflow-wrap:anywhere]">
          This browser is told
          <span class="block text-sm text-quiet">
            through {own.service}; a turn counts as over after {settle} seconds
          </span>
          {own.problem ? <span class="block text-sm text-bad">{own.problem}</span> : null}
        </span>
      </p>
      <label class="mt-2 flex min-h-11 items-center gap-3">
        <input type="checkbox" class="size-5 accent-accent" checked={own.names_only} disabled={busy} onChange={(event) => onNames(event.currentTarget.checked)} />
        <span>
          Names only
          <span class="block text-sm text-quiet">The lock screen shows the box and the thread, nothing that was said.</span>
        </span>
      </label>
      <div class="mt-2 grid grid-cols-2 gap-2">
        <button type="button" class="btn btn-soft min-h-12" disabled={busy} onClick={onTest}>
          {busy ? "Trying…" : "Try it"}
        </button>
        <button type="button" class="btn btn-soft min-h-12 text-bad" disabled={busy} onClick={onEnd}>
          Turn off
        </button>
      </div>
    </>
  );
}

function Hops({ hops }: { hops: PushHop[] }) {
  return (
    <ol class="mt-3 grid gap-1.5 text-sm" aria-label="What became of the message" data-hops>
      {hops.map((hop) => {
        const tint = TINTS[hop.tint] ?? TINTS.off;
        return (
          <li key={hop.what} class="flex gap-2">
            <span class={tint.tone} role="img" aria-label={tint.word}>
              <Icon name={tint.icon} size={16} class="mt-0.5" />
            </span>
            <span class="min-w-0 [overflow-wrap:anywhere]">
              <span class="font-medium">{hop.what}</span> – {hop.text}
            </span>
          </li>
        );
      })}
    </ol>
  );
}

function Device({ device, busy, onEnd }: { device: PushDevice; busy: boolean; onEnd: () => void }) {
  return (
    <li class="flex items-center gap-3 px-4 py-2.5">
      <span class="min-w-0 flex-1">
        <span class="block truncate">{device.agent || "A browser"}</span>
        <span class="block text-sm text-quiet [overflow-wrap:anywhere]">
          {device.problem ?? (device.told_at_ms ? <>last told <Ago at={Number(device.told_at_ms)} /></> : "not told anything yet")}
        </span>
      </span>
      <button type="button" class="btn btn-soft text-bad" disabled={busy} onClick={onEnd}>
        Turn off
      </button>
    </li>
  );
}
