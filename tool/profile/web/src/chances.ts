// What of the uncertainties of a tree's nodes is chance, by which samples fell into this one and not into that: of many nodes together as much as
// of all their samples. See tool/profile/src/profile/sampled.rs.

import { NONE, type Amounts, type Columns } from "./tree";

/** Where samples of the undisturbed code were. */
export interface Sampled {
  roots: { node: number; samples: number; chance_ns: number; unsettled_ns: number; unplaced_ns: number }[];
  /** Nodes, and how many were in each itself. */
  own: [number, number][];
  /** The same of the second half, where samples alone say how time divides. */
  late?: [number, number][];
}

/** What samples say of a time: what they stand for, squared, and how much of it there was, by all of them and by those of each half. */
export interface Said {
  square: number;
  all: number;
  halves: [number, number];
}

export const unsaid = (): Said => ({ square: 0, all: 0, halves: [0, 0] });

/** Of each node what is not chance, and what its samples say. */
interface Parted {
  rest: Float64Array;
  square: Float64Array;
  all: Float64Array;
  halves: [Float64Array, Float64Array];
}

/** Of fewer samples in a half nothing is known of how it differs, nor does it, by less than so many standard deviations. */
const ENOUGH = 30;
const CLEARLY = 2;

export class Chances {
  private readonly own: Parted;
  private readonly total: Parted;
  private readonly square: number;
  private readonly whole: number;
  private readonly ofRoots: number;
  private readonly inHalves: [number, number] | null;
  /** The time of the only root, and what is not known of it; of several that adds up. */
  private readonly root: { ns: number; unsettled: number; unplaced: number } | null;

  constructor({ roots, own, late }: Sampled, parent: Int32Array, handed: Uint8Array, columns: Columns) {
    const squares = roots.map(({ chance_ns }) => chance_ns * chance_ns);
    const wholes = roots.map(({ samples }, at) => (samples + 1) * squares[at]);
    this.square = Math.max(...squares);
    this.whole = wholes.reduce((sum, whole) => sum + whole, 0);
    const samples: [Float64Array, Float64Array] = [new Float64Array(parent.length), new Float64Array(parent.length)];
    for (const [node, count] of own) samples[0][node] = count;
    for (const [node, count] of late ?? []) {
      samples[0][node] = Math.max(samples[0][node] - count, 0);
      samples[1][node] = count;
    }
    const caller = (node: number) => (handed[node] === 1 ? NONE : parent[node]);
    const totals: [Float64Array, Float64Array] = [samples[0].slice(), samples[1].slice()];
    for (let node = parent.length - 1; node >= 0; node--) {
      if (caller(node) !== NONE) for (const total of totals) total[caller(node)] += total[node];
    }
    const root = new Int32Array(parent.length).fill(NONE);
    roots.forEach(({ node }, at) => (root[node] = at));
    for (let node = 0; node < parent.length; node++) {
      if (caller(node) !== NONE) root[node] = root[caller(node)];
    }
    const { total, totalError } = columns;
    const each = (count: (node: number) => number) => roots.map(({ node }) => total[node] / Math.max(count(node), 1));
    const eachOfAll = each((node) => totals[0][node] + totals[1][node]);
    const eachOfHalf = [0, 1].map((half) => each((node) => totals[half][node]));
    const wrong = roots.map(({ node }) => (total[node] > 0 ? totalError[node] / total[node] : 0));
    this.ofRoots = Math.min(...wrong);
    const inHalf = (half: number) => roots.reduce((sum, { node }) => sum + totals[half][node], 0);
    this.inHalves = late === undefined ? null : [inHalf(0), inHalf(1)];
    const outermost = parent.reduce((count, _, node) => count + (caller(node) === NONE ? 1 : 0), 0);
    const one = roots[0];
    this.root = outermost === 1 ? { ns: total[one.node], unsettled: one.unsettled_ns, unplaced: one.unplaced_ns } : null;
    const parted = (error: Float64Array, time: Float64Array, of: [Float64Array, Float64Array]): Parted => {
      const count = of[0].map((early, node) => early + of[1][node]);
      const said = (each: number[], of: Float64Array) => of.map((count, node) => (root[node] === NONE ? 0 : count * each[root[node]]));
      const rest = error.map((ns, node) => {
        const at = root[node];
        if (at === NONE) return ns;
        return Math.floor(Math.sqrt(Math.max(ns * ns - variance(count[node] * squares[at], squares[at], wholes[at]) - this.doubt(time[node]), 0)));
      });
      return { rest, square: said(squares, count), all: said(eachOfAll, count), halves: [said(eachOfHalf[0], of[0]), said(eachOfHalf[1], of[1])] };
    };
    this.own = parted(columns.error, columns.self, samples);
    this.total = parted(totalError, total, totals);
  }

  /** Adds what samples say of a node itself; what of its uncertainty is not chance. */
  addOwn(node: number, said: Said): number {
    return add(this.own, node, said);
  }

  /** The same of it with what it calls. */
  addTotal(node: number, said: Said): number {
    return add(this.total, node, said);
  }

  /** A row's uncertainties, to which all that belongs to it was added. */
  settle(row: Amounts, own: Said, total: Said): void {
    row.error = this.joined(row.error, row.self, own);
    row.totalError = this.joined(row.totalError, row.total, total);
  }

  /** What is not known of the only root, of such a part of its time, squared. */
  private doubt(ns: number): number {
    if (this.root === null) return 0;
    const part = Math.min(ns / Math.max(this.root.ns, 1), 1);
    const spread = part * (1 - part);
    return (this.root.unsettled * spread) ** 2 + this.root.unplaced ** 2 * spread;
  }

  private joined(rest: number, ns: number, said: Said): number {
    const chance = Math.sqrt(variance(said.square, this.square, this.whole));
    const ofRoot = this.doubt(ns);
    const addedUp = Math.sqrt(rest * rest + chance * chance + ofRoot);
    if (this.inHalves === null) return Math.floor(addedUp);
    const apart = Math.abs(said.halves[0] - said.halves[1]) / 2;
    const isApart = this.inHalves.every((count) => count >= ENOUGH) && apart > CLEARLY * chance;
    const bySamples = isApart ? apart : chance;
    const decided = Math.abs(ns - said.all);
    const ofRoots = this.ofRoots * ns;
    return Math.floor(Math.min(addedUp, Math.sqrt(bySamples * bySamples + decided * decided + ofRoots * ofRoots + ofRoot)));
  }
}

function add(parted: Parted, node: number, said: Said): number {
  said.square += parted.square[node];
  said.all += parted.all[node];
  said.halves[0] += parted.halves[0][node];
  said.halves[1] += parted.halves[1][node];
  return parted.rest[node];
}

/** As if one sample more were there and one not. */
function variance(seen: number, square: number, whole: number): number {
  const all = seen + 0.5 * square;
  // Of a root that never ran, samples stand for nothing.
  return whole > 0 ? all * Math.max(1 - all / whole, 0) : 0;
}
