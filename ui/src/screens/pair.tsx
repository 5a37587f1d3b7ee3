// For a browser the host does not know: how to come in.
import { Icon } from "../ui/icons";

export function PairScreen() {
  return (
    <main class="grid h-full place-items-center px-6" data-screen="signed-out">
      <div class="max-w-sm text-center">
        <div class="mx-auto mb-5 grid size-16 place-items-center rounded-2xl bg-accent-soft text-accent">
          <Icon name="key" size={32} />
        </div>
        <h1 class="text-xl font-semibold">This browser is not paired</h1>
        <p class="mt-2 text-quiet">On the machine the boxes are on, type</p>
        <p class="my-3 rounded-xl bg-sunken py-3 font-mono">box ui</p>
        <p class="text-quiet">and open the link it prints, or let this phone read the code. A link works once.</p>
      </div>
    </main>
  );
}
