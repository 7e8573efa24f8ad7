// What stands above all views: what the page is of, its colours, and what to beware of.

import { choice, el } from "./dom";
import { count } from "./format";
import { setTheme, theme, type Theme } from "./theme";

/** The title with a line below it, and the choice of colours; the warnings below them. */
export function heading(title: string, line: string, notes: string[], themed: () => void): HTMLElement {
  const themes = [["auto", "As the system"], ["light", "Light"], ["dark", "Dark"]] as const;
  const head = el(
    "header",
    {},
    el("div", { class: "title" }, el("h1", {}, title), el("p", { class: "note" }, line)),
    choice<Theme>("Theme", "theme", themes, theme(), (theme) => {
      setTheme(theme);
      themed();
    }),
  );
  const [first, ...others] = notes;
  if (first !== undefined) head.append(folded(first, others));
  return head;
}

/** The first warning, and the others when it is opened. */
function folded(first: string, others: string[]): HTMLElement {
  const more = others.length === 0 ? [] : [el("span", { class: "more" }, `and ${count(others.length)} more`)];
  const summary = el("summary", {}, el("span", { class: "first" }, `⚠ ${first}`), ...more);
  return el("details", { id: "warnings", "aria-label": "Warnings" }, summary, el("ul", {}, ...others.map((note) => el("li", {}, `⚠ ${note}`))));
}
