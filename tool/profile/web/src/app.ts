// What is shown at the moment, and who wants to know when that changes.

import { found, type Mapping } from "./colours";
import { shortName } from "./format";
import { contains, parse } from "./query";
import type { Beside, Shown, Source } from "./source";
import { NONE } from "./tree";

export type ViewId = "flame" | "tree" | "methods" | "callers" | "scatter" | "locks" | "tracks" | "about";

export interface State {
  view: ViewId;
  /** Which tree of the source. */
  tree: number;
  /** What frames are as wide as. */
  width: string;
  /** Of a comparison: what has changed. */
  metric: string;
  /** The node that is shown as the root; NONE shows all. */
  root: number;
  /** The selected node and method; NONE without. */
  node: number;
  method: number;
  search: string;
  colour: string;
  /** Whether roots are at the bottom: a flame graph, otherwise an icicle. */
  flames: boolean;
  /** Whether a comparison's unchanged rows are shown. */
  unchanged: boolean;
}

export type Key = keyof State | "theme";
export type Changed = ReadonlySet<Key>;

const narrow = matchMedia("(max-width: 760px)");

export class App<A> {
  state: State;
  shown: Shown<A>;
  mapping: Mapping;
  /** The latest query for nodes, well formed. */
  private query = "";
  /** Which methods the search finds; null without a search. */
  matches: Uint8Array | null = null;
  private readonly listeners: ((changed: Changed) => void)[] = [];
  private readonly haystack: string[];

  constructor(readonly source: Source<A>) {
    this.haystack = source.names.map(([machine, display]) => `${display}\n${machine}`);
    const width = source.widthChoices[0][0];
    const metric = source.metricChoices[0]?.[0] ?? "";
    this.shown = source.show(0, width, metric);
    const { choices } = this.shown;
    this.mapping = choices[0].make();
    this.state = {
      view: "flame",
      tree: 0,
      width,
      metric,
      root: NONE,
      node: NONE,
      method: NONE,
      search: "",
      colour: choices[0].id,
      flames: false,
      unchanged: false,
    };
  }

  onChange(listener: (changed: Changed) => void): void {
    this.listeners.push(listener);
  }

  tell(...keys: Key[]): void {
    this.listeners.forEach((listener) => listener(new Set(keys)));
  }

  set(wanted: Partial<State>): void {
    const before = this.state;
    const next = { ...before, ...wanted };
    if (next.tree !== before.tree || next.width !== before.width || next.metric !== before.metric) {
      const path = before.node === NONE ? [] : this.shown.shape.path(before.node).map((node) => this.shown.shape.method[node]);
      this.shown = this.source.show(next.tree, next.width, next.metric);
      Object.assign(next, { root: NONE, node: this.follow(path) });
      if (next.node === NONE && next.method !== NONE) next.node = this.heaviestOf(next.method);
    } else if (wanted.node !== undefined && wanted.node !== NONE) {
      next.method = this.shown.shape.method[wanted.node];
    }
    if (next.search !== before.search) this.matches = this.find(next.search);
    this.state = next;
    const keys = (Object.keys(next) as (keyof State)[]).filter((key) => next[key] !== before[key]);
    // Frames are as wide as what they have of it.
    if (keys.includes("metric")) keys.push("width");
    if (keys.includes("tree") || keys.includes("width") || keys.includes("colour")) {
      this.mapping = this.map();
    }
    if (keys.length > 0) this.tell(...keys);
  }

  /** What stands beside the other numbers in tables. */
  get beside(): Beside | null {
    return this.shown.beside(this.state.colour);
  }

  /** A query was made: nodes may be coloured by it. */
  setQuery(query: string): void {
    this.query = query;
    if (this.state.colour !== "query") return;
    this.mapping = this.map();
    this.tell("colour");
  }

  /** The colours of what is chosen. */
  private map(): Mapping {
    const { choices, attributes, shape } = this.shown;
    if (this.state.colour !== "query") return choices.find((choice) => choice.id === this.state.colour)!.make();
    const finds = this.query === "" ? () => false : parse(this.query, attributes);
    return found(this.query, Uint8Array.from({ length: shape.size }, (_, node) => Number(finds(node))));
  }

  /** Selects a method, and of its nodes the one with the longest time. */
  selectMethod(method: number): void {
    this.set({ method, node: this.heaviestOf(method) });
  }

  /** A method's name, and until when its calls were recorded, if not to the end. */
  name(method: number): string {
    const name = this.source.names[method][1];
    const until = this.source.until.get(method);
    if (until === undefined) return name;
    return `${name} (calls ${until === 0 ? "no longer recorded" : `until ${(until / 1e9).toFixed(1)} s`})`;
  }

  /** Before a node's name: that its parent did not call it, but handed it over. */
  link(node: number): string {
    return this.shown.handed[node] === 1 ? "[started] " : "";
  }

  /** What rows of a method have as attributes: its name for machines, and until when it was recorded. */
  attributes(method: number): Record<string, string> {
    const until = this.source.until.get(method);
    const attributes = { "data-method": this.source.names[method]?.[0] ?? "" };
    return until === undefined ? attributes : { ...attributes, "data-until-ns": String(until) };
  }

  /** Where there is little room, the name without packages. */
  label(method: number): string {
    return narrow.matches ? shortName(this.name(method)) : this.name(method);
  }

  /** Sets the root of what is shown, and selects it. */
  zoom(node: number): void {
    this.set(node === NONE ? { root: NONE } : { root: node, node });
  }

  upOneLevel(): void {
    const { root } = this.state;
    if (root !== NONE) this.set({ root: this.shown.shape.parent[root] });
  }

  private follow(path: number[]): number {
    let node = NONE;
    for (const method of path) {
      const { shape } = this.shown;
      const next = shape.below(node).find((child) => shape.method[child] === method);
      if (next === undefined) return NONE;
      node = next;
    }
    return node;
  }

  private heaviestOf(method: number): number {
    const { shape, widths } = this.shown;
    let heaviest = NONE;
    for (let node = 0; node < shape.size; node++) {
      if (shape.method[node] === method && (heaviest === NONE || widths[node] > widths[heaviest])) heaviest = node;
    }
    return heaviest;
  }

  private find(search: string): Uint8Array | null {
    const text = search.trim();
    if (text === "") return null;
    const matches = contains(text);
    return Uint8Array.from(this.haystack, (names) => Number(matches(names)));
  }
}
