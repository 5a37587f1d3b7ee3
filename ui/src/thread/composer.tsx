// Where a person writes. Enter never sends by surprise, and Stop never is where Send was.
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { Icon } from "../ui/icons";
import { Attach, type Attachment, attach, withAttachments } from "./attach";
import { PROMPT_BYTES_MAX, draft, keepDraft } from "./outbox";

export interface ComposerProps {
  thread: string;
  running: boolean;
  /** Where files go that are attached. */
  box: string | null;
  onSend: (text: string) => void;
  onStop: () => void;
  placeholder?: string;
}

/** Whether Enter sends: not where it is the only way to a new line, and never while a word is
 * being put together. Phones are known by their main pointer; some claim a fine one beside it. */
export function enterSends(event: { key: string; shiftKey: boolean; isComposing: boolean; keyCode: number }, coarse: boolean): boolean {
  if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return false;
  return !coarse && !event.shiftKey;
}

const isCoarse = (): boolean => typeof matchMedia === "function" && matchMedia("(pointer: coarse)").matches;

export function Composer({ thread, running, box, onSend, onStop, placeholder }: ComposerProps) {
  const [text, setText] = useState(() => draft(thread));
  const area = useRef<HTMLTextAreaElement>(null);
  const coarse = isCoarse();

  useEffect(() => setText(draft(thread)), [thread]);
  useLayoutEffect(() => {
    const shown = area.current;
    if (!shown) return;
    shown.style.height = "auto";
    shown.style.height = `${shown.scrollHeight}px`;
  }, [text]);

  const change = (next: string) => {
    setText(next);
    keepDraft(thread, next);
  };
  const bytes = text.length > PROMPT_BYTES_MAX / 4 ? new TextEncoder().encode(text).length : 0;
  const tooLong = bytes > PROMPT_BYTES_MAX;
  const ready = text.trim() !== "" && !tooLong;
  const [files, setFiles] = useState<Attachment[]>([]);
  const add = (chosen: Iterable<File>) => {
    if (box) attach(box, chosen, setFiles);
  };
  const waits = files.some((file) => file.path === null && file.failed === null);
  const submit = () => {
    if (!ready || waits) return;
    onSend(withAttachments(text.trim(), files));
    setFiles([]);
    change("");
    area.current?.focus();
  };
  return (
    <form
      class="mx-auto flex w-full max-w-3xl items-end gap-1.5 px-3 pt-2 pb-safe"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        add(event.dataTransfer?.files ?? []);
      }}
    >
      {running ? (
        <button type="button" class="btn-icon size-12 bg-sunken text-bad" aria-label="Stop the turn" onClick={onStop}>
          <Icon name="stop" />
        </button>
      ) : null}
      <div class="min-w-0 flex-1 rounded-[24px] bg-surface ring-1 ring-line focus-within:ring-2 focus-within:ring-accent">
        <Attach files={files} onDrop={(id) => setFiles((all) => all.filter((file) => file.id !== id))} />
        <div class="flex items-end">
        {box ? (
          <label class="btn-icon ml-0.5 min-h-12 cursor-pointer has-focus-visible:outline-2">
            <Icon name="plus" />
            <span class="sr-only">Attach files</span>
            <input
              type="file"
              multiple
              class="sr-only"
              onChange={(event) => {
                add(event.currentTarget.files ?? []);
                event.currentTarget.value = "";
              }}
            />
          </label>
        ) : null}
        <textarea
          ref={area}
          class={`max-h-[40dvh] min-h-12 w-full resize-none bg-transparent py-3 pr-1 pl-1 text-base leading-6 placeholder:text-quiet ${text.startsWith("!") ? "font-mono" : ""}`}
          rows={1}
          value={text}
          placeholder={placeholder ?? (running ? "What comes next?" : "What is to be done?")}
          aria-label="Prompt"
          enterkeyhint={coarse ? "enter" : "send"}
          onInput={(event) => change(event.currentTarget.value)}
          onPaste={(event) => {
            const pasted = event.clipboardData?.files;
            if (!pasted || pasted.length === 0) return;
            event.preventDefault();
            add(pasted);
          }}
          onKeyDown={(event) => {
            if (!enterSends(event as unknown as KeyboardEvent, coarse)) return;
            event.preventDefault();
            submit();
          }}
        />
        <button type="submit" disabled={!ready || waits} aria-label={text.startsWith("!") ? "Run in the box" : running ? "Queue" : "Send"} class="m-1 grid size-10 shrink-0 place-items-center rounded-full bg-accent text-accent-ink after:absolute after:size-12 disabled:bg-sunken disabled:text-quiet">
          <Icon name={text.startsWith("!") ? "terminal" : "send"} />
        </button>
        </div>
      </div>
      {tooLong ? (
        <p role="alert" class="sr-only">
          The prompt is longer than {PROMPT_BYTES_MAX / 1000} kB.
        </p>
      ) : null}
    </form>
  );
}
