// What the views need to know of what they show, be it a profile or a comparison. `A` is what a method or a node took there.

import type { Mapping, Paint } from "./colours";
import type { Attributes } from "./query";
import type { Shape } from "./tree";

/** A column of numbers. */
export interface Column<A> {
  id: string;
  label: string;
  title: string;
  /** For people. */
  text(amounts: A): string;
  /** The same as a picture, where there is one. */
  picture?(amounts: A): Segment[];
  /** Exact, and what rows are sorted by. */
  value(amounts: A): number;
  /** Left out on narrow screens. */
  minor?: boolean;
}

/** A piece of a stacked bar: its part of the whole, 0 to 1. */
export interface Segment {
  label: string;
  part: number;
  paint: Paint;
}

/** A number that each method has, for people to choose. */
export interface Quantity {
  id: string;
  label: string;
  /** Of which metric. */
  metric: string;
  /** How many times as much is a step on an axis: so that what stands there is round. */
  step: number;
  text(value: number): string;
}

/** Another number of nodes and methods, to stand beside those that are shown. */
export interface Beside {
  label: string;
  title: string;
  text(value: number): string;
  node(node: number): number;
  method(method: number): number;
}

export interface Row<A> {
  method: number;
  amounts: A;
}

export interface Arcs<A> {
  callers: Row<A>[];
  callees: Row<A>[];
}

/** A colour mapping that is made when it is chosen. */
export interface Choice {
  id: string;
  label: string;
  /** Under which heading it stands among the others, if under one. */
  group?: string;
  make(): Mapping;
}

/** A line of the node information window: its name, the text, and the exact value where there is one. */
export interface Fact {
  name: string;
  text: string;
  value?: number | string;
}

/** The tree that is shown. */
export interface Shown<A> {
  shape: Shape;
  /** Nodes that their parents did not call, but handed over: 1. */
  handed: Uint8Array;
  /** How wide each node's frame is; a node's children are together no wider. */
  widths: Float64Array;
  of(node: number): A;
  flat(): Row<A>[];
  arcs(method: number): Arcs<A>;
  treeColumns: Column<A>[];
  flatColumns: Column<A>[];
  arcColumns: Column<A>[];
  /** What the flat table is sorted by at first. */
  flatOrder: string;
  /** A node's parts of the whole, 0 to 1: all of it, and its own. */
  bar(amounts: A): [number, number];
  /** The exact numbers, as `data-` attributes of rows. */
  data(amounts: A): Record<string, string>;
  /** One line about a node. */
  summary(amounts: A): string;
  /** What queries can ask for. */
  attributes: Attributes;
  choices: Choice[];
  facts(node: number): { heading: string; facts: Fact[]; stack?: Segment[] }[];
  /** What methods can be compared by. */
  quantities: Quantity[];
  /** What stands beside the others in tables while nodes are coloured so: the metric that colours, if it is another than the one shown. */
  beside(colour: string): Beside | null;
  /** Such a number of each method; undefined of those that were not called. */
  methodValues(quantity: string): (number | undefined)[];
  /** In a comparison: whether anything changed by more than is uncertain. Other rows are hidden until they are asked for. */
  isNotable: ((amounts: A) => boolean) | null;
  /** All roots together. */
  whole: number;
  /** Such a value, of which frames are as wide, for people. */
  text(value: number): string;
}

export interface Source<A> {
  kind: "profile" | "diff";
  /** Machine name, name for people. */
  names: [string, string][];
  /** Of methods whose calls were not recorded to the end: until when, in ns; 0 if that was before anything else here. */
  until: ReadonlyMap<number, number>;
  /** Trees that can be chosen, the first at first. */
  trees: string[];
  /** What frames can be as wide as, and what that choice is called. */
  widthLabel: string;
  widthChoices: [string, string][];
  /** Of a comparison, the metrics whose changes it can show; of a profile, frames are as wide as the metric. */
  metricChoices: [string, string][];
  show(tree: number, width: string, metric: string): Shown<A>;
}
