// Light or dark: as the device has it, or as was chosen here.
import { remember, remembered } from "./app";

export type Theme = "system" | "light" | "dark";

const dark = (): MediaQueryList | null => (typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null);

export const keptTheme = (): Theme => remembered<Theme>("theme", "system");

function apply(): void {
  const theme = keptTheme();
  document.documentElement.dataset.theme = theme === "system" ? (dark()?.matches ? "dark" : "light") : theme;
}

export function chooseTheme(theme: Theme): void {
  remember("theme", theme);
  apply();
}

/** Holds from now on, also when the device changes over. */
export function followTheme(): void {
  apply();
  dark()?.addEventListener("change", apply);
}
