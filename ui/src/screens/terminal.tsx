// A terminal in a box: a shell of its own, with keys for those who have no keyboard.
import { useEffect, useRef, useState } from "react";
import { useCell } from "../store";
import { type Standing, TerminalLink } from "../terminal/link";
import { carefully, colours, terminal as makeTerminal } from "../terminal/xterm";
import { Bar } from "../ui/bar";

const KEYS: { word: string; name: string; types: string }[] = [
  { word: "Esc", name: "Escape", types: "\x1b" },
  { word: "Tab", name: "Tab", types: "\t" },
  { word: "^C", name: "Control C", types: "\x03" },
  { word: "^D", name: "Control D", types: "\x04" },
  { word: "↑", name: "Up", types: "\x1b[A" },
  { word: "↓", name: "Down", types: "\x1b[B" },
  { word: "←", name: "Left", types: "\x1b[D" },
  { word: "→", name: "Right", types: "\x1b[C" },
];

export function TerminalScreen({ name }: { name: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [link, setLink] = useState<TerminalLink | null>(null);
  useEffect(() => {
    const parent = place.current;
    if (!parent) return undefined;
    const usual = carefully();
    const { terminal, fit } = makeTerminal();
    terminal.open(parent);
    fit.fit();
    const made = new TerminalLink(name, {
      write: (bytes, shown) => terminal.write(bytes, shown),
      clear: () => terminal.reset(),
      size: () => ({ rows: terminal.rows, columns: terminal.cols }),
    });
    const typed = terminal.onData((text) => made.type(text));
    const resized = terminal.onResize(() => made.resized());
    const watch = new ResizeObserver(() => fit.fit());
    watch.observe(parent);
    const theme = new MutationObserver(() => {
      terminal.options.theme = colours();
    });
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    made.open();
    setLink(made);
    if (!matchMedia("(pointer: coarse)").matches) terminal.focus();
    return () => {
      watch.disconnect();
      theme.disconnect();
      typed.dispose();
      resized.dispose();
      made.close();
      terminal.dispose();
      usual();
    };
  }, [name]);
  return (
    <div class="flex h-full flex-col" data-screen="terminal">
      <Bar title="Terminal" from={`/b/${name}`} under={name} />
      <div ref={place} role="group" aria-label={`Terminal in ${name}`} class="bleed min-h-0 flex-1 overflow-hidden px-2 pt-1" />
      {link ? <Standing link={link} /> : null}
      {link ? <Keys link={link} /> : null}
    </div>
  );
}

function Standing({ link }: { link: TerminalLink }) {
  const standing = useCell(link.standing);
  const text = said(standing);
  return (
    <div role="status" class="shrink-0 px-4 text-sm" data-terminal={standing.at}>
      {text ? (
        <div class="flex items-center gap-3 py-1">
          <span class="min-w-0 flex-1 text-quiet">{text}</span>
          {standing.at === "connecting" ? null : (
            <button type="button" class="btn btn-soft" onClick={() => link.open()}>
              {standing.at === "ended" ? "New shell" : "Open it here"}
            </button>
          )}
        </div>
      ) : null}
    </div>
  );
}

function said(standing: Standing): string | null {
  switch (standing.at) {
    case "open":
      return null;
    case "connecting":
      return "Connecting…";
    case "ended":
      return `The shell is over (${standing.code}).`;
    case "closed":
      return standing.why[0]!.toUpperCase() + standing.why.slice(1);
  }
}

/** A line of its own for keyboards that correct what is typed, and the keys they lack. */
function Keys({ link }: { link: TerminalLink }) {
  const [line, setLine] = useState("");
  const run = (event: Event) => {
    event.preventDefault();
    link.type(`${line}\r`);
    setLine("");
  };
  return (
    <div class="shrink-0 border-t border-line/70 bg-surface px-2 pt-1 pb-[max(0.5rem,env(safe-area-inset-bottom))] [@media(pointer:fine)]:hidden">
      <div class="flex gap-1 overflow-x-auto" role="toolbar" aria-label="Keys">
        {KEYS.map((key) => (
          <button key={key.word} type="button" class="btn btn-soft min-w-12 shrink-0 px-2 font-mono" aria-label={key.word === key.name ? key.name : `${key.word} ${key.name}`} onClick={() => link.type(key.types)}>
            {key.word}
          </button>
        ))}
      </div>
      <form class="mt-1 flex gap-2" onSubmit={run}>
        <input class="field min-w-0 flex-1 font-mono" aria-label="Line to run" value={line} autocapitalize="none" autocomplete="off" spellcheck={false} enterkeyhint="send" onInput={(event) => setLine(event.currentTarget.value)} />
        <button type="submit" class="btn btn-main">
          Run
        </button>
      </form>
    </div>
  );
}
