// What the page knows: who it is, boxes, threads, decisions, and the threads that are open.
import { Link, type Follower, type Wire } from "./link";
import { Refused, ask, proof, randomId } from "./rest";
import { Cell } from "./store";
import { ThreadStore } from "./thread/store";
import type { BoxCard, FormAnswer, Me, Problem, ServerFrame, ThreadAct, ThreadInBox, Topic, Waiting } from "./wire";

/** Threads that are kept while others are looked at. */
const THREADS_KEPT_MAX = 6;

export class App {
  readonly me = new Cell<Me | null>(null);
  readonly boxes = new Cell<ReadonlyMap<string, BoxCard> | null>(null);
  readonly threads = new Cell<ReadonlyMap<string, ThreadInBox> | null>(null);
  readonly decisions = new Cell<ReadonlyMap<string, Waiting> | null>(null);
  /** What was answered here and is not yet known to be over, with why it was not taken. */
  readonly answered = new Cell<ReadonlyMap<string, string>>(new Map());
  /** When each thread was last looked at. */
  readonly seen = new Cell<Readonly<Record<string, number>>>(remembered("seen", {}));
  /** A word about something that was done, with a way back. */
  readonly said = new Cell<{ text: string; undo?: () => void } | null>(null);
  /** Files another app shared with this one, on their way to the composer of a thread. */
  readonly staged = new Cell<{ thread: string; files: File[] } | null>(null);
  readonly link: Link;
  #open = new Map<string, ThreadStore>();

  constructor(connect: () => Wire = socket) {
    this.link = new Link({ connect, signedIn: () => this.signIn() });
    this.link.follow(new Topical("boxes", this.boxes, (frame) => (frame.frame === "boxes" ? changes(frame, frame.boxes, (card) => card.id) : null)));
    this.link.follow(new Topical("threads", this.threads, (frame) => (frame.frame === "threads" ? changes(frame, frame.threads, (card) => card.thread) : null)));
    this.link.follow(
      new Topical("decisions", this.decisions, (frame) => (frame.frame === "decisions" ? changes(frame, frame.decisions, (waiting) => String(waiting.decision.decision)) : null)),
    );
  }

  /** Whether the host knows this browser. What cannot be asked is taken for yes. */
  async signIn(): Promise<boolean> {
    try {
      this.me.set(await ask<Me>("GET", "/me"));
      return true;
    } catch (error) {
      return !(error instanceof Refused && (error.status === 401 || error.status === 403));
    }
  }

  thread(id: string): ThreadStore {
    const known = this.#open.get(id);
    const store = known ?? new ThreadStore(id, this.link);
    // The one used last is the last to be forgotten.
    this.#open.delete(id);
    this.#open.set(id, store);
    for (const old of this.#open.keys()) {
      if (this.#open.size <= THREADS_KEPT_MAX) break;
      this.#open.delete(old);
    }
    return store;
  }

  look(thread: string): void {
    this.seen.update((seen) => ({ ...seen, [thread]: Date.now() }));
    const newest = Object.entries(this.seen.get()).sort(([, a], [, b]) => b - a);
    remember("seen", Object.fromEntries(newest.slice(0, 200)));
  }

  /** Fills in a form, or says no to it. */
  async fill(decision: number, answer: FormAnswer): Promise<Problem | null> {
    const key = String(decision);
    this.answered.update((all) => new Map(all).set(key, answer.do));
    const problem = await this.link.command({ do: "answer_form", decision, answer });
    if (problem) this.forget(key);
    return problem;
  }

  async answer(decision: number, option: string): Promise<Problem | null> {
    const key = String(decision);
    this.answered.update((all) => new Map(all).set(key, option));
    const problem = await this.link.command({ do: "answer", decision, option });
    // Whether it worked or somebody was faster: the host's own word takes over.
    if (problem) this.forget(key);
    return problem;
  }

  forget(decision: string): void {
    this.answered.update((all) => {
      const left = new Map(all);
      left.delete(decision);
      return left;
    });
  }

  prompt(thread: string, text: string, cid = randomId()): Promise<Problem | null> {
    return this.act(thread, { act: "prompt", text }, cid);
  }

  act(thread: string, act: ThreadAct, cid = randomId()): Promise<Problem | null> {
    return this.link.command({ do: "thread", thread, act }, cid);
  }

  say(text: string, undo?: () => void): void {
    this.said.set(undo ? { text, undo } : { text });
  }
}

interface Changes<T> {
  whole: boolean;
  items: [string, T][];
  gone: string[];
}

function changes<T>(frame: { whole: boolean; gone: readonly unknown[] }, items: T[], key: (item: T) => string): Changes<T> {
  return { whole: frame.whole, items: items.map((item) => [key(item), item]), gone: frame.gone.map(String) };
}

/** A topic that is a set of things by their ids. */
class Topical<T> implements Follower {
  constructor(
    private readonly name: "boxes" | "threads" | "decisions",
    private readonly cell: Cell<ReadonlyMap<string, T> | null>,
    private readonly read: (frame: ServerFrame) => Changes<T> | null,
  ) {}

  topic(): Topic {
    return { topic: this.name };
  }

  frame(frame: ServerFrame): void {
    const read = this.read(frame);
    if (!read) return;
    const next = new Map(read.whole ? [] : this.cell.get());
    for (const [key, item] of read.items) next.set(key, item);
    for (const key of read.gone) next.delete(key);
    this.cell.set(next);
  }
}

function socket(): Wire {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(`${scheme}//${location.host}/ws`, ["boxes", proof()]) as unknown as Wire;
}

/** Kept in this browser. Private windows may have no storage. */
export function remembered<T>(name: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(`boxes:${name}`);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

export function remember(name: string, value: unknown): void {
  try {
    if (value === null) localStorage.removeItem(`boxes:${name}`);
    else localStorage.setItem(`boxes:${name}`, JSON.stringify(value));
  } catch {
    // Full, or not allowed: it is forgotten with the tab.
  }
}

export const app = new App();
