// A value that can be watched. The whole state of the page is made of these.
import { useEffect, useReducer } from "react";

/** A value with those who watch it. */
export class Cell<T> {
  #value: T;
  #watchers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const tell of [...this.#watchers]) tell();
  }

  update(change: (value: T) => T): void {
    this.set(change(this.#value));
  }

  watch(tell: () => void): () => void {
    this.#watchers.add(tell);
    return () => this.#watchers.delete(tell);
  }
}

/** Draws again whenever the cell changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const seen = cell.get();
    const stop = cell.watch(() => draw(undefined));
    // What changed between drawing and watching.
    if (!Object.is(seen, cell.get())) draw(undefined);
    return stop;
  }, [cell]);
  return cell.get();
}

/** Runs at most once in `ms`, the last call always. Text streams faster than eyes. */
export function every(ms: number, run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      run();
    }, ms);
  };
}
