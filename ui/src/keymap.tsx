// The sheet of all keys.
import { keysShown } from "./keys";
import { Sheet } from "./ui/sheet";

interface Key {
  keys: string[];
  does: string;
}

const MAP: { title: string; keys: Key[] }[] = [
  {
    title: "Go to",
    keys: [
      { keys: ["g", "i"], does: "Home: what needs you" },
      { keys: ["g", "b"], does: "Boxes" },
      { keys: ["g", "n"], does: "New box" },
      { keys: ["g", "s"], does: "Settings" },
      { keys: ["/"], does: "Search" },
      { keys: ["j"], does: "Next thread of the list" },
      { keys: ["k"], does: "Thread before it" },
    ],
  },
  {
    title: "In a thread",
    keys: [
      { keys: ["c"], does: "Write" },
      { keys: ["e"], does: "To the end" },
      { keys: ["o"], does: "To the card that asks" },
      { keys: ["Esc"], does: "Leave the text" },
    ],
  },
  {
    title: "On a card that has the focus",
    keys: [
      { keys: ["1", "…", "9"], does: "Choose this option" },
      { keys: ["a"], does: "Allow once" },
      { keys: ["d"], does: "Deny once" },
    ],
  },
];

export function KeyMap() {
  return (
    <Sheet title="Keys" onClose={() => keysShown.set(false)}>
      {MAP.map((group) => (
        <section key={group.title} class="mt-4 first:mt-0">
          <h3 class="label mb-1.5">{group.title}</h3>
          <dl class="grid grid-cols-[6.5rem_1fr] gap-y-1.5">
            {group.keys.map((one) => (
              <>
                <dt key={one.does} class="flex gap-1">
                  {one.keys.map((key) => (
                    <kbd key={key} class="min-w-6 rounded-md bg-sunken px-1.5 text-center font-mono text-sm ring-1 ring-line">
                      {key}
                    </kbd>
                  ))}
                </dt>
                <dd>{one.does}</dd>
              </>
            ))}
          </dl>
        </section>
      ))}
    </Sheet>
  );
}
