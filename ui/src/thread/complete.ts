// What a person is in the middle of writing: a command of the agent, or a file of the box.
import type { AgentCommand } from "../wire";

/** The piece of the text that a choice would replace. */
export interface Wanted {
  kind: "command" | "file";
  from: number;
  to: number;
  /** Without the sign. */
  typed: string;
}

/** Most that are offered. */
const OFFERED_MAX = 20;

/** A `/` counts at the very beginning only, an `@` at the beginning of a word. Behind a `!` the
 * shell reads, not the agent. */
export function wanted(text: string, caret: number): Wanted | null {
  const before = text.slice(0, caret);
  if (before.startsWith("!")) return null;
  const command = /^\/([^\s/]*)$/.exec(before);
  if (command) return { kind: "command", from: 0, to: caret, typed: command[1]! };
  const file = /(?:^|[\s("'`])@([^\s@]*)$/.exec(before);
  if (file) return { kind: "file", from: caret - file[1]!.length - 1, to: caret, typed: file[1]! };
  return null;
}

/** The text once `word` was chosen, and where one writes on. */
export function taken(text: string, want: Wanted, word: string): { text: string; caret: number } {
  const sign = want.kind === "command" ? "/" : "@";
  const rest = text.slice(want.to);
  const said = `${text.slice(0, want.from)}${sign}${word}${/^\s/.test(rest) ? "" : " "}`;
  return { text: said + rest, caret: said.length + (/^\s/.test(rest) ? 1 : 0) };
}

/** Commands that fit, those that begin with it first. */
export function fitting(commands: readonly AgentCommand[], typed: string): AgentCommand[] {
  const low = typed.toLowerCase();
  const begins = commands.filter((one) => one.name.toLowerCase().startsWith(low));
  const holds = commands.filter((one) => !begins.includes(one) && one.name.toLowerCase().includes(low));
  return [...begins, ...holds].slice(0, OFFERED_MAX);
}
