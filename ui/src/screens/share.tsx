// What another app shared with this one (C54): where it is to go. The worker took it from the system and put
// it aside; nothing is sent before somebody says where.
import { useEffect, useState } from "react";
import { app, remembered } from "../app";
import { Refused, ask, randomId } from "../rest";
import { go } from "../router";
import { useCell } from "../store";
import { draft, keepDraft } from "../thread/outbox";
import { Bar, Scroll, Section } from "../ui/bar";
import { Icon } from "../ui/icons";
import { bytes } from "../ui/time";
import type { BoxInfo } from "../wire";
import { sorted } from "./threads";

const THREADS_MAX = 12;

interface Shared {
  text: string;
  files: File[];
}

const NOTHING: Shared = { text: "", files: [] };

const settled = <T,>(asked: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });

/** What the worker put aside (`sw.js`), once: taken is gone. */
async function takeShared(id: string): Promise<Shared> {
  const asked = indexedDB.open("boxes-shared", 1);
  // Nothing was ever shared with this browser.
  asked.onupgradeneeded = () => asked.result.createObjectStore("shared", { keyPath: "id" });
  const tables = await settled(asked);
  const store = tables.transaction("shared", "readwrite").objectStore("shared");
  const kept = await settled<Partial<Shared> | undefined>(store.get(id));
  await settled(store.delete(id));
  tables.close();
  return { text: kept?.text ?? "", files: kept?.files ?? [] };
}

/** To the composer of a thread, behind what was written there. */
function give(thread: string, shared: Shared): void {
  const before = draft(thread);
  if (shared.text) keepDraft(thread, before ? `${before}\n\n${shared.text}` : shared.text);
  if (shared.files.length > 0) app.staged.set({ thread, files: shared.files });
  go(`/t/${thread}`, "replace");
}

export function ShareScreen({ id }: { id: string }) {
  const [shared, setShared] = useState<Shared | null>(null);
  const [busy, setBusy] = useState(false);
  const threads = useCell(app.threads);
  const boxes = useCell(app.boxes);
  const seen = useCell(app.seen);
  useEffect(() => {
    takeShared(id).then(setShared, () => setShared(NOTHING));
  }, [id]);
  const all = sorted(threads?.values() ?? [], seen);
  const list = [...all.waiting, ...all.running, ...all.finished, ...all.parked, ...all.earlier].slice(0, THREADS_MAX);
  const begin = async (box: string | null) => {
    if (!shared) return;
    setBusy(true);
    try {
      const name = box ?? (await ask<BoxInfo>("POST", "/boxes", { name: `shared-${randomId().slice(0, 6)}` })).name;
      const begun = await ask<{ thread: string }>("POST", `/boxes/${name}/threads`, { agent: remembered("agent", "demo") });
      give(begun.thread, shared);
    } catch (error) {
      app.say(error instanceof Refused ? error.message : "It did not work");
      setBusy(false);
    }
  };
  const nothing = shared !== null && shared.text === "" && shared.files.length === 0;
  const to = "flex min-h-14 w-full items-center gap-3 px-4 text-left hover:bg-sunken/60";
  return (
    <div class="flex h-full flex-col" data-screen="share" data-loaded={shared !== null}>
      <Bar title="Shared with you" from="/" />
      <Scroll>
        {nothing ? <p class="py-16 text-center text-quiet">Nothing was shared.</p> : null}
        {shared && !nothing ? (
          <>
            <div class="card grid gap-2 px-4 py-3">
              {shared.text ? <p class="line-clamp-4 [overflow-wrap:anywhere]">{shared.text}</p> : null}
              {shared.files.map((file) => (
                <p key={file.name} class="flex items-center gap-2 text-sm">
                  <Icon name="file" size={16} class="text-quiet" />
                  <span class="min-w-0 truncate">{file.name}</span> <span class="text-quiet">{bytes(file.size)}</span>
                </p>
              ))}
            </div>
            <Section title="To a thread">
              <ul class="card divide-y divide-line/60 overflow-hidden empty:hidden">
                {list.map((card) => (
                  <li key={card.thread}>
                    <button type="button" class={to} disabled={busy} onClick={() => give(card.thread, shared)} data-share-to={card.thread}>
                      <span class="min-w-0 flex-1">
                        <span class="block truncate font-medium">{card.title || "Untitled"}</span>
                        <span class="block truncate text-sm text-quiet">{card.name}</span>
                      </span>
                      <Icon name="chevron" size={18} class="text-quiet" />
                    </button>
                  </li>
                ))}
              </ul>
            </Section>
            <Section title="To a new thread">
              <ul class="card divide-y divide-line/60 overflow-hidden">
                <li>
                  <button type="button" class={to} disabled={busy} onClick={() => void begin(null)}>
                    <Icon name="plus" class="text-quiet" /> In a new box
                  </button>
                </li>
                {[...(boxes?.values() ?? [])].map((card) => (
                  <li key={card.id}>
                    <button type="button" class={to} disabled={busy} onClick={() => void begin(card.name)}>
                      <Icon name="boxes" class="text-quiet" /> <span class="min-w-0 truncate">{card.title ?? card.name}</span>
                    </button>
                  </li>
                ))}
              </ul>
            </Section>
          </>
        ) : null}
      </Scroll>
    </div>
  );
}
