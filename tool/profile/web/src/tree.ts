// Calling context trees as columns, and ways through them. None recurses: a tree may be as deep as a stack.

import type { Chances } from "./chances";
import type { PartOfTime } from "./partoftime";

/** No node: above the roots, or nothing selected. */
export const NONE = -1;

/** What a method, or a node, took. */
export interface Amounts {
  calls: number;
  thrown: number;
  self: number;
  total: number;
  error: number;
  totalError: number;
  samples: number;
  running: number;
  /** Calls may be missing: there are at least so many. */
  atLeast: boolean;
  /** The parts of the self time, where waits were counted. */
  parts?: number[];
}

export const nothing = (): Amounts => ({
  calls: 0,
  thrown: 0,
  self: 0,
  total: 0,
  error: 0,
  totalError: 0,
  samples: 0,
  running: 0,
  atLeast: false,
});

/** The nodes' numbers. Times are nanoseconds, exact up to 2^53. */
export interface Columns {
  calls: Float64Array;
  thrown: Float64Array;
  self: Float64Array;
  error: Float64Array;
  totalError: Float64Array;
  samples: Float64Array;
  running: Float64Array;
  total: Float64Array;
  /** Calls may be missing: 1. */
  atLeast: Uint8Array;
  /** What of the uncertainties is chance, where that is known. */
  chances?: Chances;
  /** Where they are parts of the time. */
  ofTime?: PartOfTime;
  /** Where they are by samples: what each stands for. */
  grain?: number;
}

/** Their number scatters by its square root. */
export const errorOfSamples = (value: number, grain: number) => Math.floor(Math.sqrt(value * grain));

/** A tree's shape. Parents come before their children. */
export class Shape {
  readonly size: number;
  readonly level: Int32Array;
  /** Where each node's children begin among `children`; the roots' place is 0, a node's is its number + 1. */
  private readonly starts: Int32Array;
  private readonly children: Int32Array;
  private readonly isSorted: Uint8Array;
  private order: { preorder: Int32Array; rank: Int32Array } | null = null;
  private breadth: Int32Array | null = null;

  /** The weight decides which of some siblings comes first. */
  constructor(
    readonly parent: Int32Array,
    readonly method: Int32Array,
    readonly weight: Float64Array,
  ) {
    this.size = parent.length;
    this.level = new Int32Array(this.size);
    this.starts = new Int32Array(this.size + 2);
    for (let node = 0; node < this.size; node++) {
      const above = parent[node];
      this.level[node] = above === NONE ? 1 : this.level[above] + 1;
      this.starts[above + 2]++;
    }
    for (let place = 1; place < this.starts.length; place++) this.starts[place] += this.starts[place - 1];
    const next = this.starts.slice();
    this.children = new Int32Array(this.size);
    for (let node = 0; node < this.size; node++) this.children[next[parent[node] + 1]++] = node;
    this.isSorted = new Uint8Array(this.size + 1);
  }

  /** How many children a node has, or how many roots there are. */
  fanout(node: number): number {
    return this.starts[node + 2] - this.starts[node + 1];
  }

  /** A node's children, or the roots, the heaviest first. */
  below(node: number): Int32Array {
    const all = this.children.subarray(this.starts[node + 1], this.starts[node + 2]);
    if (this.isSorted[node + 1] === 0) {
      this.isSorted[node + 1] = 1;
      if (all.length > 1) all.sort((a, b) => this.weight[b] - this.weight[a] || a - b);
    }
    return all;
  }

  /** All nodes, each before its children, and where each stands among them. */
  depthFirst(): { preorder: Int32Array; rank: Int32Array } {
    if (this.order !== null) return this.order;
    const preorder = new Int32Array(this.size);
    const rank = new Int32Array(this.size);
    const pending = [...this.below(NONE)].reverse();
    for (let at = 0; pending.length > 0; at++) {
      const node = pending.pop()!;
      preorder[at] = node;
      rank[node] = at;
      const below = this.below(node);
      for (let index = below.length - 1; index >= 0; index--) pending.push(below[index]);
    }
    this.order = { preorder, rank };
    return this.order;
  }

  /** All nodes, level by level. */
  breadthFirst(): Int32Array {
    if (this.breadth !== null) return this.breadth;
    const { preorder } = this.depthFirst();
    const deepest = this.level.reduce((a, b) => Math.max(a, b), 0);
    const next = new Int32Array(deepest + 2);
    for (let node = 0; node < this.size; node++) next[this.level[node] + 1]++;
    for (let level = 1; level < next.length; level++) next[level] += next[level - 1];
    const order = new Int32Array(this.size);
    for (const node of preorder) order[next[this.level[node]]++] = node;
    this.breadth = order;
    return order;
  }

  /** From the root down to a node. */
  path(node: number): number[] {
    const path = [];
    for (let at = node; at !== NONE; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  /** Whether one is the other, or above it; above the roots is above all. */
  isAbove(upper: number, lower: number): boolean {
    if (upper === NONE) return true;
    let at = lower;
    while (at !== NONE && this.level[at] > this.level[upper]) at = this.parent[at];
    return at === upper;
  }

  /** Enters and leaves every node. */
  walk(enter: (node: number) => void, leave: (node: number) => void): void {
    const path: number[] = [];
    for (const node of this.depthFirst().preorder) {
      while (path.length > 0 && path[path.length - 1] !== this.parent[node]) leave(path.pop()!);
      path.push(node);
      enter(node);
    }
    while (path.length > 0) leave(path.pop()!);
  }
}

export function amountsOf(columns: Columns, node: number): Amounts {
  return {
    calls: columns.calls[node],
    thrown: columns.thrown[node],
    self: columns.self[node],
    total: columns.total[node],
    error: columns.error[node],
    totalError: columns.totalError[node],
    samples: columns.samples[node],
    running: columns.running[node],
    atLeast: columns.atLeast[node] === 1,
  };
}
