// What is offered while a person writes `/` or `@`: a list above the composer, by key or by thumb.
import { useEffect, useState } from "react";
import { ask } from "../rest";
import { Shown } from "../ui/hidden";
import type { AgentCommand, AgentCommands, FoundFiles } from "../wire";
import { type Wanted, fitting } from "./complete";

const TYPED_MS = 120;

export interface Offer {
  /** What is put in for it. */
  word: string;
  about: string;
}

/** What the host said to one question. */
interface Files {
  typed: string;
  files: string[];
}

/** What fits `want` now. `null` while nothing is known, which is shown as nothing. */
export function useOffers(want: Wanted | null, thread: string, box: string | null, told: readonly AgentCommand[] | null): Offer[] | null {
  const [asked, setAsked] = useState<readonly AgentCommand[] | null>(null);
  const [files, setFiles] = useState<Files | null>(null);
  const commands = told ?? asked;
  const kind = want?.kind ?? null;
  const typed = want?.typed ?? "";

  useEffect(() => setAsked(null), [thread]);
  useEffect(() => {
    if (kind !== "command" || commands !== null) return;
    // What the agent offers it said at its start: far above what is loaded.
    ask<AgentCommands>("GET", `/threads/${thread}/commands`).then(
      (said) => setAsked(said.commands),
      () => undefined,
    );
  }, [kind, thread, commands === null]);
  useEffect(() => {
    if (kind !== "file" || !box) return undefined;
    let wished = true;
    const timer = setTimeout(() => {
      ask<FoundFiles>("GET", `/boxes/${encodeURIComponent(box)}/workspace?find=${encodeURIComponent(typed)}`).then(
        (said) => wished && setFiles({ typed, files: said.files }),
        () => wished && setFiles({ typed, files: [] }),
      );
    }, TYPED_MS);
    return () => {
      wished = false;
      clearTimeout(timer);
    };
  }, [kind, typed, box]);

  if (kind === "command") return commands === null ? null : fitting(commands, typed).map((one) => ({ word: one.name, about: one.hint ? `${one.about} ‹${one.hint}›` : one.about }));
  // What was found for a shorter word is no answer to a longer one, but better than a gap.
  if (kind === "file") return files === null ? null : files.files.map((file) => ({ word: file, about: "" }));
  return null;
}

export interface SuggestProps {
  id: string;
  kind: "command" | "file";
  offers: Offer[];
  chosen: number;
  onChoose: (offer: Offer) => void;
}

export function Suggest({ id, kind, offers, chosen, onChoose }: SuggestProps) {
  return (
    <ul id={id} role="listbox" aria-label={kind === "command" ? "Commands of the agent" : "Files of the box"} class="max-h-[32dvh] overflow-y-auto rounded-t-[24px] border-b border-line py-1.5" data-suggest={kind}>
      {offers.map((offer, index) => (
        <li
          key={offer.word}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === chosen}
          class={`flex min-h-11 cursor-pointer items-baseline gap-3 px-4 py-2 ${index === chosen ? "bg-accent-soft" : "hover:bg-sunken"}`}
          ref={index === chosen ? (line) => line?.scrollIntoView({ block: "nearest" }) : undefined}
          // The text keeps the focus: the keyboard of a phone stays where it is.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onChoose(offer)}
        >
          <span class="min-w-0 font-mono text-[0.8125rem] [overflow-wrap:anywhere]">
            {kind === "command" ? "/" : ""}
            <Shown text={offer.word} />
          </span>
          {offer.about ? (
            <span class="min-w-0 flex-1 truncate text-sm text-quiet">
              <Shown text={offer.about} />
            </span>
          ) : null}
        </li>
      ))}
    </ul>
  );
}
