// What nodes and methods have of any metric, of those too that follow from others: these are quotients of sums, and defined by the tool
// (tool/profile/src/profile/derived.rs).

import { flat } from "./arrange";
import { columnsOf, type Metric, type Part, type Stored } from "./data";
import { count, percent, size, time } from "./format";
import type { Shape } from "./tree";

/** Something itself, and with what it calls. */
export interface Value {
  own: number;
  total: number;
}

/** A number in a unit, with it. */
export function textIn(unit: Exclude<Metric["unit"], "share">, value: number): string {
  return unit === "nanoseconds" ? time(Math.round(value)) : unit === "bytes" ? size(Math.round(value)) : count(value);
}

/** A metric's value for people. */
export function textOf({ unit, ratio }: Metric): (value: number) => string {
  return unit === "share" ? (value) => percent(value, ratio!.one) : (value) => textIn(unit, value);
}

/** How many times as much is a round step of it. */
export const stepOf = ({ unit }: Metric): number => (unit === "bytes" ? 32 : 10);

/** Its unit, at the end of attributes' names. */
export const suffixOf = ({ unit }: Metric): string => ({ nanoseconds: "-ns", bytes: "-bytes", bytecodes: "-bytecodes", count: "", share: "-millionths" })[unit];

/** The same of a tree's nodes. */
export class Values {
  private readonly known = new Map<string, { own: Float64Array; total: Float64Array }>();
  private readonly ofMethods = new Map<string, (Value | undefined)[]>();

  /** Of a tree, whose shape of calls alone is given; all metrics, and how many methods there are. */
  constructor(
    private readonly stored: Stored,
    private readonly called: Shape,
    private readonly metrics: Metric[],
    private readonly derived: Metric[],
    private readonly size: number,
  ) {}

  /** Every node's. */
  nodes(metric: Metric): { own: Float64Array; total: Float64Array } {
    let found = this.known.get(metric.id);
    if (found === undefined) {
      found = this.made(metric);
      this.known.set(metric.id, found);
    }
    return found;
  }

  /** Every method's, by its number; undefined of those that were not called. */
  methods(metric: Metric): (Value | undefined)[] {
    let found = this.ofMethods.get(metric.id);
    if (found === undefined) {
      found = this.summed(metric);
      this.ofMethods.set(metric.id, found);
    }
    return found;
  }

  find(id: string): Metric {
    return [...this.metrics, ...this.derived].find((metric) => metric.id === id)!;
  }

  private made(metric: Metric): { own: Float64Array; total: Float64Array } {
    if (metric.ratio === undefined) {
      const { self, total } = columnsOf(this.stored, this.metrics, metric);
      return { own: self, total: metric.extent === "own" ? self : total };
    }
    const [of, by] = [this.nodes(this.find(metric.ratio.of)), this.nodes(this.find(metric.ratio.by))];
    const divided = (of: Float64Array, by: Float64Array) => of.map((value, node) => quotient(metric, value, by[node]));
    return { own: divided(of.own, by.own), total: divided(of.total, by.total) };
  }

  private summed(metric: Metric): (Value | undefined)[] {
    if (metric.ratio === undefined) {
      const rows = flat(this.called, columnsOf(this.stored, this.metrics, metric), this.size);
      return Array.from(rows, (row) => row && { own: row.self, total: metric.extent === "own" ? row.self : row.total });
    }
    const [of, by] = [this.methods(this.find(metric.ratio.of)), this.methods(this.find(metric.ratio.by))];
    return of.map((value, method) => value && { own: quotient(metric, value.own, by[method]!.own), total: quotient(metric, value.total, by[method]!.total) });
  }
}

/** Of a quantity, which part of which metric it is. */
export function splitAt(quantity: string): ["own" | "total", string] {
  const at = quantity.indexOf(":");
  return [quantity.slice(0, at) as "own" | "total", quantity.slice(at + 1)];
}

/** As the tool divides: whole numbers, and nothing by nothing is nothing. */
function quotient({ ratio }: Metric, of: number, by: number): number {
  if (by === 0) return 0;
  const taken = { each: of, part: Math.min(of, by), rest: Math.max(0, by - of) }[ratio!.how];
  return part(taken, ratio!.one, by);
}

/** Self times in parts that add up to them: see tool/profile/src/profile/parts.rs. */
export class Parts {
  /** Of each node's total time, made when it is asked for. */
  private totals: Float64Array[] | null = null;

  constructor(
    readonly parts: Part[],
    private readonly values: Values,
    private readonly time: Metric,
    private readonly called: Shape,
  ) {}

  /** Of a node's self time. */
  ofNode(node: number): number[] {
    const own = (metric: Metric) => this.values.nodes(metric).own[node];
    return this.divide(own(this.time), this.parts.map(({ metric }) => own(this.values.find(metric))));
  }

  /** Of all self time of a method. */
  ofMethod(method: number): number[] {
    const own = (metric: Metric) => this.values.methods(metric)[method]?.own ?? 0;
    return this.divide(own(this.time), this.parts.map(({ metric }) => own(this.values.find(metric))));
  }

  /** Of a node's total time: what the self times of all below it divide into. */
  ofTotal(node: number): number[] {
    if (this.totals === null) {
      const { size, parent } = this.called;
      const totals = this.parts.map(() => new Float64Array(size));
      for (let at = size - 1; at >= 0; at--) {
        this.ofNode(at).forEach((value, part) => (totals[part][at] += value));
        if (parent[at] >= 0) totals.forEach((total) => (total[parent[at]] += total[at]));
      }
      this.totals = totals;
    }
    return this.totals.map((total) => total[node]);
  }

  /** Waits are told of as they were recorded, and the time is that of undisturbed code: where there is no room for them, each has its share of it. */
  private divide(time: number, values: number[]): number[] {
    const { parts } = this;
    const sum = (isMeant: (part: Part) => boolean) => values.reduce((sum, value, at) => sum + (isMeant(parts[at]) ? value : 0), 0);
    const told = sum(({ known }) => known === "events");
    const room = Math.max(0, time - sum(({ known }) => known !== "events"));
    let [soFar, given] = [0, 0];
    const divided = values.map((value, at) => {
      if (parts[at].known !== "events") return Math.min(value, time);
      soFar += value;
      const until = told === 0 ? 0 : part(room, soFar, told);
      const share = until - given;
      given = until;
      return share;
    });
    // The first is what the others leave.
    const others = divided.slice(1).reduce((sum, value) => sum + value, 0);
    divided[0] = Math.max(0, time - others);
    return divided;
  }
}

/** Such a part of a number, rounded down, however large it is. */
function part(of: number, some: number, all: number): number {
  if (of * some <= Number.MAX_SAFE_INTEGER) return Math.floor((of * some) / all);
  return Number((BigInt(of) * BigInt(some)) / BigInt(all));
}

/** The parts that there are, the largest first, in words: `parked 61%, running 39%`. */
export function partsText(parts: Part[], divided: number[], shown = parts.length): string {
  const whole = divided.reduce((sum, value) => sum + value, 0);
  const there = divided.map((value, at) => [value, at]).filter(([value]) => value > 0);
  there.sort(([a, i], [b, j]) => b - a || i - j);
  return there.slice(0, shown).map(([value, at]) => `${parts[at].part} ${Math.round((100 * value) / whole)}%`).join(", ");
}
