// Screens that are fetched when somebody goes there: the first one is on the glass sooner without them.
import type { ComponentType } from "preact";
import { useEffect, useReducer } from "react";

const AGAIN_MS = 2_000;

/** A component that comes with its file. Nothing is shown for the moment that takes. */
export function later<P extends object>(load: () => Promise<ComponentType<P>>): (props: P) => preact.JSX.Element | null {
  let loaded: ComponentType<P> | null = null;
  return function Later(props: P) {
    const [, draw] = useReducer((count: number) => count + 1, 0);
    useEffect(() => {
      if (loaded) return undefined;
      let wanted = true;
      let timer: ReturnType<typeof setTimeout>;
      // A file of an older build that is gone loads the page anew (`main.tsx`); a host that is away comes back.
      const fetched = () =>
        load().then(
          (found) => {
            loaded = found;
            if (wanted) draw(undefined);
          },
          () => {
            if (wanted) timer = setTimeout(() => void fetched(), AGAIN_MS);
          },
        );
      void fetched();
      return () => {
        wanted = false;
        clearTimeout(timer);
      };
    }, []);
    const Loaded = loaded;
    return Loaded ? <Loaded {...props} /> : null;
  };
}
