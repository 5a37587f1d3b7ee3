// Prompts on their way to the host, and drafts. Both outlive the tab.
import { app, remember, remembered } from "../app";
import { inWords, randomId } from "../rest";
import { Cell } from "../store";
import type { Attachment } from "./attach";

/** Longest prompt that is sent as a prompt. */
export const PROMPT_BYTES_MAX = 120_000;

export interface Sending {
  cid: string;
  text: string;
  failed: string | null;
}

const outboxes = new Map<string, Cell<readonly Sending[]>>();

/** What is on its way in a thread. What an earlier tab did not get rid of is sent again: the host
 * knows by its id whether it has it already. */
export function outbox(thread: string): Cell<readonly Sending[]> {
  const known = outboxes.get(thread);
  if (known) return known;
  const kept = remembered<Sending[]>(`sending:${thread}`, []);
  const cell = new Cell<readonly Sending[]>(kept);
  cell.watch(() => remember(`sending:${thread}`, cell.get().length > 0 ? cell.get() : null));
  outboxes.set(thread, cell);
  for (const sending of kept) if (!sending.failed) void deliver(thread, sending);
  return cell;
}

export function send(thread: string, text: string): void {
  const sending: Sending = { cid: randomId(), text, failed: null };
  outbox(thread).update((all) => [...all, sending]);
  void deliver(thread, sending);
}

export function drop(thread: string, cid: string): void {
  outbox(thread).update((all) => all.filter((sending) => sending.cid !== cid));
}

async function deliver(thread: string, sending: Sending): Promise<void> {
  const problem = await app.prompt(thread, sending.text, sending.cid);
  if (!problem) drop(thread, sending.cid);
  else outbox(thread).update((all) => all.map((other) => (other.cid === sending.cid ? { ...other, failed: inWords(problem) } : other)));
}

export const draft = (thread: string): string => remembered(`draft:${thread}`, "");
export const keepDraft = (thread: string, text: string): void => remember(`draft:${thread}`, text === "" ? null : text);

/** Files that lie in the box for a prompt that is not sent yet. What was still on its way is gone with its tab. */
export const keptFiles = (thread: string): Attachment[] => remembered(`files:${thread}`, []);
export const keepFiles = (thread: string, files: readonly Attachment[]): void => {
  const there = files.filter((file) => file.path !== null).map((file) => ({ ...file, preview: null }));
  remember(`files:${thread}`, there.length > 0 ? there : null);
};
