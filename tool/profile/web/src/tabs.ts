// Views, of which one is shown at a time.

import { button, el } from "./dom";

export interface Tabs {
  list: HTMLElement;
  panels: HTMLElement[];
  /** Shows what is to be shown now. */
  mark(): void;
}

/** Of the views that are there; `shown` says which one is to be seen, `choose` is told which one the reader wants. */
export function tabs<V extends string>(
  all: [V, string][],
  views: Partial<Record<V, HTMLElement>>,
  shown: () => V,
  choose: (view: V) => void,
): Tabs {
  const there = all.filter(([view]) => views[view] !== undefined);
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  const buttons = there.map(([view, label], index) => {
    const tab = button(label, () => choose(view), { id: `tab-${view}`, role: "tab", "aria-controls": `panel-${view}` });
    tab.addEventListener("keydown", (event) => {
      const last = there.length - 1;
      const wanted = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: last }[event.key];
      if (wanted === undefined) return;
      event.preventDefault();
      const [next] = there[(wanted + there.length) % there.length];
      choose(next);
      document.getElementById(`tab-${next}`)!.focus();
    });
    return tab;
  });
  list.append(...buttons);
  const panels = there.map(([view]) => el("section", { id: `panel-${view}`, role: "tabpanel", "aria-labelledby": `tab-${view}`, hidden: view !== shown() }, views[view]!));
  const mark = () =>
    there.forEach(([view], index) => {
      const isShown = view === shown();
      buttons[index].setAttribute("aria-selected", String(isShown));
      buttons[index].tabIndex = isShown ? 0 : -1;
      panels[index].toggleAttribute("hidden", !isShown);
    });
  mark();
  return { list, panels, mark };
}
