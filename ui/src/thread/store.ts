// A thread on the page: its fold, its head, and where it stands in the journal.
import type { Follower, Link } from "../link";
import { ask } from "../rest";
import { Cell, every } from "../store";
import type { Cursor, PageRow, ServerFrame, ThreadHead, Topic } from "../wire";
import { Fold } from "./fold";

/** Text is drawn at most so often. */
const DRAW_MS = 50;
/** Pages that are fetched to get to what a search found. */
const PAGES_MAX = 200;

export class ThreadStore implements Follower {
  /** Counts up whenever there is something to draw. */
  readonly drawn = new Cell(0);
  readonly head = new Cell<ThreadHead | null>(null);
  /** Whether everything there was has come. */
  readonly loaded = new Cell(false);
  readonly older = new Cell(false);
  readonly gone = new Cell<string | null>(null);
  fold = new Fold();
  /** Prepended rows: the list keeps its place while this differs from what it last saw. */
  prepended = 0;

  #cursor: Cursor | null = null;
  #fetching = false;
  #draw = every(DRAW_MS, () => this.drawn.update((count) => count + 1));

  constructor(
    readonly id: string,
    private readonly link: Link,
  ) {}

  follow(): () => void {
    return this.link.follow(this);
  }

  topic(): Topic {
    return { topic: "thread", thread: this.id, ...(this.#cursor ? { after: this.#cursor } : {}) } as Topic;
  }

  frame(frame: ServerFrame): void {
    if (frame.frame === "over") {
      this.gone.set(frame.problem.title);
      return;
    }
    if (frame.frame !== "log") return;
    if (frame.start === "tail") {
      this.fold = new Fold();
      this.older.set(frame.older);
    } else if (!same(this.#cursor, frame.from)) {
      this.#anew();
      return;
    }
    const follows = frame.updates.every((update) => this.fold.take(update));
    if (!follows) {
      this.#anew();
      return;
    }
    this.#cursor = frame.to;
    if (frame.head) this.head.set(frame.head);
    this.loaded.set(true);
    this.#draw();
  }

  /** Older rows, when the reader gets to the top. */
  async fetchOlder(): Promise<void> {
    if (this.#fetching || !this.older.get() || !this.loaded.get()) return;
    this.#fetching = true;
    const before = this.fold;
    try {
      const page = await ask<{ epoch: number; rows: PageRow[]; older: boolean }>("GET", `/threads/${this.id}/rows?before=${before.first}`);
      if (this.fold !== before || page.epoch !== this.#cursor?.epoch) return;
      const had = before.views.length;
      this.fold = before.withOlder(page.rows);
      this.prepended += this.fold.views.length - had;
      this.older.set(page.older);
      this.drawn.update((count) => count + 1);
    } catch {
      // The next time the reader gets there it is asked again.
    } finally {
      this.#fetching = false;
    }
  }

  /** Whether this row, or what came of it, is known. */
  has(seq: number): boolean {
    return this.fold.first <= seq && this.fold.last >= seq;
  }

  /** Older rows, until this one is among them. */
  async fetchUntil(seq: number): Promise<void> {
    for (let page = 0; page < PAGES_MAX && this.older.get() && !this.has(seq); page += 1) {
      const first = this.fold.first;
      await this.fetchOlder();
      // Somebody else fetches, or nothing came: the next draw asks again.
      if (this.fold.first === first) return;
    }
  }

  #anew(): void {
    this.#cursor = null;
    this.link.again(this);
  }
}

function same(a: Cursor | null, b: Cursor): boolean {
  return a !== null && a.epoch === b.epoch && a.seq === b.seq && a.bytes === b.bytes;
}
