// Files for the agent: they go into the box, and the prompt names where they lie.
import { Refused, inWords, randomId, upload } from "../rest";
import { Icon } from "../ui/icons";
import { Spinner } from "../ui/state";
import { bytes } from "../ui/time";
import { isPicture } from "./pictures";

/** The host refuses larger ones; here it is said before anything is sent. */
const FILE_BYTES_MAX = 25 * 1024 * 1024;

export interface Attachment {
  id: string;
  name: string;
  size: number;
  type: string;
  /** Where it lies in the box, once it does. */
  path: string | null;
  failed: string | null;
  /** A picture of it while it is in this tab. */
  preview: string | null;
}

type Change = (change: (all: Attachment[]) => Attachment[]) => void;

/** Sends files to the box, one after another. */
export function attach(box: string, files: Iterable<File>, change: Change): void {
  for (const file of files) void one(box, file, change);
}

async function one(box: string, file: File, change: Change): Promise<void> {
  const id = randomId();
  const failed = file.size > FILE_BYTES_MAX ? `larger than ${bytes(FILE_BYTES_MAX)}` : null;
  const preview = isPicture(file.type) ? URL.createObjectURL(file) : null;
  change((all) => [...all, { id, name: file.name || "file", size: file.size, type: file.type, path: null, failed, preview }]);
  if (failed) return;
  const set = (fields: Partial<Attachment>) => change((all) => all.map((other) => (other.id === id ? { ...other, ...fields } : other)));
  try {
    const there = await upload(`/boxes/${encodeURIComponent(box)}/files?name=${encodeURIComponent(file.name || "file")}`, file);
    set({ path: there.path, type: there.media_type });
  } catch (error) {
    set({ failed: error instanceof Refused ? inWords(error.problem) : "it did not arrive" });
  }
}

/** The prompt with what was attached named before it, as every way in does it. */
export function withAttachments(text: string, files: Attachment[]): string {
  const there = files.filter((file) => file.path !== null);
  if (there.length === 0) return text;
  const lines = there.map((file) => `- ${file.path} (${file.type || "application/octet-stream"}, ${file.size} bytes)\n`);
  return `<attachments>\n${lines.join("")}</attachments>\n\n${text}`;
}

/** A file a prompt names. */
export interface NamedFile {
  name: string;
  type: string;
  about: string;
}

/** A prompt taken apart again: its files, and its own text. */
export function withoutAttachments(prompt: string): { files: NamedFile[]; text: string } {
  const block = /^<attachments>\n((?:- [^\n]+\n)+)<\/attachments>\n\n/.exec(prompt);
  if (!block) return { files: [], text: prompt };
  const files = [...block[1]!.matchAll(/^- (.+) \(([^()]*), (\d+) bytes\)$/gm)].map(([, path, type, size]) => ({
    name: path!.split("/").at(-1)!,
    type: type!,
    about: `${type}, ${bytes(Number(size))}`,
  }));
  return { files, text: prompt.slice(block[0].length) };
}

export function Attach({ files, onDrop }: { files: Attachment[]; onDrop: (id: string) => void }) {
  if (files.length === 0) return null;
  return (
    <ul class="flex flex-wrap gap-2 px-3 pt-3" aria-label="Attached files">
      {files.map((file) => (
        <li key={file.id} class={`flex max-w-full items-center gap-2 rounded-xl pl-2 text-sm ${file.failed ? "bg-bad-soft text-bad" : "bg-sunken"}`} data-attached={file.failed ? "failed" : file.path === null ? "sending" : "there"}>
          {file.preview ? <img src={file.preview} alt="" class="size-9 rounded-lg object-cover" /> : null}
          {file.path === null && !file.failed ? <Spinner /> : file.preview ? null : <Icon name={file.failed ? "warn" : "file"} size={16} />}
          <span class="min-w-0 truncate">
            {file.failed ? `${file.name}: ${file.failed}` : file.name} {file.failed ? null : <span class="text-quiet">{bytes(file.size)}</span>}
          </span>
          <button type="button" class="btn-icon" aria-label={`Leave out ${file.name}`} onClick={() => onDrop(file.id)}>
            <Icon name="cross" size={16} />
          </button>
        </li>
      ))}
    </ul>
  );
}
