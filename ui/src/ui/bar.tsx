// The head of a screen, and the frame a screen lies in.
import type { ComponentChildren } from "preact";
import { back } from "../router";
import { Icon } from "./icons";

export interface BarProps {
  title: string;
  under?: ComponentChildren;
  /** Where back leads for somebody who came by a link. */
  from?: string;
  /** Of the heading. */
  level?: 1 | 2;
  children?: ComponentChildren;
}

export function Bar({ title, under, from, level, children }: BarProps) {
  const Heading = level === 2 ? "h2" : "h1";
  return (
    <header class="pt-safe shrink-0">
      <div class="flex min-h-14 items-center gap-1 px-2">
        {from === undefined ? (
          <span class="w-2" />
        ) : (
          <button type="button" class="btn-icon" aria-label="Back" onClick={() => back(from)}>
            <Icon name="back" />
          </button>
        )}
        <div class="min-w-0 flex-1">
          <Heading class={`truncate font-semibold ${from === undefined ? "text-xl" : "text-[1.0625rem]"}`}>{title}</Heading>
          {under ? <div class="flex items-center gap-1.5 truncate text-[0.8125rem] text-quiet">{under}</div> : null}
        </div>
        {children}
      </div>
    </header>
  );
}

/** A screen that scrolls as a whole. */
export function Scroll({ children }: { children: ComponentChildren }) {
  return (
    <div class="min-h-0 flex-1 overflow-y-auto overscroll-contain" tabIndex={-1}>
      <div class="mx-auto w-full max-w-2xl px-4 pt-1 pb-10">{children}</div>
    </div>
  );
}

export function Section({ title, count, children }: { title: string; count?: number; children: ComponentChildren }) {
  return (
    <section class="mt-5 first:mt-1">
      <h2 class="mb-2 flex items-baseline gap-2 px-1 text-sm font-semibold text-quiet">
        {title}
        {count === undefined ? null : <span class="tabular-nums">{count}</span>}
      </h2>
      {children}
    </section>
  );
}
