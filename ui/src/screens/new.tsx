// A new box, or a new thread in one: the prompt first, everything else folded with its default.
import { useEffect, useState } from "react";
import { app, remember, remembered } from "../app";
import { Refused, ask } from "../rest";
import { go } from "../router";
import { useCell } from "../store";
import { Bar, Scroll } from "../ui/bar";
import { Icon } from "../ui/icons";

interface Agent {
  agent: string;
  title: string;
  state: string;
}

const NETS = [
  { value: "balanced", label: "Balanced", says: "registries and code hosts" },
  { value: "open", label: "Open", says: "everything public" },
  { value: "locked", label: "Locked", says: "nothing but what you list" },
];

export function NewScreen({ box }: { box: string | null }) {
  const [prompt, setPrompt] = useState<string>(() => remembered("draft:new", ""));
  const [agents, setAgents] = useState<Agent[] | null>(null);
  const [agent, setAgent] = useState<string>(() => remembered("agent", "demo"));
  const [name, setName] = useState("");
  const [repo, setRepo] = useState("");
  const [net, setNet] = useState<string | null>(null);
  const [allowAll, setAllowAll] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Refused | null>(null);
  const me = useCell(app.me);

  useEffect(() => {
    ask<{ agents: Agent[] }>("GET", "/agents").then(
      (said) => setAgents(said.agents),
      () => undefined,
    );
  }, [me?.sign_in]);
  const known = agents ?? [{ agent: "demo", title: "Demo", state: "built in" }];
  const chosen = known.some((one) => one.agent === agent) ? agent : (known[0]?.agent ?? "demo");
  const change = (text: string) => {
    setPrompt(text);
    remember("draft:new", text || null);
  };
  const begin = async (event: Event) => {
    event.preventDefault();
    if (prompt.trim() === "" || busy) return;
    setBusy(true);
    setRefused(null);
    try {
      const begun = await ask<{ thread: string }>("POST", "/threads", {
        agent: chosen,
        prompt: prompt.trim(),
        ...(box ?? name ? { name: box ?? name } : {}),
        ...(repo ? { repo } : {}),
        ...(net ? { net } : {}),
        ...(allowAll ? { allow_all: true } : {}),
      });
      remember("draft:new", null);
      remember("agent", chosen);
      go(`/t/${begun.thread}`, "replace");
    } catch (error) {
      if (error instanceof Refused) setRefused(error);
      setBusy(false);
    }
  };
  return (
    <div class="flex h-full flex-col" data-screen="new">
      <Bar title={box ? `New thread in ${box}` : "New box"} from={box ? `/b/${box}` : "/"} />
      <Scroll>
        <form onSubmit={begin} class="grid grid-cols-1 gap-4">
          <textarea
            class="card min-h-36 w-full resize-y p-4 text-base ring-1 ring-line placeholder:text-quiet focus:ring-2 focus:ring-accent"
            placeholder="What is to be done?"
            aria-label="Prompt"
            value={prompt}
            onInput={(event) => change(event.currentTarget.value)}
          />
          <fieldset>
            <legend class="label mb-1.5 px-1">Agent</legend>
            <div class="flex flex-wrap gap-2">
              {known.map((one) => (
                <Choice key={one.agent} name="agent" value={one.agent} chosen={chosen} onChoose={setAgent} label={one.title || one.agent} says={one.agent === "demo" ? "no AI, no account" : one.state} />
              ))}
            </div>
          </fieldset>
          {box ? null : (
            <details class="card px-4">
              <summary class="flex min-h-12 items-center gap-2 text-sm text-quiet">
                <span class="min-w-0 flex-1 truncate">
                  {name || "A name is made up"} · {repo || "no repository"} · {net ?? "network as set"}
                </span>
                <Icon name="chevron" size={16} class="chevron" />
              </summary>
              <div class="grid gap-4 pb-4">
                <label class="grid gap-1.5">
                  <span class="label">Name</span>
                  <input class="field" value={name} placeholder="made up" autocapitalize="none" autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />
                </label>
                <label class="grid gap-1.5">
                  <span class="label">Repository</span>
                  <input class="field" value={repo} placeholder="https://…" inputMode="url" autocapitalize="none" autocomplete="off" spellcheck={false} onInput={(event) => setRepo(event.currentTarget.value)} />
                </label>
                <fieldset>
                  <legend class="label mb-1.5">Network</legend>
                  <div class="flex flex-wrap gap-2">
                    {NETS.map((one) => (
                      <Choice key={one.value} name="net" value={one.value} chosen={net} onChoose={setNet} label={one.label} says={one.says} />
                    ))}
                  </div>
                </fieldset>
                <label class="flex min-h-11 items-center gap-3">
                  <input type="checkbox" class="size-5 accent-accent" checked={allowAll} onChange={(event) => setAllowAll(event.currentTarget.checked)} />
                  <span>
                    Let it work without asking
                    <span class="block text-sm text-quiet">The box is the boundary.</span>
                  </span>
                </label>
              </div>
            </details>
          )}
          {refused ? (
            <div role="alert" class="rounded-xl bg-bad-soft px-4 py-3 text-sm text-bad">
              {refused.message}
              {refused.problem.hint ? <span class="mt-1 block text-ink">{refused.problem.hint}</span> : null}
            </div>
          ) : null}
          <button type="submit" class="btn btn-main min-h-12" disabled={busy || prompt.trim() === ""}>
            {busy ? (box ? "Beginning…" : "Making the box…") : "Begin"}
          </button>
        </form>
      </Scroll>
    </div>
  );
}

interface ChoiceProps {
  name: string;
  value: string;
  chosen: string | null;
  onChoose: (value: string) => void;
  label: string;
  says: string;
}

function Choice({ name, value, chosen, onChoose, label, says }: ChoiceProps) {
  return (
    <label class="flex min-h-12 cursor-pointer flex-col justify-center rounded-xl bg-surface px-4 py-1.5 ring-1 ring-line has-checked:bg-accent-soft has-checked:ring-2 has-checked:ring-accent has-focus-visible:outline-2">
      <input type="radio" class="sr-only" name={name} value={value} checked={chosen === value} onChange={() => onChoose(value)} />
      <span class="text-[0.9375rem] font-medium">{label}</span>
      <span class="text-[0.8125rem] text-quiet">{says}</span>
    </label>
  );
}
