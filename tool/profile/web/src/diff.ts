// A comparison of two profiles, as the views want it. All numbers are what one root call took on average, or the whole runs.

import { arcs, flat, type Arc } from "./arrange";
import { diverging, nominal, type Mapping } from "./colours";
import { firstOfName, shapesOf, type Data, type DiffFacts, type Stored } from "./data";
import { classOf, count, packageOf, relative, signed, time } from "./format";
import type { Attributes } from "./query";
import type { Arcs, Choice, Column, Fact, Row, Shown, Source } from "./source";
import { amountsOf, NONE, nothing, type Amounts, type Shape } from "./tree";

/** What something took before and after; null where it was not called. */
export interface Pair {
  before: Amounts | null;
  after: Amounts | null;
}

type Quantity = "self" | "total" | "calls";
const QUANTITIES: [Quantity, string][] = [
  ["total", "Total time"],
  ["self", "Self time"],
  ["calls", "Calls"],
];

interface Change {
  before: number;
  after: number;
  change: number;
  error: number;
  /** By more than is uncertain. */
  isReal: boolean;
  /** Of calls: some may be missing, before and after. */
  atLeast: [boolean, boolean];
  /** Missing calls on the side that has fewer may be all the difference. */
  mayBeMissing: boolean;
}

const textOf = (quantity: Quantity) => (quantity === "calls" ? count : time);
/** Both sides; and whether calls may be missing. */
const sidesOf = ({ before, after, atLeast }: Change, text: (value: number) => string): [string, string] => [
  `${atLeast[0] ? "≥" : ""}${text(before)}`,
  `${atLeast[1] ? "≥" : ""}${text(after)}`,
];

export class DiffSource implements Source<Pair> {
  readonly kind = "diff";
  readonly names;
  readonly until = new Map<number, number>();
  readonly trees = ["All threads"];
  readonly widthLabel = "Width";
  readonly widthChoices: [string, string][] = [
    ["both", "The larger of both"],
    ["before", "Before"],
    ["after", "After"],
  ];
  readonly first: Int32Array;
  readonly sides: [Stored, Stored];

  constructor(
    data: Data,
    readonly facts: DiffFacts,
  ) {
    this.names = facts.methods;
    this.first = firstOfName(facts.methods);
    this.sides = [data.block(0), data.block(1)];
  }

  show(_tree: number, width: string): Shown<Pair> {
    return new ShownDiff(this, width);
  }

  change(pair: Pair, quantity: Quantity): Change {
    const [n, m] = this.facts.divisors;
    const [a, b] = [pair.before ?? nothing(), pair.after ?? nothing()];
    const [before, after] = [a[quantity] / n, b[quantity] / m];
    const error = quantity === "calls" ? 0 : this.errorOf(quantity, a, b);
    const change = after - before;
    const atLeast: [boolean, boolean] = quantity === "calls" ? [a.atLeast, b.atLeast] : [false, false];
    const mayBeMissing = (atLeast[0] && change > 0) || (atLeast[1] && change < 0);
    return { before, after, change, error, isReal: Math.abs(change) > error && !mayBeMissing, atLeast, mayBeMissing };
  }

  /** Of a time's difference, as the text report has it (tool/src/diff/estimate.rs). */
  private errorOf(quantity: "self" | "total", a: Amounts, b: Amounts): number {
    const { divisors, doubts, deviations } = this.facts;
    const variance = (of: Amounts, side: number): number => {
      const doubt = doubts[side];
      if (doubt === null) return Infinity;
      const deviation = Math.max(quantity === "self" ? of.error : of.totalError, doubt * of[quantity]) / divisors[side];
      return deviation * deviation;
    };
    return deviations * Math.sqrt(variance(a, 0) + variance(b, 1));
  }
}

class ShownDiff implements Shown<Pair> {
  readonly text = time;
  readonly shape: Shape;
  readonly widths: Float64Array;
  readonly whole: number;
  readonly handed: Uint8Array;
  private readonly called: Shape;
  readonly treeColumns: Column<Pair>[];
  readonly flatColumns: Column<Pair>[];
  readonly arcColumns: Column<Pair>[];
  readonly flatOrder = "change";
  readonly attributes: Attributes;
  readonly choices: Choice[];
  readonly isNotable = (pair: Pair) => QUANTITIES.some(([quantity]) => this.source.change(pair, quantity).isReal);
  private rows: Row<Pair>[] | null = null;

  constructor(
    private readonly source: DiffSource,
    width: string,
  ) {
    const [before, after] = source.sides;
    const [n, m] = source.facts.divisors;
    const size = before.parent.length;
    this.widths = new Float64Array(size);
    for (let node = size - 1; node >= 0; node--) {
      const [a, b] = [before.columns.self[node] / n, after.columns.self[node] / m];
      this.widths[node] += width === "before" ? a : width === "after" ? b : Math.max(a, b);
      const above = before.parent[node];
      if (above !== NONE) this.widths[above] += this.widths[node];
    }
    const { shape, called } = shapesOf(before, source.first, this.widths);
    [this.shape, this.called, this.handed] = [shape, called, before.handed];
    const whole = (side: Stored, divisor: number) =>
      called.below(NONE).reduce((sum, root) => sum + side.columns.total[root], 0) / divisor;
    this.whole = Math.max(whole(before, n), whole(after, m));
    this.treeColumns = this.columnsOf("total");
    this.flatColumns = this.columnsOf("self");
    this.arcColumns = this.columnsOf("total");
    this.attributes = this.attributesOf();
    this.choices = QUANTITIES.map(([quantity, label]) => ({
      id: `${quantity}-change`,
      label: `Change of ${label.toLowerCase()}`,
      make: () => this.byChange(quantity),
    }));
    this.choices.push({ id: "package", label: "Package", make: () => this.byPackage() });
  }

  of(node: number): Pair {
    const presence = Number(this.source.facts.presence[node]);
    const [before, after] = this.source.sides;
    return {
      before: presence & 1 ? amountsOf(before.columns, node) : null,
      after: presence & 2 ? amountsOf(after.columns, node) : null,
    };
  }

  flat(): Row<Pair>[] {
    if (this.rows === null) {
      // A method is in a profile if any of its nodes is.
      const presence = new Uint8Array(this.source.names.length);
      this.shape.method.forEach((method, node) => (presence[method] |= Number(this.source.facts.presence[node])));
      const [before, after] = this.source.sides.map((side) => flat(this.called, side.columns, this.source.names.length));
      const rows: Row<Pair>[] = [];
      presence.forEach((of, method) => {
        if (of === 0) return;
        const amounts = { before: of & 1 ? before[method]! : null, after: of & 2 ? after[method]! : null };
        rows.push({ method, amounts });
      });
      this.rows = rows;
    }
    return this.rows;
  }

  arcs(method: number): Arcs<Pair> {
    const [before, after] = this.source.sides.map((side) => arcs(this.called, side.columns, method));
    const joined = (old: Arc[], now: Arc[]): Row<Pair>[] => {
      const known = (arc: Arc) => arc.amounts.calls > 0 || arc.amounts.total > 0;
      return old.map((arc, index) => ({
        method: arc.method,
        amounts: { before: known(arc) ? arc.amounts : null, after: known(now[index]) ? now[index].amounts : null },
      }));
    };
    // Both were made from the same shape, so that they have the same arcs in the same order.
    return { callers: joined(before.callers, after.callers), callees: joined(before.callees, after.callees) };
  }

  bar(pair: Pair): [number, number] {
    const { before, after } = this.source.change(pair, "total");
    return this.whole === 0 ? [0, 0] : [Math.max(before, after) / this.whole, Math.min(before, after) / this.whole];
  }

  data(pair: Pair): Record<string, string> {
    const data: Record<string, string> = { presence: presenceOf(pair) };
    for (const [quantity] of QUANTITIES) {
      const { before, after, change, error, isReal } = this.source.change(pair, quantity);
      const unit = quantity === "calls" ? "" : "-ns";
      data[`${quantity}-before${unit}`] = String(before);
      data[`${quantity}-after${unit}`] = String(after);
      data[`${quantity}-change${unit}`] = String(change);
      if (unit) data[`${quantity}-error${unit}`] = String(error);
      data[`${quantity}-changed`] = String(isReal);
    }
    return data;
  }

  summary(pair: Pair): string {
    return QUANTITIES.map(([quantity, label]) => {
      const change = this.source.change(pair, quantity);
      const text = textOf(quantity);
      const uncertain = quantity === "calls" ? "" : ` ±${text(change.error)}`;
      return `${label.toLowerCase()} ${sidesOf(change, text).join(" → ")}${uncertain} (${this.signOf(pair, quantity)})`;
    }).join(", ");
  }

  facts(node: number): { heading: string; facts: Fact[] }[] {
    const { shape, source } = this;
    const method = shape.method[node];
    const [machine, display] = source.names[method];
    const caller = shape.parent[node] === NONE ? null : source.names[shape.method[shape.parent[node]]][1];
    const changes = (pair: Pair): Fact[] =>
      QUANTITIES.flatMap(([quantity, label]) => {
        const changed = source.change(pair, quantity);
        const { before, after, change, error } = changed;
        const text = textOf(quantity);
        const sides = sidesOf(changed, text);
        const uncertain = quantity === "calls" ? "" : ` ±${text(error)}`;
        return [
          { name: `${label} before`, text: sides[0], value: before },
          { name: `${label} after`, text: sides[1], value: after },
          { name: "Change", text: `${signed(change, text)}${uncertain}, ${this.signOf(pair, quantity)}`, value: change },
        ];
      });
    const all = this.flat().find((row) => row.method === method)?.amounts ?? { before: null, after: null };
    return [
      {
        heading: "Node",
        facts: [
          { name: "Method name", text: display },
          { name: "Name for machines", text: machine, value: machine },
          { name: "Caller name", text: caller ?? "none: it is a root" },
          { name: "Called", text: { both: "before and after", added: "only after", removed: "only before" }[presenceOf(this.of(node))] },
          { name: "Level", text: count(shape.level[node]), value: shape.level[node] },
        ],
      },
      { heading: "This call chain", facts: changes(this.of(node)) },
      { heading: "This method, wherever called", facts: changes(all) },
    ];
  }

  /** How a quantity changed, in a word: `+12.0%`, `same`, `new`, `gone`. */
  private signOf(pair: Pair, quantity: Quantity): string {
    if (pair.before === null) return "new";
    if (pair.after === null) return "gone";
    const { before, after, isReal, mayBeMissing } = this.source.change(pair, quantity);
    return mayBeMissing ? "not known" : isReal ? relative(before, after) : "same";
  }

  private columnsOf(quantity: "self" | "total"): Column<Pair>[] {
    const of = (pair: Pair) => this.source.change(pair, quantity);
    const calls = (pair: Pair) => this.source.change(pair, "calls");
    const what = quantity === "self" ? "Self time" : "Total time";
    return [
      { id: "before", label: "Before", title: `${what} before`, text: (p) => time(of(p).before), value: (p) => of(p).before, minor: true },
      { id: "after", label: "After", title: `${what} after`, text: (p) => time(of(p).after), value: (p) => of(p).after },
      {
        id: "change",
        label: "Change",
        title: `Change of ${what.toLowerCase()}; sorted by its size`,
        text: (p) => (of(p).isReal ? signed(of(p).change, time) : "same"),
        value: (p) => Math.abs(of(p).change),
      },
      { id: "error", label: "±", title: "Uncertainty of the change", text: (p) => time(of(p).error), value: (p) => of(p).error, minor: true },
      {
        id: "relative",
        label: "Relative",
        title: "Change as a part of what it was before",
        text: (p) => this.signOf(p, quantity),
        value: (p) => (of(p).before === 0 ? Infinity : Math.abs(of(p).change) / of(p).before),
      },
      {
        id: "calls",
        label: "Calls",
        title: "Change of the number of calls",
        text: (p) => (calls(p).mayBeMissing ? "not known" : calls(p).change === 0 ? "same" : signed(calls(p).change, count)),
        value: (p) => Math.abs(calls(p).change),
        minor: true,
      },
    ];
  }

  private attributesOf(): Attributes {
    const { shape, source } = this;
    const name = (node: number) => source.names[shape.method[node]];
    const attributes: Attributes = {
      method: (node) => name(node)[1],
      machine: (node) => name(node)[0],
      class: (node) => classOf(name(node)[0]),
      package: (node) => packageOf(name(node)[0]),
      presence: (node) => presenceOf(this.of(node)),
      changed: (node) => (this.isNotable(this.of(node)) ? "yes" : "no"),
      level: (node) => shape.level[node],
    };
    for (const [quantity] of QUANTITIES) {
      const of = (node: number) => source.change(this.of(node), quantity);
      attributes[quantity] = (node) => of(node).change;
      attributes[`${quantity}_before`] = (node) => of(node).before;
      attributes[`${quantity}_after`] = (node) => of(node).after;
      attributes[`${quantity}_error`] = (node) => of(node).error;
    }
    return attributes;
  }

  private byChange(quantity: Quantity): Mapping {
    const labels = ["−50% or more; gone", "−10% to −50%", "less, by up to 10%", "same, as far as is certain", "more, by up to 10%", "+10% to +50%", "+50% or more; new"];
    const classOf = (node: number) => {
      const pair = this.of(node);
      if (pair.before === null) return 6;
      if (pair.after === null) return 0;
      const { before, change, isReal } = this.source.change(pair, quantity);
      if (!isReal) return 3;
      const size = Math.abs(change) / before;
      const step = size >= 0.5 ? 3 : size >= 0.1 ? 2 : 1;
      return 3 + Math.sign(change) * step;
    };
    return {
      id: `${quantity}-change`,
      label: "Change",
      key: labels.map((label, index) => ({ label, paint: diverging[index] })),
      classOf,
      describe: (node) => this.signOf(this.of(node), quantity),
      // A frame stands for all below it: its total's change comes first, whatever the colour is.
      sign: (node) => {
        const sign = this.signOf(this.of(node), "total");
        return sign === "same" ? "" : `${sign} `;
      },
    };
  }

  private byPackage(): Mapping {
    const names = [...new Set(this.source.names.map(([machine]) => packageOf(machine)))].sort();
    const ofMethod = this.source.names.map(([machine]) => names.indexOf(packageOf(machine)));
    const shown = names.map((name) => name || "(no package)");
    return nominal("package", "Package", shown, (node) => ofMethod[this.shape.method[node]], "other packages");
  }
}

function presenceOf(pair: Pair): "both" | "added" | "removed" {
  return pair.before === null ? "added" : pair.after === null ? "removed" : "both";
}
