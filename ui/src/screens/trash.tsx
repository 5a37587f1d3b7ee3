// Boxes in the trash: whole, stopped, and taken back with a tap until their time is over.
import { useEffect, useState } from "react";
import { app } from "../app";
import { Refused, ask } from "../rest";
import { go } from "../router";
import { Bar, Scroll } from "../ui/bar";
import { Ago } from "../ui/time";
import type { BoxInfo } from "../wire";

export function TrashScreen() {
  const [boxes, setBoxes] = useState<BoxInfo[] | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  useEffect(() => {
    ask<{ boxes: BoxInfo[] }>("GET", "/trash").then(
      (said) => setBoxes(said.boxes),
      (error) => setRefused(error instanceof Refused ? error.message : "It did not come"),
    );
  }, []);
  return (
    <div class="flex h-full flex-col" data-screen="trash" data-loaded={boxes !== null}>
      <Bar title="Trash" from="/boxes" />
      <Scroll>
        {refused ? (
          <p role="alert" class="text-bad">
            {refused}
          </p>
        ) : null}
        {boxes !== null && boxes.length === 0 ? <p class="py-16 text-center text-quiet">Nothing was removed.</p> : null}
        <ul class="card divide-y divide-line/60 overflow-hidden empty:hidden">
          {(boxes ?? []).map((info) => (
            <li key={info.id} class="flex min-h-16 items-center gap-3 px-4 py-2" data-trashed={info.name}>
              <span class="min-w-0 flex-1">
                <span class="block truncate font-medium">{info.title ?? info.name}</span>
                <span class="block text-sm text-quiet">
                  removed <Ago at={info.trashed_at_ms ?? info.created_at_ms} />
                </span>
              </span>
              <button type="button" class="btn btn-soft" onClick={() => void undelete(info.id)}>
                Take back
              </button>
            </li>
          ))}
        </ul>
      </Scroll>
    </div>
  );
}

/** Takes a box out of the trash, and goes to it. */
export async function undelete(id: string): Promise<void> {
  try {
    const info = await ask<BoxInfo>("POST", `/trash/${id}/undelete`, {});
    app.say(`${info.name} is back`);
    go(`/b/${info.name}`);
  } catch (error) {
    app.say(error instanceof Refused ? error.message : "It did not work");
  }
}
