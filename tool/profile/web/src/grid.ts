// A table of any length, of which only the rows that can be seen are elements. Rows outside are space above and below; they are in
// the head and the foot, so that a table's body has rows only.

import { el } from "./dom";
import { parted } from "./format";

export interface GridColumn<R> {
  id: string;
  label: string;
  title: string;
  cell(row: R): string | Node;
  value(row: R): number;
  minor?: boolean;
  /** Of one that comes and goes, and may be another each time. */
  shown?(): { label: string; title: string } | null;
}

export interface GridOptions<R> {
  id: string;
  label: string;
  role: "grid" | "treegrid";
  columns: GridColumn<R>[];
  nameLabel: string;
  name(row: R): Node[];
  attributes(row: R): Record<string, string>;
  select(row: R, index: number): void;
  /** Enter, or a double click; with `opensOnClick` any click. */
  open(row: R): void;
  opensOnClick?: boolean;
  /** Keys that only this table knows; says whether it was one. */
  key?(event: KeyboardEvent, index: number): boolean;
  sort?(id: string): void;
  empty: string;
}

/** Rows outside the visible part that are made all the same, so that scrolling shows no gaps. */
const MARGIN = 6;
/** As many are made while the table cannot be seen. */
const UNSEEN = 40;

export class Grid<R> {
  readonly element: HTMLElement;
  readonly table: HTMLTableElement;
  private readonly body = el("tbody");
  private readonly above = el("td");
  private readonly below = el("td");
  private readonly emptiness: HTMLElement;
  private readonly heads = new Map<string, HTMLTableCellElement>();
  private readonly longest = new Map<string, number>();
  private length = 0;
  private at: (index: number) => R = () => {
    throw new Error("no rows");
  };
  private selected = -1;
  /** Rows that are elements: from one number up to another. */
  private first = 0;
  private last = 0;

  constructor(private readonly options: GridOptions<R>) {
    const { id, label, role, columns, nameLabel } = options;
    const headings = [el("th", { scope: "col", class: "name", "data-column": "method" }, nameLabel)];
    for (const column of columns) {
      const { sort } = options;
      const text = sort === undefined ? column.label : el("button", { type: "button", title: column.title, click: () => sort(column.id) }, column.label);
      const head = el("th", { scope: "col", class: column.minor ? "minor" : "", title: column.title, "data-column": column.id }, text);
      this.heads.set(column.id, head);
      // And a mark of the order.
      this.fit(column.id, column.label.length + 2);
      headings.push(head);
    }
    this.table = el(
      "table",
      { id, role, "aria-label": label, tabindex: 0, keydown: (event: KeyboardEvent) => this.onKey(event) },
      el("thead", {}, el("tr", {}, ...headings), el("tr", { class: "pad", "aria-hidden": "true", role: "presentation" }, this.above)),
      this.body,
      el("tfoot", { "aria-hidden": "true" }, el("tr", { class: "pad", role: "presentation" }, this.below)),
    );
    this.emptiness = el("p", { class: "empty", hidden: true }, options.empty);
    this.element = el("div", { class: "scroller", scroll: () => this.render() }, this.table, this.emptiness);
    for (const { id, shown } of columns) if (shown !== undefined) this.heads.get(id)!.hidden = shown() === null;
    this.body.addEventListener("click", (event) => this.onClick(event));
    this.body.addEventListener("dblclick", (event) => {
      const isTwist = (event.target as Element).classList.contains("twist");
      if (this.selected >= 0 && !isTwist && !options.opensOnClick) options.open(this.at(this.selected));
    });
    new ResizeObserver(() => this.render()).observe(this.element);
  }

  /** Names the columns that come and go. */
  relabel(): void {
    for (const { id, shown } of this.options.columns) {
      if (shown === undefined) continue;
      const [head, now] = [this.heads.get(id)!, shown()];
      head.hidden = now === null;
      if (now === null) continue;
      head.title = now.title;
      (head.querySelector("button") ?? head).textContent = now.label;
      this.longest.delete(id);
      this.fit(id, now.label.length + 2);
    }
    this.render();
  }

  setRows(length: number, at: (index: number) => R): void {
    this.length = length;
    this.at = at;
    this.table.setAttribute("aria-rowcount", String(length + 1));
    this.emptiness.hidden = length > 0;
    this.render();
  }

  /** Marks the order: a column's id, and always the largest first. */
  setOrder(id: string): void {
    for (const [column, head] of this.heads) {
      if (column === id) head.setAttribute("aria-sort", "descending");
      else head.removeAttribute("aria-sort");
    }
  }

  /** Marks a row as selected; -1 for none. */
  setSelected(index: number, reveal: boolean): void {
    this.selected = index;
    if (reveal && index >= 0) {
      const { element } = this;
      const [height, head] = [this.rowHeight(), this.headHeight()];
      const top = index * height;
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top + height > element.scrollTop + element.clientHeight - head) {
        element.scrollTop = top + height - Math.max(height, element.clientHeight - head);
      }
    }
    // The rows stay the same elements: the second click of two must find what the first one hit.
    if (index < 0 || (index >= this.first && index < this.last)) this.mark();
    else this.render();
  }

  render(): void {
    const height = this.rowHeight();
    const seen = this.element.clientHeight;
    const first = Math.max(0, Math.min(Math.floor(this.element.scrollTop / height) - MARGIN, this.length - 1));
    const rows = seen === 0 ? UNSEEN : Math.ceil(seen / height) + 2 * MARGIN;
    const last = Math.min(this.length, first + rows);
    this.above.style.height = `${first * height}px`;
    this.below.style.height = `${Math.max(0, this.length - last) * height}px`;
    const made: HTMLElement[] = [];
    for (let index = first; index < last; index++) made.push(this.row(index));
    this.body.replaceChildren(...made);
    [this.first, this.last] = [first, last];
    this.mark();
  }

  private mark(): void {
    [...this.body.rows].forEach((row, index) => {
      const isSelected = this.first + index === this.selected;
      row.classList.toggle("selected", isSelected);
      row.setAttribute("aria-selected", String(isSelected));
    });
    const isMade = this.selected >= this.first && this.selected < this.last;
    if (isMade) this.table.setAttribute("aria-activedescendant", this.rowId(this.selected));
    else this.table.removeAttribute("aria-activedescendant");
  }

  private row(index: number): HTMLElement {
    const { columns, name, attributes } = this.options;
    const row = this.at(index);
    const element = el("tr", { id: this.rowId(index), "aria-rowindex": index + 2, ...attributes(row) });
    element.append(el("td", { class: "name", "data-column": "method" }, el("div", { class: "name-cell" }, ...name(row))));
    for (const column of columns) {
      if (column.shown?.() === null) continue;
      const value = String(column.value(row));
      const cell = column.cell(row);
      this.fit(column.id, (typeof cell === "string" ? cell : (cell.textContent ?? "")).length);
      element.append(el("td", { class: column.minor ? "minor" : "", "data-column": column.id, "data-value": value }, cell));
    }
    return element;
  }

  /** Makes a column as wide as its longest text so far: a number without its end, or its unit, is another number. */
  private fit(id: string, length: number): void {
    if (length <= (this.longest.get(id) ?? 0)) return;
    this.longest.set(id, length);
    this.heads.get(id)!.style.setProperty("--characters", String(length));
  }

  private rowId(index: number): string {
    return `${this.options.id}-row-${index}`;
  }

  private rowHeight(): number {
    return matchMedia("(pointer: coarse)").matches ? 40 : 28;
  }

  private headHeight(): number {
    return this.table.tHead!.rows[0].offsetHeight;
  }

  private onClick(event: Event): void {
    const row = (event.target as Element).closest("tr");
    const index = Number(row?.getAttribute("aria-rowindex")) - 2;
    if (row === null || index < 0) return;
    this.choose(index);
    if (this.options.opensOnClick) this.options.open(this.at(index));
  }

  private choose(index: number): void {
    if (this.length === 0) return;
    const wanted = Math.max(0, Math.min(this.length - 1, index));
    this.setSelected(wanted, true);
    this.options.select(this.at(wanted), wanted);
  }

  private onKey(event: KeyboardEvent): void {
    if (event.target !== this.table || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((this.element.clientHeight - this.headHeight()) / this.rowHeight()) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const isHandled = this.selected >= 0 && this.options.key?.(event, this.selected);
    if (isHandled) {
      // Done.
    } else if (event.key in steps) this.choose(this.selected < 0 ? 0 : this.selected + steps[event.key]);
    else if (event.key === "Home") this.choose(0);
    else if (event.key === "End") this.choose(this.length - 1);
    else if (event.key === "Enter" && this.selected >= 0) this.options.open(this.at(this.selected));
    else return;
    event.preventDefault();
  }
}

/** A method's name, with the part that the search finds marked. Where it does not fit its packages are cut, and not the method. */
export function marked(name: string, search: string): Node[] {
  const [packages] = parted(name);
  const wanted = search.trim().toLowerCase().replaceAll("::", ".");
  const at = wanted === "" ? -1 : name.toLowerCase().indexOf(wanted);
  const end = at + wanted.length;
  /** The part of the name from one place to another. */
  const part = (from: number, to: number): Node[] => {
    const [start, stop] = [Math.max(at, from), Math.min(end, to)];
    if (at < 0 || start >= stop) return [document.createTextNode(name.slice(from, to))];
    return [document.createTextNode(name.slice(from, start)), el("mark", {}, name.slice(start, stop)), document.createTextNode(name.slice(stop, to))];
  };
  const method = el("span", { class: "method" }, ...part(packages.length, name.length));
  return packages === "" ? [method] : [el("span", { class: "packages" }, ...part(0, packages.length)), method];
}
