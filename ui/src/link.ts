// The one WebSocket: topics that are subscribed again after every break, commands that are sent
// until they are answered, and a watch over silence.
import { randomId } from "./rest";
import { Cell } from "./store";
import type { ClientFrame, Command, Problem, ServerFrame, Topic } from "./wire";

export type Standing = "connecting" | "open" | "signed-out";

/** Somebody who wants a topic. `topic` is asked anew at every connection, for the cursor in it. */
export interface Follower {
  topic(): Topic;
  frame(frame: ServerFrame): void;
}

/** The socket as far as it is used here; tests bring their own. */
export interface Wire {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: (() => void) | null;
}

export interface LinkOptions {
  connect(): Wire;
  /** Whether the host still knows this browser; asked when a connection fails. */
  signedIn(): Promise<boolean>;
  backoffMs?: number;
  silenceMs?: number;
  probeMs?: number;
}

const BACKOFF_MS_MAX = 8_000;
const HEALTHY_MS = 5_000;

export class Link {
  readonly standing = new Cell<Standing>("connecting");
  /** When the host was last heard. */
  readonly heardAt = new Cell(0);
  readonly build = new Cell<string | null>(null);
  /** Whether the host has become another build than the page came from. */
  readonly outdated = new Cell(false);

  #options: Required<LinkOptions>;
  #wire: Wire | null = null;
  #open = false;
  #next = 1;
  #followers = new Map<number, Follower>();
  #commands = new Map<string, { command: Command; answer: (problem: Problem | null) => void }>();
  #wait: number;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #openedAt = 0;
  #front: string | null = null;

  constructor(options: LinkOptions) {
    this.#options = { backoffMs: 250, silenceMs: 45_000, probeMs: 2_000, ...options };
    this.#wait = this.#options.backoffMs;
  }

  start(): void {
    this.#connect();
  }

  stop(): void {
    clearTimeout(this.#retry);
    clearTimeout(this.#silence);
    this.#drop();
  }

  follow(follower: Follower): () => void {
    const sub = this.#next++;
    this.#followers.set(sub, follower);
    if (this.#open) this.#send({ frame: "sub", sub, topic: follower.topic() });
    return () => {
      this.#followers.delete(sub);
      if (this.#open) this.#send({ frame: "unsub", sub });
    };
  }

  /** Asks for a topic anew, because what came does not fit what is there. */
  again(follower: Follower): void {
    for (const [sub, other] of this.#followers) {
      if (other === follower && this.#open) this.#send({ frame: "sub", sub, topic: follower.topic() });
    }
  }

  /** Sent until it is answered, over as many connections as that takes. */
  command(command: Command, cid = randomId()): Promise<Problem | null> {
    return new Promise((answer) => {
      this.#commands.set(cid, { command, answer });
      if (this.#open) this.#send({ frame: "cmd", cid, command });
    });
  }

  /** Says which thread a person has in front of them. While there is none it is said once. */
  front(thread: string | null): void {
    const before = this.#front;
    this.#front = thread;
    if (this.#open && (thread !== null || before !== null)) this.#send(thread === null ? { frame: "front" } : { frame: "front", thread });
  }

  /** Finds out whether the link is alive: after sleep a socket may look open and be dead. */
  probe(): void {
    if (this.standing.get() === "signed-out") return;
    if (!this.#open) {
      clearTimeout(this.#retry);
      if (!this.#wire) this.#connect();
      return;
    }
    this.#send({ frame: "ping" });
    this.#watchSilence(this.#options.probeMs);
  }

  #connect(): void {
    this.#retry = undefined;
    const wire = this.#options.connect();
    this.#wire = wire;
    this.#watchSilence(this.#options.silenceMs);
    wire.onopen = () => {
      if (wire !== this.#wire) return;
      this.#open = true;
      this.#openedAt = Date.now();
      this.standing.set("open");
      for (const [sub, follower] of this.#followers) this.#send({ frame: "sub", sub, topic: follower.topic() });
      for (const [cid, { command }] of this.#commands) this.#send({ frame: "cmd", cid, command });
      if (this.#front !== null) this.#send({ frame: "front", thread: this.#front });
    };
    wire.onmessage = ({ data }) => {
      if (wire !== this.#wire || typeof data !== "string") return;
      this.heardAt.set(Date.now());
      this.#watchSilence(this.#options.silenceMs);
      this.#take(JSON.parse(data) as ServerFrame);
    };
    wire.onclose = () => {
      if (wire === this.#wire) void this.#lost();
    };
  }

  #take(frame: ServerFrame): void {
    switch (frame.frame) {
      case "hello": {
        const first = this.build.get();
        if (first === null) this.build.set(frame.build);
        else if (first !== frame.build) this.outdated.set(true);
        return;
      }
      case "result": {
        const sent = this.#commands.get(frame.cid);
        this.#commands.delete(frame.cid);
        sent?.answer(frame.problem ?? null);
        return;
      }
      case "ping":
      case "bye":
        return;
      default:
        // A newer host may say what this page does not know.
        if ("sub" in frame) this.#followers.get(frame.sub)?.frame(frame);
    }
  }

  #send(frame: ClientFrame): void {
    this.#wire?.send(JSON.stringify(frame));
  }

  #watchSilence(ms: number): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => void this.#lost(), ms);
  }

  #drop(): void {
    const wire = this.#wire;
    this.#wire = null;
    this.#open = false;
    if (!wire) return;
    wire.onopen = wire.onmessage = wire.onclose = null;
    wire.close();
  }

  async #lost(): Promise<void> {
    clearTimeout(this.#silence);
    const healthy = this.#open && Date.now() - this.#openedAt > HEALTHY_MS;
    const never = !this.#open;
    this.#drop();
    this.standing.set("connecting");
    if (never && !(await this.#options.signedIn())) {
      this.standing.set("signed-out");
      return;
    }
    this.#wait = healthy ? this.#options.backoffMs : Math.min(this.#wait * 2, BACKOFF_MS_MAX);
    clearTimeout(this.#retry);
    if (this.#wire) return;
    this.#retry = setTimeout(() => this.#connect(), this.#wait * (0.7 + Math.random() * 0.6));
  }
}
