// A parked thread: until when nothing of it begins, and the way to let it go on before that.
import { useState } from "react";
import { app } from "../app";
import { Refused, ask } from "../rest";
import { clock } from "../ui/time";
import type { ThreadInBox } from "../wire";

export function ParkedLine({ card }: { card: Pick<ThreadInBox, "thread" | "parked_until_ms"> }) {
  const [busy, setBusy] = useState(false);
  const until = card.parked_until_ms ?? null;
  const resume = async () => {
    setBusy(true);
    try {
      await ask("POST", `/threads/${card.thread}/resume`);
    } catch (error) {
      app.say(error instanceof Refused ? error.message : "It did not work");
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="flex items-center gap-3 pr-3 pb-2 pl-13 text-sm text-quiet" data-parked={card.thread}>
      <span class="min-w-0 flex-1">{until ? `Goes on by itself at ${clock(until)}` : "Until somebody lets it go on"}</span>
      <button type="button" class="btn btn-soft" disabled={busy} onClick={() => void resume()}>
        Resume now
      </button>
    </div>
  );
}
