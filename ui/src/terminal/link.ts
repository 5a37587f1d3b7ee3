// A terminal in a box over its own WebSocket: bytes both ways, taken up again after every break.
import { proof } from "../rest";
import { Cell } from "../store";
import type { TerminalAsk } from "../wire/TerminalAsk";
import type { TerminalSays } from "../wire/TerminalSays";

export type Standing = { at: "connecting" } | { at: "open" } | { at: "ended"; code: number } | { at: "closed"; why: string };

/** Where bytes are shown. */
export interface Screen {
  /** Calls back once they are. */
  write(bytes: Uint8Array, shown: () => void): void;
  clear(): void;
  size(): { rows: number; columns: number };
}

/** The socket as far as it is used here; tests bring their own. */
export interface Wire {
  binaryType: string;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: (() => void) | null;
}

/** What is shown is told the host after so many bytes: it reads no further than a window ahead. */
const TELL_BYTES = 32 * 1024;
const BACKOFF_MS = 300;
const BACKOFF_MS_MAX = 8_000;
/** Breaks in a row without a byte between them; then the terminal is taken for gone. */
const BREAKS_MAX = 8;

export class TerminalLink {
  readonly standing = new Cell<Standing>({ at: "connecting" });
  #wire: Wire | null = null;
  #terminal: string | null = null;
  /** Bytes of the output that were received, that are shown, and that the host knows to be. */
  #received = 0;
  #shown = 0;
  #told = 0;
  #breaks = 0;
  /** Counts clearings: what was written before one is not counted after it. */
  #screens = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly box: string,
    private readonly screen: Screen,
    private readonly connect: (path: string) => Wire = socket,
  ) {}

  open(): void {
    clearTimeout(this.#retry);
    const { rows, columns } = this.screen.size();
    const query = new URLSearchParams({ rows: String(rows), columns: String(columns) });
    if (this.#terminal) {
      query.set("terminal", this.#terminal);
      query.set("from", String(this.#received));
    }
    this.standing.set({ at: "connecting" });
    const wire = this.connect(`/api/boxes/${encodeURIComponent(this.box)}/terminal?${query}`);
    wire.binaryType = "arraybuffer";
    this.#wire = wire;
    wire.onmessage = ({ data }) => {
      if (wire !== this.#wire) return;
      if (typeof data === "string") this.#hear(JSON.parse(data) as TerminalSays);
      else this.#print(new Uint8Array(data as ArrayBuffer));
    };
    wire.onclose = () => {
      if (wire === this.#wire) this.#lost();
    };
  }

  type(text: string): void {
    this.#wire?.send(new TextEncoder().encode(text));
  }

  resized(): void {
    this.#say({ frame: "size", ...this.screen.size() });
  }

  close(): void {
    clearTimeout(this.#retry);
    const wire = this.#wire;
    this.#wire = null;
    wire?.close();
  }

  #say(ask: TerminalAsk): void {
    if (this.standing.get().at === "open") this.#wire?.send(JSON.stringify(ask));
  }

  #hear(says: TerminalSays): void {
    switch (says.frame) {
      case "opened":
        this.#terminal = says.terminal;
        this.standing.set({ at: "open" });
        if (says.from !== this.#received) {
          this.#screens += 1;
          this.screen.clear();
          this.#received = this.#shown = this.#told = says.from;
        }
        this.resized();
        return;
      case "ended":
        this.#over({ at: "ended", code: says.code });
        this.#terminal = null;
        this.#received = this.#shown = this.#told = 0;
        return;
      case "bye":
        this.#over({ at: "closed", why: says.why });
    }
  }

  #print(bytes: Uint8Array): void {
    this.#breaks = 0;
    this.#received += bytes.length;
    const screen = this.#screens;
    this.screen.write(bytes, () => {
      if (screen !== this.#screens) return;
      this.#shown += bytes.length;
      if (this.#shown - this.#told < TELL_BYTES) return;
      this.#told = this.#shown;
      this.#say({ frame: "taken", to: this.#shown });
    });
  }

  #over(standing: Standing): void {
    this.close();
    this.standing.set(standing);
  }

  #lost(): void {
    this.#wire = null;
    this.#breaks += 1;
    if (this.#breaks > BREAKS_MAX || (this.#terminal === null && this.#breaks > 1)) {
      this.standing.set({ at: "closed", why: "the terminal cannot be reached" });
      this.#terminal = null;
      this.#received = this.#shown = this.#told = 0;
      this.#breaks = 0;
      return;
    }
    this.standing.set({ at: "connecting" });
    const wait = Math.min(BACKOFF_MS * 2 ** this.#breaks, BACKOFF_MS_MAX);
    this.#retry = setTimeout(() => this.open(), wait);
  }
}

function socket(path: string): Wire {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(`${scheme}//${location.host}${path}`, ["boxes", proof()]) as unknown as Wire;
}
