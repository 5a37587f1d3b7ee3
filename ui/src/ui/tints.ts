// How good a finding is: never by colour alone.
export const TINTS = {
  good: { icon: "check", tone: "text-ok", word: "on" },
  off: { icon: "more", tone: "text-quiet", word: "off" },
  bad: { icon: "warn", tone: "text-bad", word: "wrong" },
} as const;
