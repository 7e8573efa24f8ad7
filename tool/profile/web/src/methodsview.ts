// The flat table: each method, whatever called it.

import type { App, Changed } from "./app";
import { el, stacked } from "./dom";
import { Grid, marked, type GridColumn } from "./grid";
import { count } from "./format";
import type { Beside, Column, Row } from "./source";
import { paintOf } from "./theme";

/** The columns of rows of methods. */
export function columnsOf<A>(columns: Column<A>[], current: (index: number) => Column<A>): GridColumn<Row<A>>[] {
  return columns.map(({ id, label, title, minor }, index) => ({
    id,
    label,
    title,
    minor,
    value: (row) => current(index).value(row.amounts),
    cell: (row) => cellOf(current(index), row.amounts),
  }));
}

/** The column that stands beside the others. */
export function besideOf<A, R>(app: App<A>, value: (beside: Beside, row: R) => number): GridColumn<R> {
  return {
    id: "beside",
    label: "",
    title: "",
    cell: (row) => (app.beside === null ? "" : app.beside.text(value(app.beside, row))),
    value: (row) => (app.beside === null ? 0 : value(app.beside, row)),
    minor: true,
    shown: () => app.beside,
  };
}

/** A number, with its picture before it if it has one. */
export function cellOf<A>(column: Column<A>, amounts: A): string | Node {
  const text = column.text(amounts);
  const segments = column.picture?.(amounts) ?? [];
  if (segments.length === 0) return text;
  const bar = stacked(segments.map(({ label, part, paint }) => ({ label, part, paint: paintOf(paint) })));
  return el("span", { class: "with-bar" }, bar, el("span", {}, text));
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
  private readonly beside: GridColumn<Row<A>>;
  private rows: Row<A>[] = [];
  private order: string;

  constructor(private readonly app: App<A>) {
    this.order = app.shown.flatOrder;
    this.beside = besideOf(app, (beside, row) => beside.method(row.method));
    this.grid = new Grid<Row<A>>({
      id: "flat",
      label: "Methods",
      role: "grid",
      nameLabel: "Method",
      columns: [...columnsOf(app.shown.flatColumns, (index) => app.shown.flatColumns[index]), this.beside],
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
    else if (changed.has("theme")) this.grid.render();
    if (changed.has("colour") || changed.has("width")) {
      this.grid.relabel();
      if (this.order === this.beside.id) this.sort();
    }
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
    const { flatColumns, flatOrder } = this.app.shown;
    if (this.order === this.beside.id && this.app.beside === null) this.order = flatOrder;
    const column = flatColumns.find((column) => column.id === this.order);
    const value = column === undefined ? this.beside.value : (row: Row<A>) => column.value(row.amounts);
    const machine = (row: Row<A>) => this.app.source.names[row.method][0];
    this.rows.sort((a, b) => {
      const difference = value(b) - value(a);
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
