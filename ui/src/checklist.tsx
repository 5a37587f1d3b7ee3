// What is on here, what is off and why; and an agent's account by a token that is pasted.
import { useEffect, useState } from "react";
import { Refused, ask } from "./rest";
import { Section } from "./ui/bar";
import { Icon } from "./ui/icons";
import { TINTS } from "./ui/tints";
import type { Check } from "./wire";

export function Checklist({ title = "Checklist" }: { title?: string }) {
  const [checks, setChecks] = useState<Check[] | null>(null);
  const load = () =>
    ask<{ checks: Check[] }>("GET", "/checklist").then(
      (said) => setChecks(said.checks),
      () => undefined,
    );
  useEffect(() => void load(), []);
  if (!checks) return null;
  return (
    <Section title={title}>
      <ul class="card divide-y divide-line/60" data-checklist>
        {checks.map((check) => {
          const tint = TINTS[check.tint] ?? TINTS.off;
          return (
            <li key={check.what} class="flex gap-3 px-4 py-3" data-check={check.what} data-tint={check.tint}>
              <span class={tint.tone} role="img" aria-label={tint.word}>
                <Icon name={tint.icon} class="mt-0.5" />
              </span>
              <div class="min-w-0 flex-1 [overflow-wrap:anywhere]">
                <p>
                  <span class="font-medium capitalize">{check.what}</span>
                  <span class="block text-sm text-quiet">{check.text}</span>
                  {check.hint ? <span class="mt-0.5 block text-sm">{check.hint.replaceAll("`", "")}</span> : null}
                </p>
                {check.login ? <Login kind={check.login} onDone={load} /> : null}
              </div>
            </li>
          );
        })}
      </ul>
    </Section>
  );
}

/** The token is in this field and on its way; the host never says it again. */
function Login({ kind, onDone }: { kind: string; onDone: () => Promise<void> }) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Refused | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    if (token.trim() === "" || busy) return;
    setBusy(true);
    setRefused(null);
    try {
      await ask("POST", "/logins", { kind, token: token.trim() });
      setToken("");
      await onDone();
    } catch (error) {
      if (error instanceof Refused) setRefused(error);
    }
    setBusy(false);
  };
  return (
    <form class="mt-2 grid gap-2" onSubmit={send}>
      <div class="flex gap-2">
        <input
          class="field min-w-0 flex-1"
          type="password"
          value={token}
          aria-label={`Token for ${kind}`}
          placeholder="Paste a token"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="btn btn-soft" disabled={busy || token.trim() === ""}>
          {busy ? "…" : "Give"}
        </button>
      </div>
      {refused ? (
        <p role="alert" class="text-sm text-bad">
          {refused.message}
          {refused.problem.hint ? <span class="block text-ink">{refused.problem.hint.replaceAll("`", "")}</span> : null}
        </p>
      ) : null}
    </form>
  );
}
