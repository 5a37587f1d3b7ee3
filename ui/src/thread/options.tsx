// What can be chosen and done about a thread, and the prompts that wait in it.
import { useEffect, useState } from "react";
import { app } from "../app";
import { Refused, ask, inWords } from "../rest";
import { Icon } from "../ui/icons";
import { Sheet } from "../ui/sheet";
import { clock } from "../ui/time";
import type { QueuedPrompt, RestorePoint, ThreadAct, ThreadShown } from "../wire";
import { fork } from "./points";
import { Prompt } from "./views";
import { PlainView } from "./plain";

async function act(id: string, what: ThreadAct): Promise<boolean> {
  const problem = await app.act(id, what);
  if (problem) app.say(inWords(problem));
  return problem === null;
}

/** The button that opens what a thread offers. */
export function Options({ id, shown }: { id: string; shown: ThreadShown }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="btn-icon" aria-label="More about this thread" onClick={() => setOpen(true)}>
        <Icon name="more" />
      </button>
      {open ? <OptionsSheet id={id} shown={shown} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function OptionsSheet({ id, shown, onClose }: { id: string; shown: ThreadShown; onClose: () => void }) {
  const [title, setTitle] = useState(shown.info.title);
  const chosen = new Map(shown.chosen.map((one) => [one.option, one.value]));
  return (
    <Sheet title="This thread" onClose={onClose}>
      <form
        class="grid gap-1.5"
        onSubmit={(event) => {
          event.preventDefault();
          void act(id, { act: "rename", title }).then((done) => done && onClose());
        }}
      >
        <label class="label" htmlFor="thread-title">
          Title
        </label>
        <div class="flex gap-2">
          <input id="thread-title" class="field" value={title} maxLength={100} onInput={(event) => setTitle(event.currentTarget.value)} />
          <button type="submit" class="btn btn-soft" disabled={title.trim() === "" || title === shown.info.title}>
            Rename
          </button>
        </div>
      </form>
      {shown.options.map((option) => {
        const choices = option.choices.length > 0 ? option.choices : [{ value: "true", label: "On" }, { value: "false", label: "Off" }];
        const value = chosen.get(option.option) ?? option.value;
        return (
          <label key={option.option} class="mt-4 grid gap-1.5">
            <span class="label">
              {option.label}
              {chosen.has(option.option) ? " · holds from the agent's next start" : ""}
            </span>
            <select class="field" value={value} onChange={(event) => void act(id, { act: "set", chosen: [{ option: option.option, value: event.currentTarget.value }] })}>
              {choices.map((choice) => (
                <option key={choice.value} value={choice.value}>
                  {choice.label}
                </option>
              ))}
            </select>
          </label>
        );
      })}
      <div class="mt-5 grid gap-2">
        <Undo id={id} shown={shown} onDone={onClose} />
        <PlainView id={id} />
        {shown.can.fork ? (
          <button type="button" class="btn btn-soft w-full" onClick={() => {
              onClose();
              void fork(id);
            }}>
            Fork: go on from here in a copy
          </button>
        ) : null}
        {shown.tasks.map((task) => (
          <button key={task.task} type="button" class="btn btn-soft w-full text-bad" disabled={!shown.can.stop_task} onClick={() => void act(id, { act: "stop_task", task: task.task })}>
            Stop “{task.title}”
          </button>
        ))}
        <button type="button" class="btn btn-soft w-full" onClick={() => void act(id, { act: shown.info.archived ? "unarchive" : "archive" }).then((done) => done && onClose())}>
          {shown.info.archived ? "Back into the list" : "Put away"}
        </button>
      </div>
    </Sheet>
  );
}

/** What is chosen for this thread, in place: mode, model, effort and whatever the agent names. */
export function Chips({ id, shown }: { id: string; shown: ThreadShown }) {
  const chosen = new Map(shown.chosen.map((one) => [one.option, one.value]));
  const offered = shown.options.filter((option) => option.choices.length > 1);
  if (offered.length === 0) return null;
  return (
    <div class="flex gap-1.5 overflow-x-auto pt-1.5" role="group" aria-label="Of this thread" data-chips>
      {offered.map((option) => (
        <label key={option.option} class="flex shrink-0 items-center rounded-full bg-sunken pl-3 text-[0.8125rem] text-quiet focus-within:ring-2 focus-within:ring-accent">
          <span>{option.label}</span>
          <select
            class="min-h-11 max-w-44 rounded-full bg-transparent px-2 font-medium text-ink"
            value={chosen.get(option.option) ?? option.value}
            data-option={option.option}
            onChange={(event) => void act(id, { act: "set", chosen: [{ option: option.option, value: event.currentTarget.value }] })}
          >
            {option.choices.map((choice) => (
              <option key={choice.value} value={choice.value}>
                {choice.label}
              </option>
            ))}
          </select>
        </label>
      ))}
    </div>
  );
}

/** The box as it was before the last turn. What is there now is kept as a snapshot. */
function Undo({ id, shown, onDone }: { id: string; shown: ThreadShown; onDone: () => void }) {
  const [points, setPoints] = useState<RestorePoint[] | null>(null);
  const [none, setNone] = useState<string | null>(null);
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    ask<{ points: RestorePoint[]; none_because?: string | null }>("GET", `/boxes/${shown.box_id}/restore-points`).then(
      (said) => {
        setPoints(said.points);
        setNone(said.none_because ?? null);
      },
      () => undefined,
    );
  }, [shown.box_id]);
  const last = points?.filter((point) => point.thread === id && !point.undone).at(-1);
  if (!last) return none ? <p class="text-sm text-quiet">Turns cannot be undone here: {none.replaceAll("`", "")}.</p> : null;
  const restore = async () => {
    setBusy(true);
    try {
      await ask("POST", `/boxes/${shown.box_id}/snapshots/${encodeURIComponent(last.label)}/restore`);
      app.say(`${shown.name} is as it was at ${clock(last.at_ms)}`);
      onDone();
    } catch (error) {
      app.say(error instanceof Refused ? error.message : "It did not work");
      setBusy(false);
    }
  };
  return (
    <button type="button" class={`btn w-full ${sure ? "btn-bad" : "btn-soft"}`} disabled={busy} onClick={() => (sure ? void restore() : setSure(true))}>
      {sure ? "Yes: put the files back" : `Files as before “${last.words.slice(0, 40)}”`}
    </button>
  );
}

/** Prompts that wait: they can still be changed, taken back, or sent at once. */
export function Queue({ id, waiting, held, running }: { id: string; waiting: QueuedPrompt[]; held: boolean; running: boolean }) {
  const [editing, setEditing] = useState<QueuedPrompt | null>(null);
  return (
    <>
      {waiting.map((queued) => (
        <div key={queued.queued} class="pb-4" data-queued={queued.queued}>
          <Prompt dashed text={queued.text} note={held && !running ? "waits for you" : "waits for the turn to end"} />
          <div class="flex justify-end gap-1 text-sm text-quiet">
            <button type="button" class="min-h-11 px-3" onClick={() => setEditing(queued)}>
              Edit
            </button>
            <button type="button" class="min-h-11 px-3" onClick={() => void act(id, { act: "unqueue", queued: queued.queued })}>
              Delete
            </button>
            <button type="button" class="min-h-11 px-3 font-medium text-accent" onClick={() => void act(id, { act: "send_now", queued: queued.queued })}>
              Send now
            </button>
          </div>
        </div>
      ))}
      {editing ? <Edit id={id} queued={editing} onClose={() => setEditing(null)} /> : null}
    </>
  );
}

function Edit({ id, queued, onClose }: { id: string; queued: QueuedPrompt; onClose: () => void }) {
  const [text, setText] = useState(queued.text);
  return (
    <Sheet title="Edit what waits" onClose={onClose}>
      <textarea class="field min-h-40" aria-label="Prompt" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <button type="button" class="btn btn-main mt-3 min-h-12 w-full" disabled={text.trim() === ""} onClick={() => void act(id, { act: "edit", queued: queued.queued, text }).then((done) => done && onClose())}>
        Keep
      </button>
    </Sheet>
  );
}
