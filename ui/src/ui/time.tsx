// Times in few words.
import { useEffect, useReducer } from "react";

/** Draws again every `ms`, while it is shown. */
function useTick(ms: number): void {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => tick(undefined), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

export function ago(then: number, now: number): string {
  const s = Math.max(0, Math.round((now - then) / 1000));
  if (s < 45) return "now";
  if (s < 3600) return `${Math.round(s / 60)} min`;
  if (s < 86_400) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86_400)} d`;
}

export function lasted(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 3600) return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

export function clock(at: number): string {
  return new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

export function Ago({ at }: { at: number }) {
  useTick(30_000);
  return (
    <time dateTime={new Date(at).toISOString()} class="tabular-nums">
      {ago(at, Date.now())}
    </time>
  );
}

/** Time that runs. */
export function Since({ at }: { at: number }) {
  useTick(1_000);
  return <span class="tabular-nums">{lasted(Date.now() - at)}</span>;
}

export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
