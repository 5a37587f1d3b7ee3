// A token for somebody's own ACP client: made when it is asked for, shown this once.
import { useState } from "react";
import { Refused, ask } from "../rest";
import type { NewToken } from "../wire/NewToken";

export function AcpToken({ name }: { name: string }) {
  const [made, setMade] = useState<NewToken | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const make = async () => {
    try {
      setRefused(null);
      setMade(await ask<NewToken>("POST", "/tokens", { label: `ACP client of ${name}`, scope: "acp", name }));
    } catch (error) {
      setRefused(error instanceof Refused ? error.message : "It did not work");
    }
  };
  return (
    <div class="card grid gap-2 px-4 py-3.5 text-sm">
      <p class="text-quiet">An editor of your own can speak to this box over a WebSocket (ACP).</p>
      {made ? (
        <dl class="grid gap-1">
          <dt class="text-quiet">WebSocket</dt>
          <dd class="font-mono select-all [overflow-wrap:anywhere]">{made.url}</dd>
          <dt class="text-quiet">Protocols</dt>
          <dd class="font-mono select-all [overflow-wrap:anywhere]">acp.v1, bearer.{made.token}</dd>
          <dt class="sr-only">Note</dt>
          <dd class="text-quiet">It is not shown again, and ends in 90 days; box ui token revoke {made.info.id} ends it now.</dd>
        </dl>
      ) : (
        <button type="button" class="btn btn-soft" onClick={make}>
          Make a token
        </button>
      )}
      {refused ? (
        <p role="alert" class="text-bad">
          {refused}
        </p>
      ) : null}
    </div>
  );
}
