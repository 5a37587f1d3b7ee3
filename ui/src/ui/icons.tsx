// The page's signs, drawn as lines so that they take the colour of the text.
const PATHS = {
  home: "M3 11.5 12 4l9 7.5M5.5 10v9.5h13V10",
  boxes: "M12 3l8 4.5v9L12 21l-8-4.5v-9L12 3zM4 7.5l8 4.5 8-4.5M12 12v9",
  plus: "M12 5v14M5 12h14",
  gear: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
  back: "M15 5l-7 7 7 7",
  chevron: "M9 6l6 6-6 6",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6L6 18",
  down: "M12 5v14M6 13l6 6 6-6",
  warn: "M12 4l9 16H3L12 4zM12 10v4.5M12 17.3h.01",
  question: "M9 9.2a3 3 0 1 1 4.3 2.7c-.9.5-1.3 1-1.3 2.1M12 17.3h.01",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  terminal: "M5 7l5 5-5 5M12.5 17H19",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  edit: "M4 20h4L19 9l-4-4L4 16v4z",
  search: "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15.5 15.5L20 20",
  spark: "M12 4v4M12 16v4M4 12h4M16 12h4M6.5 6.5l2.5 2.5M15 15l2.5 2.5M17.5 6.5L15 9M9 15l-2.5 2.5",
  plan: "M9 6h11M9 12h11M9 18h11M4 6h.01M4 12h.01M4 18h.01",
  moon: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z",
  pause: "M9 6v12M15 6v12",
  key: "M8.5 15.5a4 4 0 1 1 3.7-5.6H20v3h-2v2.5h-3V13h-2.8a4 4 0 0 1-3.7 2.5z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 20, class: more = "" }: { name: IconName; size?: number; class?: string }) {
  return (
    <svg class={`shrink-0 ${more}`} width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.9" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
