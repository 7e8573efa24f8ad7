// A comparison of two profiles, as the views want it. All numbers are what one root call took on average, or the whole runs.

import { arcs, flat, type Arc } from "./arrange";
import { diverging, nominal, type Mapping } from "./colours";
import { columnsOf, firstOfName, shapesOf, type Data, type DiffFacts, type Metric, type Stored } from "./data";
import { classOf, count, packageOf, relative, signed } from "./format";
import type { Attributes } from "./query";
import type { Arcs, Choice, Column, Fact, Quantity, Row, Shown, Source } from "./source";
import { amountsOf, NONE, nothing, type Amounts, type Columns, type Shape } from "./tree";
import { stepOf, suffixOf, textOf, Values } from "./values";

/** What something took before and after; null where it was not called. */
export interface Pair {
  before: Amounts | null;
  after: Amounts | null;
}

/** Of the metric that is shown itself, and with what is called; and calls. */
type Part = "self" | "total" | "calls";

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
  readonly metricChoices: [string, string][];
  readonly first: Int32Array;
  readonly sides: [Stored, Stored];

  constructor(
    data: Data,
    readonly facts: DiffFacts,
  ) {
    this.names = facts.methods;
    this.first = firstOfName(facts.methods);
    this.metricChoices = facts.metrics.map(({ id, title }) => [id, title]);
    this.sides = [data.block(0), data.block(1)];
  }

  show(_tree: number, width: string, metric: string): Shown<Pair> {
    const { metrics } = this.facts;
    return new ShownDiff(this, width, metrics.find(({ id }) => id === metric) ?? metrics[0]);
  }

  /** Of pairs of such a metric's numbers. */
  change(pair: Pair, quantity: Part, metric: Metric): Change {
    const [n, m] = this.facts.divisors;
    const [a, b] = [pair.before ?? nothing(), pair.after ?? nothing()];
    const [before, after] = [a[quantity] / n, b[quantity] / m];
    const error = quantity === "calls" ? 0 : this.errorOf(quantity, a, b, metric);
    const change = after - before;
    const atLeast: [boolean, boolean] = quantity === "calls" ? [a.atLeast, b.atLeast] : [false, false];
    const mayBeMissing = (atLeast[0] && change > 0) || (atLeast[1] && change < 0);
    return { before, after, change, error, isReal: Math.abs(change) > error && !mayBeMissing, atLeast, mayBeMissing };
  }

  /** Of a difference, as the text report has it (tool/profile/src/diff/estimate.rs). */
  private errorOf(quantity: "self" | "total", a: Amounts, b: Amounts, { unit }: Metric): number {
    const { divisors, doubts, deviations } = this.facts;
    const variance = (of: Amounts, side: number): number => {
      const doubt = unit === "nanoseconds" ? doubts[side] : 0;
      if (doubt === null) return Infinity;
      const deviation = Math.max(quantity === "self" ? of.error : of.totalError, doubt * of[quantity]) / divisors[side];
      return deviation * deviation;
    };
    return deviations * Math.sqrt(variance(a, 0) + variance(b, 1));
  }
}

class ShownDiff implements Shown<Pair> {
  readonly text: (value: number) => string;
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
  readonly isNotable = (pair: Pair) => this.changes.some(([quantity]) => this.change(pair, quantity).isReal);
  readonly quantities: Quantity[];
  /** What of the metric there is, and what that is called. */
  private readonly changes: [Part, string][];
  /** The numbers of each side, with the metric in the place of time. */
  private readonly sides: [Columns, Columns];
  private readonly values: [Values, Values];
  private rows: Row<Pair>[] | null = null;

  constructor(
    private readonly source: DiffSource,
    width: string,
    private readonly metric: Metric,
  ) {
    const [before, after] = source.sides;
    const { metrics, derived } = source.facts;
    this.text = textOf(metric);
    this.sides = [columnsOf(before, metrics, metric), columnsOf(after, metrics, metric)];
    this.changes = changesOf(metric, metrics.some(({ place }) => place === "calls"));
    const [n, m] = source.facts.divisors;
    const size = before.parent.length;
    this.widths = new Float64Array(size);
    for (let node = size - 1; node >= 0; node--) {
      const [a, b] = [this.sides[0].self[node] / n, this.sides[1].self[node] / m];
      this.widths[node] += width === "before" ? a : width === "after" ? b : Math.max(a, b);
      const above = before.parent[node];
      if (above !== NONE) this.widths[above] += this.widths[node];
    }
    const { shape, called } = shapesOf(before, source.first, this.widths);
    [this.shape, this.called, this.handed] = [shape, called, before.handed];
    const whole = (side: Columns, divisor: number) => called.below(NONE).reduce((sum, root) => sum + side.total[root], 0) / divisor;
    this.whole = Math.max(whole(this.sides[0], n), whole(this.sides[1], m));
    this.values = [before, after].map((side) => new Values(side, called, metrics, derived, source.names.length)) as [Values, Values];
    this.quantities = this.quantitiesOf();
    this.treeColumns = this.columnsOf(this.known("total"));
    this.flatColumns = this.columnsOf(this.known("self"));
    this.arcColumns = this.columnsOf(this.known("total"));
    this.attributes = this.attributesOf();
    // The same for every metric, so that the choice stays when another is shown.
    this.choices = (["total", "self", "calls"] as const).map((quantity) => ({
      id: `${quantity}-change`,
      label: `Change: ${quantity}`,
      make: () => this.byChange(quantity),
    }));
    this.choices.push({ id: "package", label: "Package", make: () => this.byPackage() });
  }

  of(node: number): Pair {
    const presence = Number(this.source.facts.presence[node]);
    const [before, after] = this.sides;
    return {
      before: presence & 1 ? amountsOf(before, node) : null,
      after: presence & 2 ? amountsOf(after, node) : null,
    };
  }

  flat(): Row<Pair>[] {
    if (this.rows === null) {
      // A method is in a profile if any of its nodes is.
      const presence = new Uint8Array(this.source.names.length);
      this.shape.method.forEach((method, node) => (presence[method] |= Number(this.source.facts.presence[node])));
      const [before, after] = this.sides.map((side) => flat(this.called, side, this.source.names.length));
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
    const [before, after] = this.sides.map((side) => arcs(this.called, side, method));
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
    const { before, after } = this.change(pair, "total");
    return this.whole === 0 ? [0, 0] : [Math.max(before, after) / this.whole, Math.min(before, after) / this.whole];
  }

  data(pair: Pair): Record<string, string> {
    const data: Record<string, string> = { presence: presenceOf(pair) };
    for (const [quantity] of this.changes) {
      const { before, after, change, error, isReal } = this.change(pair, quantity);
      const unit = quantity === "calls" ? "" : suffixOf(this.metric);
      data[`${quantity}-before${unit}`] = String(before);
      data[`${quantity}-after${unit}`] = String(after);
      data[`${quantity}-change${unit}`] = String(change);
      if (quantity !== "calls") data[`${quantity}-error${unit}`] = String(error);
      data[`${quantity}-changed`] = String(isReal);
    }
    return data;
  }

  summary(pair: Pair): string {
    return this.changes.map(([quantity, label]) => {
      const change = this.change(pair, quantity);
      const text = this.textOf(quantity);
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
      this.changes.flatMap(([quantity, label]) => {
        const changed = this.change(pair, quantity);
        const { before, after, change, error } = changed;
        const text = this.textOf(quantity);
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

  private change(pair: Pair, quantity: Part): Change {
    return this.source.change(pair, quantity, this.metric);
  }

  private textOf(quantity: Part): (value: number) => string {
    return quantity === "calls" ? count : this.text;
  }

  methodValues(quantity: string): (number | undefined)[] {
    const [side, part, id] = quantity.split(":") as ["before" | "after", "own" | "total", string];
    const at = side === "before" ? 0 : 1;
    const metric = this.values[at].find(id);
    const divisor = metric.ratio === undefined ? this.source.facts.divisors[at] : 1;
    return this.values[at].methods(metric).map((value) => value && value[part] / divisor);
  }

  /** Colours are those of changes, which have columns. */
  beside(): null {
    return null;
  }

  /** Each metric before and after, that which is shown first. */
  private quantitiesOf(): Quantity[] {
    const { metrics, derived } = this.source.facts;
    const others = [...metrics, ...derived].filter((metric) => metric !== this.metric);
    return [this.metric, ...others].flatMap((metric) => {
      const of = (side: string, part: "own" | "total") => {
        const what = metric.extent === "own" ? "" : part === "own" ? ": self" : ": total";
        // The two sides are two things to be compared.
        return { id: `${side}:${part}:${metric.id}`, label: `${metric.title}${what}, ${side}`, metric: `${side} ${metric.id}`, step: stepOf(metric), text: textOf(metric) };
      };
      const parts = metric.extent === "own" ? (["own"] as const) : (["own", "total"] as const);
      return parts.flatMap((part) => [of("before", part), of("after", part)]);
    });
  }

  /** How a quantity changed, in a word: `+12.0%`, `same`, `new`, `gone`. */
  private signOf(pair: Pair, quantity: Part): string {
    if (pair.before === null) return "new";
    if (pair.after === null) return "gone";
    const { before, after, isReal, mayBeMissing } = this.change(pair, quantity);
    return mayBeMissing ? "not known" : isReal ? relative(before, after) : "same";
  }

  private columnsOf(quantity: Part): Column<Pair>[] {
    const of = (pair: Pair) => this.change(pair, quantity);
    const calls = (pair: Pair) => this.change(pair, "calls");
    const [, what] = this.changes.find(([of]) => of === quantity)!;
    const text = this.textOf(quantity);
    return [
      { id: "before", label: "Before", title: `${what} before`, text: (p) => text(of(p).before), value: (p) => of(p).before, minor: true },
      { id: "after", label: "After", title: `${what} after`, text: (p) => text(of(p).after), value: (p) => of(p).after },
      {
        id: "change",
        label: "Change",
        title: `Change of ${what.toLowerCase()}; sorted by its size`,
        text: (p) => (of(p).isReal ? signed(of(p).change, text) : "same"),
        value: (p) => Math.abs(of(p).change),
      },
      { id: "error", label: "±", title: "Uncertainty of the change", text: (p) => text(of(p).error), value: (p) => of(p).error, minor: true },
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
    for (const [quantity] of this.changes) {
      const of = (node: number) => this.change(this.of(node), quantity);
      attributes[quantity] = (node) => of(node).change;
      attributes[`${quantity}_before`] = (node) => of(node).before;
      attributes[`${quantity}_after`] = (node) => of(node).after;
      attributes[`${quantity}_error`] = (node) => of(node).error;
    }
    return attributes;
  }

  /** A quantity, or what there is of the metric in its place. */
  private known(quantity: Part): Part {
    const [first] = this.changes;
    return this.changes.some(([known]) => known === quantity) ? quantity : first[0];
  }

  private byChange(wanted: Part): Mapping {
    const quantity = this.known(wanted);
    const labels = ["−50% or more; gone", "−10% to −50%", "less, by up to 10%", "same, as far as is certain", "more, by up to 10%", "+10% to +50%", "+50% or more; new"];
    const classOf = (node: number) => {
      const pair = this.of(node);
      if (pair.before === null) return 6;
      if (pair.after === null) return 0;
      const { before, change, isReal } = this.change(pair, quantity);
      if (!isReal) return 3;
      const size = Math.abs(change) / before;
      const step = size >= 0.5 ? 3 : size >= 0.1 ? 2 : 1;
      return 3 + Math.sign(change) * step;
    };
    return {
      id: `${wanted}-change`,
      label: "Change",
      key: labels.map((label, index) => ({ label, paint: diverging[index] })),
      classOf,
      describe: (node) => this.signOf(this.of(node), quantity),
      // A frame stands for all below it: its total's change comes first, whatever the colour is.
      sign: (node) => {
        const sign = this.signOf(this.of(node), this.changes[0][0]);
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

/** Of time as of any other metric. */
function changesOf(metric: Metric, knowsCalls: boolean): [Part, string][] {
  const named = (part: string): string => (metric.place === "time" ? `${part} time` : `${part}: ${metric.title}`);
  const calls: [Part, string][] = knowsCalls ? [["calls", "Calls"]] : [];
  if (metric.place === "calls") return calls;
  if (metric.extent === "own") return [["self", metric.title], ...calls];
  return [["total", named("Total")], ["self", named("Self")], ...calls];
}

function presenceOf(pair: Pair): "both" | "added" | "removed" {
  return pair.before === null ? "added" : pair.after === null ? "removed" : "both";
}
