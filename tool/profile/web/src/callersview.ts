// A method between its callers and its callees.

import type { App } from "./app";
import { el } from "./dom";
import { Grid, marked } from "./grid";
import { attributesOf, columnsOf } from "./methodsview";
import type { Row } from "./source";
import { NONE } from "./tree";

export class CallersView<A> {
  readonly element: HTMLElement;
  private readonly heading = el("h2", { id: "callers-of" });
  private readonly numbers = el("p", { class: "note" });
  private readonly grids: { callers: Grid<Row<A>>; callees: Grid<Row<A>> };
  private readonly pair: HTMLElement;

  constructor(private readonly app: App<A>) {
    this.grids = {
      callers: this.grid("callers", "Callers", "Called by"),
      callees: this.grid("callees", "Callees", "Calls"),
    };
    this.pair = el("div", { class: "pair" }, this.grids.callers.element, this.grids.callees.element);
    this.element = el("div", { class: "view" }, this.heading, this.numbers, this.pair);
    this.fill();
    app.onChange((changed) => {
      if (["tree", "width", "method"].some((key) => changed.has(key as never))) this.fill();
      else if (changed.has("view") && app.state.view === "callers") this.fill();
      else if (changed.has("search")) Object.values(this.grids).forEach((grid) => grid.render());
    });
  }

  private grid(id: string, label: string, nameLabel: string): Grid<Row<A>> {
    const { app } = this;
    const outside = "(from outside the roots)";
    const name = (row: Row<A>) => (row.method === NONE ? outside : app.name(row.method));
    const shown = (row: Row<A>) => (row.method === NONE ? outside : app.label(row.method));
    return new Grid<Row<A>>({
      id,
      label,
      role: "grid",
      nameLabel,
      columns: columnsOf(app.shown.arcColumns, (index) => app.shown.arcColumns[index]),
      name: (row) => [el("span", { class: "label", title: name(row) }, ...marked(shown(row), app.state.search))],
      attributes: (row) => attributesOf(app, row),
      select: () => {},
      opensOnClick: true,
      open: (row) => row.method !== NONE && app.selectMethod(row.method),
      empty: id === "callers" ? "No callers." : "It calls nothing that is instrumented.",
    });
  }

  private fill(): void {
    const { app } = this;
    const { method } = app.state;
    this.pair.hidden = method === NONE;
    if (method === NONE) {
      this.heading.textContent = "No method selected";
      this.numbers.textContent = "Select one in the flame graph, the tree or the table of methods.";
      return;
    }
    this.heading.textContent = app.name(method);
    this.heading.dataset.method = app.source.names[method][0];
    const own = app.shown.flat().find((row) => row.method === method);
    this.numbers.textContent = `${own === undefined ? "not called here" : app.shown.summary(own.amounts)}. A click, or Enter, goes to a caller or callee.`;
    // Stanzas are made only when they are looked at: that takes a walk through the tree.
    if (app.state.view !== "callers") return;
    const { callers, callees } = app.shown.arcs(method);
    const by = app.shown.arcColumns.find((column) => column.id === "total" || column.id === "change")!;
    for (const [rows, grid] of [[callers, this.grids.callers], [callees, this.grids.callees]] as const) {
      rows.sort((a, b) => by.value(b.amounts) - by.value(a.amounts) || a.method - b.method);
      grid.setRows(rows.length, (index) => rows[index]);
      grid.setSelected(-1, false);
    }
  }
}
