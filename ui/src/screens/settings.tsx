// Settings: how it looks here, who is told, what is on, and which browsers are paired.
import { useEffect, useState } from "react";
import { app } from "../app";
import { Checklist } from "../checklist";
import { Notifications } from "../push/section";
import { Refused, ask } from "../rest";
import { useCell } from "../store";
import { type Theme, chooseTheme, keptTheme } from "../theme";
import { Bar, Scroll, Section } from "../ui/bar";
import { Ago } from "../ui/time";
import type { SignIn } from "../wire";

const THEMES: { theme: Theme; label: string }[] = [
  { theme: "system", label: "As the device" },
  { theme: "light", label: "Light" },
  { theme: "dark", label: "Dark" },
];

export function SettingsScreen() {
  const [theme, setTheme] = useState(keptTheme);
  const me = useCell(app.me);
  return (
    <div class="flex h-full flex-col" data-screen="settings">
      <Bar title="Settings" />
      <Scroll>
        <Section title="Appearance">
          <div class="card grid grid-cols-3 gap-1 p-1" role="radiogroup" aria-label="Appearance">
            {THEMES.map((one) => (
              <button
                key={one.theme}
                type="button"
                role="radio"
                aria-checked={theme === one.theme}
                class={`btn px-2 ${theme === one.theme ? "bg-accent-soft text-ink" : "text-quiet"}`}
                onClick={() => {
                  setTheme(one.theme);
                  chooseTheme(one.theme);
                }}
              >
                {one.label}
              </button>
            ))}
          </div>
        </Section>
        <Notifications />
        <Checklist title="What is on" />
        <SignIns own={me?.sign_in ?? null} />
        {me ? <p class="mt-6 px-1 text-[0.8125rem] text-quiet [overflow-wrap:anywhere]">Build {me.build}</p> : null}
      </Scroll>
    </div>
  );
}

function SignIns({ own }: { own: string | null }) {
  const [list, setList] = useState<SignIn[] | null>(null);
  const load = () => {
    ask<{ sign_ins: SignIn[] }>("GET", "/sign-ins").then(
      (said) => setList(said.sign_ins),
      () => undefined,
    );
  };
  useEffect(load, []);
  const revoke = async (id: string) => {
    try {
      await ask("DELETE", `/sign-ins/${encodeURIComponent(id)}`);
      load();
    } catch (error) {
      app.say(error instanceof Refused ? error.message : "It did not work");
    }
  };
  const out = async () => {
    try {
      await ask("POST", "/sign-out");
    } finally {
      app.link.stop();
      app.link.standing.set("signed-out");
    }
  };
  if (!list) return null;
  return (
    <Section title="Paired browsers">
      <ul class="card divide-y divide-line/60">
        {list.map((one) => (
          <li key={one.id} class="flex items-center gap-3 px-4 py-2.5">
            <span class="min-w-0 flex-1">
              <span class="block truncate">{one.agent || "A browser"}</span>
              <span class="block text-sm text-quiet">{one.id === own ? "this one" : <>last seen <Ago at={Number(one.seen_at_ms)} /></>}</span>
            </span>
            {one.id === own ? (
              <button type="button" class="btn btn-soft" onClick={out}>
                Sign out
              </button>
            ) : (
              <button type="button" class="btn btn-soft text-bad" onClick={() => revoke(one.id)}>
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
      <p class="mt-2 px-1 text-sm text-quiet">
        Pair another with <code class="rounded bg-sunken px-1.5 py-0.5 font-mono text-[0.8125rem]">box ui</code>
      </p>
    </Section>
  );
}
