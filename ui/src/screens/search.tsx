// Search over everything said and done in all threads.
import { useEffect, useState } from "react";
import { Refused, ask } from "../rest";
import { Bar, Scroll } from "../ui/bar";
import { Icon, type IconName } from "../ui/icons";
import { Ago } from "../ui/time";
import type { Found, Hit } from "../wire";

const TYPED_MS = 250;
const HITS_MAX = 50;
const ICONS: Record<Hit["kind"], IconName> = { prompt: "send", text: "spark", tool: "edit", command: "terminal" };

export function SearchScreen() {
  const [words, setWords] = useState("");
  const [found, setFound] = useState<Found | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  useEffect(() => {
    setRefused(null);
    if (words.trim() === "") {
      setFound(null);
      return undefined;
    }
    let wanted = true;
    const timer = setTimeout(() => {
      const wish = { words, name: null, thread: null, kind: null, order: "relevance", limit: HITS_MAX };
      ask<Found>("POST", "/search", wish).then(
        (said) => wanted && setFound(said),
        (error) => wanted && setRefused(error instanceof Refused ? error.message : "It did not work"),
      );
    }, TYPED_MS);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [words]);
  return (
    <div class="flex h-full flex-col" data-screen="search">
      <Bar title="Search" from="/" />
      <Scroll>
        <input class="field bg-surface ring-1 ring-line" type="search" value={words} placeholder="Words in any thread" aria-label="Search" enterkeyhint="search" onInput={(event) => setWords(event.currentTarget.value)} />
        {refused ? (
          <p role="alert" class="mt-4 text-bad">
            {refused}
          </p>
        ) : null}
        {found && found.hits.length === 0 ? <p class="py-16 text-center text-quiet">Nothing was found.</p> : null}
        <ul class="card mt-4 divide-y divide-line/60 overflow-hidden empty:hidden">
          {(found?.hits ?? []).map((hit) => (
            <li key={`${hit.thread} ${hit.seq}`}>
              <Line hit={hit} words={words} />
            </li>
          ))}
        </ul>
        {found && found.threads_left > 0 ? <p class="mt-3 text-sm text-quiet">{found.threads_left} threads are still being read.</p> : null}
      </Scroll>
    </div>
  );
}

function Line({ hit, words }: { hit: Hit; words: string }) {
  return (
    <a data-inside href={`/t/${hit.thread}?row=${hit.seq}&words=${encodeURIComponent(words)}`} class="flex min-h-16 gap-3 px-4 py-2.5 hover:bg-sunken/60" data-hit={hit.seq}>
      <Icon name={ICONS[hit.kind] ?? "spark"} size={18} class="mt-0.5 text-quiet" />
      <span class="min-w-0 flex-1">
        <span class="flex items-baseline gap-2 text-sm text-quiet">
          <span class="min-w-0 flex-1 truncate">
            {hit.name} · {hit.title}
          </span>
          <Ago at={hit.at_ms} />
        </span>
        <span class="line-clamp-3 [overflow-wrap:anywhere]">
          {hit.snippet.map((part, index) =>
            part.found ? (
              <mark key={index} class="rounded bg-warn-soft text-ink">
                {part.text}
              </mark>
            ) : (
              part.text
            ),
          )}
        </span>
      </span>
    </a>
  );
}
