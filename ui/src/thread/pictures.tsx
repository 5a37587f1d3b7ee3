// Pictures in a thread (C56): fetched as bytes and shown as an image and nothing else, small in its
// place, large on a tap.
import { useEffect, useRef, useState } from "react";
import { download } from "../rest";
import { Icon } from "../ui/icons";

/** What is shown as a picture. A browser runs nothing of an SVG that stands in an `img`. */
const SHOWN = new Set(["image/png", "image/jpeg", "image/webp", "image/gif", "image/svg+xml"]);
/** Pictures kept while others are looked at. */
const KEPT_MAX = 24;

export const isPicture = (type: string): boolean => SHOWN.has(type.toLowerCase());

/** Where a picture comes from. */
export type Source = { key: string; load: () => Promise<Blob> };

const kept = new Map<string, Promise<string>>();

/** An address for it that is good in this page only. */
function address(source: Source): Promise<string> {
  const known = kept.get(source.key);
  const found = known ?? source.load().then((blob) => URL.createObjectURL(blob));
  kept.delete(source.key);
  kept.set(source.key, found);
  for (const [key, old] of kept) {
    if (kept.size <= KEPT_MAX) break;
    kept.delete(key);
    void old.then(URL.revokeObjectURL, () => undefined);
  }
  if (!known) found.catch(() => kept.delete(source.key));
  return found;
}

const filePath = (box: string, name: string): string => `/boxes/${encodeURIComponent(box)}/files?name=${encodeURIComponent(name)}`;

/** A file that was attached in this box. */
export const attached = (box: string, name: string, type: string): Source => ({
  key: `${box}/${name}`,
  // As what it was attached as: a file cannot become something else on its way.
  load: async () => new Blob([await download(filePath(box, name))], { type }),
});

/** Bytes an agent sent; `null` when it is no picture this page shows. */
export function sent(raw: unknown): Source | null {
  const block = raw as { type?: unknown; data?: unknown; mimeType?: unknown; content?: unknown } | null;
  if (block?.type === "content") return sent(block.content);
  if (block?.type !== "image" || typeof block.data !== "string" || !isPicture(String(block.mimeType))) return null;
  const { data, mimeType } = block;
  const key = `${data.length} ${data.slice(0, 200)} ${data.slice(-200)}`;
  return { key, load: async () => new Blob([Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0))], { type: String(mimeType) }) };
}

export function Picture({ source, name }: { source: Source; name: string }) {
  const [href, setHref] = useState<string | null>(null);
  const [failed, setFailed] = useState(false);
  const [large, setLarge] = useState(false);
  useEffect(() => {
    let wanted = true;
    setFailed(false);
    address(source).then(
      (found) => wanted && setHref(found),
      () => wanted && setFailed(true),
    );
    return () => {
      wanted = false;
    };
  }, [source.key]);
  if (failed) {
    return (
      <p class="flex items-center gap-2 text-sm text-quiet" data-picture="failed">
        <Icon name="warn" size={16} /> {name} cannot be shown
      </p>
    );
  }
  return (
    <>
      <button type="button" class="grid min-h-24 w-fit max-w-full min-w-24 place-items-center justify-self-start overflow-hidden rounded-xl bg-sunken ring-1 ring-line" aria-label={`Show ${name} large`} onClick={() => setLarge(true)} data-picture={href ? "shown" : "loading"}>
        {href ? <img src={href} alt={name} class="max-h-72 max-w-full" onError={() => setFailed(true)} /> : <span class="pulse block h-24 w-40" />}
      </button>
      {large && href ? <Large href={href} name={name} onClose={() => setLarge(false)} /> : null}
    </>
  );
}

/** As wide as the screen, then dot by dot: a tap changes over. */
function Large({ href, name, onClose }: { href: string; name: string; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [whole, setWhole] = useState(true);
  useEffect(() => {
    const shown = dialog.current;
    if (shown && !shown.open) shown.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog ref={dialog} class="large" aria-label={name} onClose={onClose} data-large={whole ? "whole" : "zoomed"}>
      <div class="h-full overflow-auto overscroll-contain" tabIndex={0} role="region" aria-label={name}>
        <img src={href} alt={name} class={whole ? "mx-auto h-full max-w-full object-contain" : "max-w-none"} />
      </div>
      <div class="fixed right-3 bottom-4 flex gap-2">
        <button type="button" class="btn bg-raised text-ink ring-1 ring-line" onClick={() => setWhole(!whole)}>
          {whole ? "Zoom in" : "Fit"}
        </button>
        <button type="button" class="btn bg-raised text-ink ring-1 ring-line" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}

/** A file of a box in a tab or on the disk of whoever looks. */
export async function take(box: string, name: string, type: string): Promise<void> {
  const href = URL.createObjectURL(new Blob([await download(filePath(box, name))], { type }));
  if (type === "application/pdf") {
    window.open(href, "_blank", "noopener");
    return;
  }
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}
