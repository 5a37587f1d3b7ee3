// A way for one's own ACP client, such as an editor, to speak to a box: an address and a token that is
// good for this box and shown once (C93).
import { useState } from "react";
import { app } from "../app";
import { Refused, ask } from "../rest";
import { Section } from "../ui/bar";

interface Made {
  token: string;
  url: string;
}

export function OwnClient({ name }: { name: string }) {
  const [made, setMade] = useState<Made | null>(null);
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    try {
      setMade(await ask<Made>("POST", "/tokens", { label: `an ACP client of ${name}`, scope: "acp", name }));
    } catch (error) {
      app.say(error instanceof Refused ? error.message : "It did not work");
    } finally {
      setBusy(false);
    }
  };
  return (
    <Section title="Your own client">
      {made ? (
        <div class="card grid gap-3 px-4 py-3.5 text-sm" data-client>
          <Copied label="Address" text={made.url} />
          <Copied label="Token" text={made.token} />
          <p class="text-quiet">The token is shown this once and opens this box only.</p>
        </div>
      ) : (
        <button type="button" class="btn btn-soft w-full" disabled={busy} onClick={() => void make()}>
          Let an editor in by ACP
        </button>
      )}
    </Section>
  );
}

function Copied({ label, text }: { label: string; text: string }) {
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => app.say(`${label} copied`),
      () => app.say("The browser does not let this page copy; select the text"),
    );
  };
  return (
    <div class="flex items-center gap-3">
      <span class="min-w-0 flex-1">
        <span class="label block">{label}</span>
        <span class="font-mono text-[0.8125rem] [overflow-wrap:anywhere]">{text}</span>
      </span>
      <button type="button" class="btn btn-soft" aria-label={`Copy the ${label.toLowerCase()}`} onClick={copy}>
        Copy
      </button>
    </div>
  );
}
