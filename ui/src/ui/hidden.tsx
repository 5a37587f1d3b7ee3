// Characters that hide, turn around or erase what stands beside them, made visible wherever a person
// reads what an agent wrote to be carried out or believed.
import type { ComponentChildren } from "preact";

const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;

const named = (character: string): string => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** The text with what hides made visible, and how much of that there was. */
export function unhidden(text: string): { text: string; count: number } {
  let count = 0;
  const shown = text.replace(HIDDEN, (character) => {
    count += 1;
    return named(character);
  });
  return { text: shown, count };
}

/** The text with what hides marked. */
export function Shown({ text }: { text: string }): ComponentChildren {
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    parts.push(text.slice(from, found.index), <mark class="rounded bg-bad-soft px-0.5 text-bad" data-hidden>{named(found[0])}</mark>);
    from = found.index + found[0].length;
  }
  return from === 0 ? text : <>{parts}{text.slice(from)}</>;
}
