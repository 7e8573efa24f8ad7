// What of the uncertainties of a tree's nodes is chance, by which samples fell into this one and not into that: of many nodes together as much as
// of all their samples. See tool/profile/src/profile/sampled.rs.

import { NONE, type Amounts } from "./tree";

/** Where samples of the undisturbed code were. */
export interface Sampled {
  roots: { node: number; samples: number; chance_ns: number }[];
  /** Nodes, and how many were in each itself. */
  own: [number, number][];
}

interface Errors {
  error: Float64Array;
  totalError: Float64Array;
}

export class Chances {
  /** Of each node's uncertainty what is not chance, and what its samples stand for, squared: of itself, and with what it calls. */
  readonly rest: Float64Array;
  readonly seen: Float64Array;
  readonly totalRest: Float64Array;
  readonly totalSeen: Float64Array;
  private readonly square: number;
  private readonly whole: number;

  constructor({ roots, own }: Sampled, parent: Int32Array, handed: Uint8Array, { error, totalError }: Errors) {
    const squares = roots.map(({ chance_ns }) => chance_ns * chance_ns);
    const wholes = roots.map(({ samples }, at) => (samples + 1) * squares[at]);
    this.square = Math.max(...squares);
    this.whole = wholes.reduce((sum, whole) => sum + whole, 0);
    const samples = new Float64Array(parent.length);
    for (const [node, count] of own) samples[node] = count;
    const caller = (node: number) => (handed[node] === 1 ? NONE : parent[node]);
    const total = samples.slice();
    for (let node = parent.length - 1; node >= 0; node--) {
      if (caller(node) !== NONE) total[caller(node)] += total[node];
    }
    const root = new Int32Array(parent.length).fill(NONE);
    roots.forEach(({ node }, at) => (root[node] = at));
    for (let node = 0; node < parent.length; node++) {
      if (caller(node) !== NONE) root[node] = root[caller(node)];
    }
    const seen = (samples: Float64Array) => samples.map((count, node) => (root[node] === NONE ? 0 : count * squares[root[node]]));
    const rest = (error: Float64Array, samples: Float64Array) =>
      error.map((ns, node) => {
        const of = root[node];
        return of === NONE ? ns : Math.floor(Math.sqrt(Math.max(ns * ns - variance(samples[node] * squares[of], squares[of], wholes[of]), 0)));
      });
    [this.rest, this.seen] = [rest(error, samples), seen(samples)];
    [this.totalRest, this.totalSeen] = [rest(totalError, total), seen(total)];
  }

  /** A row's uncertainties, to which all that belongs to it was added. */
  settle(row: Amounts, seen: number, totalSeen: number): void {
    const joined = (rest: number, seen: number) => Math.floor(Math.hypot(rest, Math.sqrt(variance(seen, this.square, this.whole))));
    row.error = joined(row.error, seen);
    row.totalError = joined(row.totalError, totalSeen);
  }
}

/** As if one sample more were there and one not. */
function variance(seen: number, square: number, whole: number): number {
  const all = seen + 0.5 * square;
  // Of a root that never ran, samples stand for nothing.
  return whole > 0 ? all * Math.max(1 - all / whole, 0) : 0;
}
