// The flat table: each method, whatever called it.

import type { App, Changed } from "./app";
import { el } from "./dom";
import { Grid, marked, type GridColumn } from "./grid";
import { count } from "./format";
import type { Column, Row } from "./source";

/** The columns of rows of methods. */
export function columnsOf<A>(columns: Column<A>[], current: (index: number) => Column<A>): GridColumn<Row<A>>[] {
  return columns.map(({ id, label, title, minor }, index) => ({
    id,
    label,
    title,
    minor,
    value: (row) => current(index).value(row.amounts),
    cell: (row) => current(index).text(row.amounts),
  }));
}

/** A row's exact numbers. */
export function attributesOf<A>(app: App<A>, row: Row<A>): Record<string, string> {
  const attributes = app.attributes(row.method);
  for (const [name, value] of Object.entries(app.shown.data(row.amounts))) attributes[`data-${name}`] = value;
  return attributes;
}

export class MethodsView<A> {
  readonly element: HTMLElement;
  private readonly grid: Grid<Row<A>>;
  private readonly summary = el("p", { class: "note", id: "flat-summary" });
  private rows: Row<A>[] = [];
  private order: string;

  constructor(private readonly app: App<A>) {
    this.order = app.shown.flatOrder;
    this.grid = new Grid<Row<A>>({
      id: "flat",
      label: "Methods",
      role: "grid",
      nameLabel: "Method",
      columns: columnsOf(app.shown.flatColumns, (index) => app.shown.flatColumns[index]),
      name: (row) => [el("span", { class: "label", title: app.name(row.method) }, ...marked(app.label(row.method), app.state.search))],
      attributes: (row) => attributesOf(app, row),
      select: (row) => app.selectMethod(row.method),
      open: () => app.set({ view: "callers" }),
      sort: (id) => {
        this.order = id;
        this.sort();
      },
      empty: "No method to be shown: change the search, or show unchanged ones.",
    });
    this.element = el("div", { class: "view" }, this.summary, this.grid.element);
    this.fill();
    app.onChange((changed) => this.update(changed));
  }

  private update(changed: Changed): void {
    if (["tree", "width", "search", "unchanged"].some((key) => changed.has(key as never))) this.fill();
    if (changed.has("method") || changed.has("view")) this.mark(changed.has("method"));
  }

  private fill(): void {
    const { shown, matches, state } = this.app;
    const all = shown.flat();
    const isFound = (row: Row<A>) => matches === null || matches[row.method] === 1;
    const isShown = (row: Row<A>) => state.unchanged || shown.isNotable === null || shown.isNotable(row.amounts);
    this.rows = all.filter((row) => isFound(row) && isShown(row));
    const hidden = all.filter((row) => isFound(row) && !isShown(row)).length;
    const more = hidden > 0 ? `; ${count(hidden)} more changed by no more than their uncertainty` : "";
    this.summary.textContent = `${count(this.rows.length)} of ${count(all.length)} methods${more}`;
    this.sort();
  }

  private sort(): void {
    const column = this.app.shown.flatColumns.find((column) => column.id === this.order)!;
    const machine = (row: Row<A>) => this.app.source.names[row.method][0];
    this.rows.sort((a, b) => {
      const difference = column.value(b.amounts) - column.value(a.amounts);
      return difference || (machine(a) < machine(b) ? -1 : 1);
    });
    this.grid.setOrder(this.order);
    this.grid.setRows(this.rows.length, (index) => this.rows[index]);
    this.mark(false);
  }

  private mark(reveal: boolean): void {
    const { method } = this.app.state;
    this.grid.setSelected(this.rows.findIndex((row) => row.method === method), reveal);
  }
}
