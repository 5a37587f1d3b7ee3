// Where a person writes. Enter never sends by surprise, and Stop never is where Send was.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { app } from "../app";
import { Icon } from "../ui/icons";
import type { AgentCommand } from "../wire";
import { Attach, type Attachment, attach, withAttachments } from "./attach";
import { taken, wanted } from "./complete";
import { PROMPT_BYTES_MAX, draft, keepDraft, keepFiles, keptFiles } from "./outbox";
import { type Offer, Suggest, useOffers } from "./suggest";

export interface ComposerProps {
  thread: string;
  running: boolean;
  /** Where files go that are attached. */
  box: string | null;
  onSend: (text: string) => void;
  onStop: () => void;
  /** Says it into the running turn. */
  onSteer?: (text: string) => void;
  /** Whether the agent takes in what is said into its turn; otherwise its turn ends for it. */
  steers?: boolean;
  /** What the agent offers, as far as it is known. */
  commands?: readonly AgentCommand[] | null;
  placeholder?: string;
  /** What is chosen for the thread, below the text. */
  children?: ComponentChildren;
}

/** Longest `!` line, characters; the host refuses longer ones. */
const SHELL_CHARS_MAX = 8_000;
/** A pasted text of so many bytes goes as a file. */
const PASTE_BYTES_MAX = 32 * 1024;

/** Whether Enter sends: not where it is the only way to a new line, and never while a word is
 * being put together. Phones are known by their main pointer; some claim a fine one beside it. */
export function enterSends(event: { key: string; shiftKey: boolean; isComposing: boolean; keyCode: number }, coarse: boolean): boolean {
  if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return false;
  return !coarse && !event.shiftKey;
}

const isCoarse = (): boolean => typeof matchMedia === "function" && matchMedia("(pointer: coarse)").matches;

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

export function Composer(props: ComposerProps) {
  const { thread, running, box, onSend, onStop, onSteer, steers, commands } = props;
  const write = useWriting(thread, box);
  const { text, area, files, change, add } = write;
  const coarse = isCoarse();
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [closed, setClosed] = useState<string | null>(null);
  const list = useId();

  const want = wanted(text, caret);
  const word = want ? `${want.kind} ${want.from}` : null;
  const offers = useOffers(want, thread, box, commands ?? null);
  const offered = want !== null && closed !== word && offers !== null && offers.length > 0;
  useEffect(() => setChosen(0), [want?.typed, word]);
  useEffect(() => {
    if (word === null) setClosed(null);
  }, [word]);
  const choose = (offer: Offer) => {
    if (!want) return;
    const next = taken(text, want, offer.word);
    change(next.text);
    setCaret(next.caret);
    write.caretTo.current = next.caret;
    area.current?.focus();
  };

  const shell = text.startsWith("!");
  const tooLong = shell ? text.length > SHELL_CHARS_MAX : text.length > PROMPT_BYTES_MAX / 4 && bytesOf(text) > PROMPT_BYTES_MAX;
  const waits = files.some((file) => file.path === null && file.failed === null);
  const ready = text.trim() !== "" && text.trim() !== "!" && !tooLong && !waits;
  const submit = (how: (text: string) => void) => {
    if (!ready) return;
    how(shell ? text.trim() : withAttachments(text.trim(), files));
    write.clear(shell);
  };
  const keyed = (event: KeyboardEvent) => {
    if (offered && !event.isComposing && event.keyCode !== 229) {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const offer = offers[Math.min(chosen, offers.length - 1)];
      if (by !== undefined) setChosen((chosen + by + offers.length) % offers.length);
      else if (event.key === "Escape") setClosed(word);
      else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && offer) choose(offer);
      else return;
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.key === "Escape") area.current?.blur();
    if (!enterSends(event, coarse)) return;
    event.preventDefault();
    submit(onSend);
  };
  return (
    <form
      class="mx-auto w-full max-w-3xl px-3 pt-2 pb-safe"
      aria-label="Write to the agent"
      onSubmit={(event) => {
        event.preventDefault();
        submit(onSend);
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        add(event.dataTransfer?.files ?? []);
      }}
    >
      <div class="flex items-end gap-1.5">
        {running ? (
          <button type="button" class="btn-icon size-12 bg-sunken text-bad" aria-label="Stop the turn" onClick={onStop}>
            <Icon name="stop" />
          </button>
        ) : null}
        <div class="min-w-0 flex-1 rounded-[24px] bg-surface ring-1 ring-line focus-within:ring-2 focus-within:ring-accent">
          {offered ? <Suggest id={list} kind={want.kind} offers={offers} chosen={Math.min(chosen, offers.length - 1)} onChoose={choose} /> : null}
          <Attach files={files} onDrop={write.leaveOut} />
          <div class="flex items-end">
            {box ? <Plus onFiles={add} /> : null}
            <textarea
              ref={area}
              class={`max-h-[40dvh] min-h-12 w-full resize-none bg-transparent py-3 pr-1 text-base leading-6 placeholder:text-quiet ${box ? "pl-1" : "pl-4"} ${shell ? "font-mono" : ""}`}
              rows={1}
              value={text}
              placeholder={props.placeholder ?? (running ? "What comes next?" : "What is to be done?")}
              aria-label="Prompt"
              aria-autocomplete="list"
              aria-controls={offered ? list : undefined}
              aria-activedescendant={offered ? `${list}-${Math.min(chosen, offers.length - 1)}` : undefined}
              enterkeyhint={coarse ? "enter" : "send"}
              onInput={(event) => {
                change(event.currentTarget.value);
                setCaret(event.currentTarget.selectionStart);
              }}
              onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
              onBlur={() => setClosed(word)}
              onPaste={(event) => {
                const pasted = pastedFiles(event.clipboardData);
                if (pasted.length === 0 || !box) return;
                event.preventDefault();
                add(pasted);
              }}
              onKeyDown={(event) => keyed(event as unknown as KeyboardEvent)}
            />
            <button type="submit" disabled={!ready} aria-label={shell ? "Run in the box" : running ? "Queue" : "Send"} class="m-1 grid size-10 shrink-0 place-items-center rounded-full bg-accent text-accent-ink after:absolute after:size-12 disabled:bg-sunken disabled:text-quiet">
              <Icon name={shell ? "terminal" : "send"} />
            </button>
          </div>
          {shell ? (
            <p class="px-4 pb-2.5 text-[0.8125rem] text-quiet" data-shell-limits>
              Runs in the box; the agent is not told. Cut off after 120 s or 256 kB of output.
            </p>
          ) : null}
        </div>
      </div>
      {running && ready && !shell && !offered && onSteer ? (
        <div class="flex flex-wrap gap-2 pt-2" data-while-running>
          <button type="submit" class="btn flex-1 bg-accent-soft">
            Queue for later
          </button>
          <button type="button" class="btn btn-soft flex-1" onClick={() => submit(onSteer)}>
            {steers ? "Steer: say it now" : "Stop it and say this"}
          </button>
        </div>
      ) : null}
      {props.children}
      {tooLong ? (
        <p role="alert" class="pt-1.5 text-sm text-bad">
          {shell ? `A line for the shell has at most ${SHELL_CHARS_MAX} characters.` : `The prompt is longer than ${PROMPT_BYTES_MAX / 1000} kB; paste it as a file.`}
        </p>
      ) : null}
    </form>
  );
}

/** The text and the files, kept for their thread until they are sent. */
function useWriting(thread: string, box: string | null) {
  const [text, setText] = useState(() => draft(thread));
  const [files, setFiles] = useState<Attachment[]>(() => keptFiles(thread));
  const area = useRef<HTMLTextAreaElement>(null);
  const caretTo = useRef<number | null>(null);
  const staged = app.staged.get();

  useEffect(() => {
    setText(draft(thread));
    setFiles(keptFiles(thread));
  }, [thread]);
  useEffect(() => keepFiles(thread, files), [files]);
  useLayoutEffect(() => {
    const shown = area.current;
    if (!shown) return;
    shown.style.height = "auto";
    shown.style.height = `${shown.scrollHeight}px`;
    if (caretTo.current === null) return;
    shown.setSelectionRange(caretTo.current, caretTo.current);
    caretTo.current = null;
  }, [text]);

  const change = (next: string) => {
    setText(next);
    keepDraft(thread, next);
  };
  const add = (chosen: Iterable<File>) => {
    if (box) attach(box, chosen, setFiles);
  };
  // What another app shared, once there is a box it can go to.
  useEffect(() => {
    if (!box || staged === null || staged.thread !== thread) return;
    app.staged.set(null);
    add(staged.files);
  }, [box, staged]);
  return {
    text,
    files,
    area,
    caretTo,
    change,
    add,
    leaveOut: (id: string) => setFiles((all) => all.filter((file) => file.id !== id)),
    clear: (keepsFiles: boolean) => {
      if (!keepsFiles) setFiles([]);
      change("");
      area.current?.focus();
    },
  };
}

function Plus({ onFiles }: { onFiles: (files: Iterable<File>) => void }) {
  return (
    <label class="btn-icon ml-0.5 min-h-12 cursor-pointer has-focus-visible:outline-2">
      <Icon name="plus" />
      <span class="sr-only">Attach files</span>
      <input
        type="file"
        multiple
        class="sr-only"
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </label>
  );
}

/** Files that were pasted; a very long text is one of them. */
export function pastedFiles(pasted: DataTransfer | null): File[] {
  if (!pasted) return [];
  if (pasted.files.length > 0) return [...pasted.files];
  const text = pasted.getData("text/plain");
  return text.length * 3 >= PASTE_BYTES_MAX && bytesOf(text) >= PASTE_BYTES_MAX ? [new File([text], "pasted.txt", { type: "text/plain" })] : [];
}
