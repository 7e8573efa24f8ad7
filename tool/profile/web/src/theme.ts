// Dark or light: as the system has it, unless the reader says otherwise.

import type { Paint } from "./colours";

export type Theme = "auto" | "light" | "dark";
const KEY = "headwater-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen: Theme = "auto";

/** Storage may be closed to pages from files. */
function remembered(): Theme {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : "auto";
  } catch {
    return "auto";
  }
}

export function theme(): Theme {
  return chosen;
}

export function isDark(): boolean {
  return chosen === "auto" ? system.matches : chosen === "dark";
}

export function setTheme(theme: Theme): void {
  chosen = theme;
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It is not remembered then.
  }
}

export function startTheme(changed: () => void): void {
  setTheme(remembered());
  system.addEventListener("change", changed);
}

export function paintOf(paint: Paint): string {
  return isDark() ? paint.dark : paint.light;
}
