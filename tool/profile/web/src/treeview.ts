// The calling context tree, to be opened node by node, or level by level.

import type { App, Changed } from "./app";
import { button, el } from "./dom";
import { Grid, marked } from "./grid";
import { besideOf, cellOf } from "./methodsview";
import type { Column } from "./source";
import { paintOf } from "./theme";
import { NONE } from "./tree";

/** Levels that are indented; what is deeper says its level instead, so that deep recursion stays readable. */
const INDENTED = 24;
/** What takes at least this part of the whole is on the hot path. */
const HOT = 0.1;

export class TreeView<A> {
  readonly element: HTMLElement;
  private readonly grid: Grid<number>;
  private open = new Uint8Array(0);
  private rows: number[] = [];
  private hidden: Uint8Array | null = null;

  constructor(private readonly app: App<A>) {
    const { treeColumns } = app.shown;
    this.grid = new Grid<number>({
      id: "tree",
      label: "Calling context tree",
      role: "treegrid",
      nameLabel: "Method",
      columns: [
        ...treeColumns.map(({ id, label, title, minor }, index) => ({
          id,
          label,
          title,
          minor,
          value: (node: number) => this.column(index).value(app.shown.of(node)),
          cell: (node: number) => (index === 0 ? this.bar(node) : cellOf(this.column(index), app.shown.of(node))),
        })),
        besideOf<A, number>(app, (beside, node) => beside.node(node)),
      ],
      name: (node) => this.name(node),
      attributes: (node) => this.attributes(node),
      select: (node) => app.set({ node }),
      open: (node) => this.toggle(node),
      key: (event, index) => this.key(event, index),
      empty: "No calls were recorded.",
    });
    const tools = el(
      "div",
      { class: "tools", role: "group", "aria-label": "Opening and closing" },
      button("Open next level", () => this.openLevel(), { id: "open-level" }),
      button("Close last level", () => this.closeLevel(), { id: "close-level" }),
      button("Open the hot path", () => this.openHotPath(), { id: "open-hot-path" }),
      button("Open all", () => this.openAll(1), { id: "open-all" }),
      button("Close all", () => this.openAll(0), { id: "close-all" }),
    );
    this.element = el("div", { class: "view" }, tools, this.grid.element);
    this.reset();
    app.onChange((changed) => this.update(changed));
  }

  private column(index: number): Column<A> {
    return this.app.shown.treeColumns[index];
  }

  /** Only the roots are open at first, as JaViz has it. */
  private reset(): void {
    const { shape, isNotable } = this.app.shown;
    this.open = new Uint8Array(shape.size);
    for (const root of shape.below(NONE)) this.open[root] = 1;
    this.hidden = null;
    if (isNotable !== null && !this.app.state.unchanged) {
      this.hidden = new Uint8Array(shape.size).fill(1);
      for (let node = shape.size - 1; node >= 0; node--) {
        if (isNotable(this.app.shown.of(node))) this.hidden[node] = 0;
        if (this.hidden[node] === 0 && shape.parent[node] !== NONE) this.hidden[shape.parent[node]] = 0;
      }
    }
    this.rebuild(false);
  }

  private update(changed: Changed): void {
    const { state, shown } = this.app;
    if (changed.has("tree") || changed.has("width") || changed.has("unchanged")) {
      this.reset();
    } else if (changed.has("root")) {
      if (state.root !== NONE) this.open[state.root] = 1;
      this.rebuild(false);
    } else if (changed.has("search") || changed.has("colour") || changed.has("theme") || changed.has("view")) {
      this.grid.render();
    }
    if (changed.has("colour") || changed.has("width")) this.grid.relabel();
    if (changed.has("node") || changed.has("root") || (changed.has("view") && state.view === "tree")) {
      if (state.node !== NONE && shown.shape.isAbove(state.root, state.node)) this.reveal(state.node);
      this.grid.setSelected(this.rows.indexOf(state.node), true);
    }
  }

  private reveal(node: number): void {
    const { shape } = this.app.shown;
    let isNew = false;
    for (let at = shape.parent[node]; at !== NONE; at = shape.parent[at]) {
      isNew ||= this.open[at] === 0;
      this.open[at] = 1;
    }
    if (isNew) this.rebuild(true);
  }

  private children(node: number): number[] {
    const below = this.app.shown.shape.below(node);
    const { hidden } = this;
    return hidden === null ? [...below] : [...below].filter((child) => hidden[child] === 0);
  }

  private rebuild(keepsSelection: boolean): void {
    const { root } = this.app.state;
    const pending = root === NONE ? this.children(NONE).reverse() : [root];
    const rows: number[] = [];
    while (pending.length > 0) {
      const node = pending.pop()!;
      rows.push(node);
      if (this.open[node] === 0) continue;
      const below = this.children(node);
      for (let index = below.length - 1; index >= 0; index--) pending.push(below[index]);
    }
    this.rows = rows;
    this.grid.setRows(rows.length, (index) => rows[index]);
    if (!keepsSelection) this.grid.setSelected(rows.indexOf(this.app.state.node), false);
  }

  private base(): number {
    const { root } = this.app.state;
    return root === NONE ? 1 : this.app.shown.shape.level[root];
  }

  private attributes(node: number): Record<string, string> {
    const { shown } = this.app;
    const { shape } = shown;
    const attributes: Record<string, string> = {
      "data-node": String(node),
      ...this.app.attributes(shape.method[node]),
      "aria-level": String(shape.level[node] - this.base() + 1),
    };
    for (const [name, value] of Object.entries(shown.data(shown.of(node)))) attributes[`data-${name}`] = value;
    if (shown.handed[node] === 1) attributes["data-link"] = "thread";
    if (shape.fanout(node) > 0) attributes["aria-expanded"] = String(this.open[node] === 1);
    return attributes;
  }

  private name(node: number): Node[] {
    const { app } = this;
    const { shape } = app.shown;
    const level = shape.level[node] - this.base();
    const twist = el("span", { class: "twist", "aria-hidden": "true" }, shape.fanout(node) === 0 ? "·" : this.open[node] === 1 ? "▾" : "▸");
    twist.style.marginInlineStart = `${Math.min(level, INDENTED) * 14}px`;
    twist.addEventListener("click", () => this.toggle(node));
    const swatch = el("span", { class: "swatch", title: `${app.mapping.label}: ${app.mapping.describe(node)}` });
    swatch.style.background = paintOf(app.mapping.key[app.mapping.classOf(node)].paint);
    const depth = level > INDENTED ? [el("span", { class: "depth" }, `[${shape.level[node]}] `)] : [];
    const link = app.link(node);
    const name = link + app.name(shape.method[node]);
    const text = el("span", { class: "label", title: name }, ...marked(link + app.label(shape.method[node]), app.state.search));
    return [twist, swatch, ...depth, text];
  }

  private bar(node: number): Node {
    const { shown } = this.app;
    const [total, own] = shown.bar(shown.of(node));
    const parts = el("span", { class: "bar", "aria-hidden": "true" }, el("span", { class: "total" }), el("span", { class: "own" }));
    (parts.children[0] as HTMLElement).style.width = `${100 * Math.min(1, total)}%`;
    (parts.children[1] as HTMLElement).style.width = `${100 * Math.min(1, own)}%`;
    return el("span", { class: "with-bar" }, parts, el("span", {}, this.column(0).text(shown.of(node))));
  }

  private toggle(node: number): void {
    if (this.app.shown.shape.fanout(node) === 0) return;
    this.open[node] ^= 1;
    this.rebuild(false);
    this.grid.setSelected(this.rows.indexOf(this.app.state.node), false);
  }

  private openAll(value: 0 | 1): void {
    this.open.fill(value);
    this.rebuild(false);
  }

  /** Every node that is shown and closed is opened. */
  private openLevel(): void {
    for (const node of this.rows.slice()) this.open[node] = 1;
    this.rebuild(false);
  }

  /** From the selected node, or from the top, down where most time goes; the last one is selected. */
  private openHotPath(): void {
    const { app } = this;
    const { shape, widths } = app.shown;
    const { node: selected, root } = app.state;
    const whole = shape.below(NONE).reduce((sum, top) => sum + widths[top], 0);
    let node = selected === NONE || !shape.isAbove(root, selected) ? root : selected;
    for (;;) {
      const next = this.children(node)[0];
      if (next === undefined || widths[next] < HOT * whole) break;
      if (node !== NONE) this.open[node] = 1;
      node = next;
    }
    if (node === NONE) return;
    this.rebuild(true);
    if (node === selected) this.grid.setSelected(this.rows.indexOf(node), true);
    else app.set({ node });
  }

  /** The callers of the deepest nodes that are shown are closed. */
  private closeLevel(): void {
    const { shape } = this.app.shown;
    const deepest = this.rows.reduce((level, node) => Math.max(level, shape.level[node]), 0);
    for (const node of this.rows) if (shape.level[node] >= deepest - 1) this.open[node] = 0;
    this.rebuild(false);
  }

  /** The keys of a tree, as ARIA has them. */
  private key(event: KeyboardEvent, index: number): boolean {
    const { shape } = this.app.shown;
    const node = this.rows[index];
    const isOpen = this.open[node] === 1 && shape.fanout(node) > 0;
    const parent = shape.parent[node];
    switch (event.key) {
      case "ArrowRight":
        if (!isOpen) this.toggle(node);
        else this.app.set({ node: this.rows[index + 1] });
        return true;
      case "ArrowLeft":
        if (isOpen) this.toggle(node);
        else if (parent !== NONE && node !== this.app.state.root) this.app.set({ node: parent });
        return true;
      case "*":
        for (const sibling of this.children(parent)) this.open[sibling] = 1;
        this.rebuild(false);
        return true;
      case "o":
        this.openLevel();
        return true;
      case "b":
        this.openHotPath();
        return true;
      case "z":
        this.app.zoom(node);
        return true;
      case "u":
        this.app.upOneLevel();
        return true;
      case "r":
        this.app.zoom(NONE);
        return true;
      default:
        return false;
    }
  }
}
