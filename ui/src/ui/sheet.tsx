// A sheet: the browser's own dialog, so that focus, Escape and the backdrop are right.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "react";
import { Icon } from "./icons";

export function Sheet({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const shown = dialog.current;
    if (shown && !shown.open) shown.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class="sheet"
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) dialog.current?.close();
      }}
    >
      <div class="sticky top-0 z-10 flex items-center gap-2 bg-surface py-2 pr-2 pl-5">
        <h2 id={id} class="min-w-0 flex-1 truncate text-lg font-semibold">
          {title}
        </h2>
        <button type="button" class="btn-icon" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon name="cross" />
        </button>
      </div>
      <div class="px-5 pb-5">{children}</div>
    </dialog>
  );
}
