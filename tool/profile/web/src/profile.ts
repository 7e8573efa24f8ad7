// A profile, as the views want it.

import { arcs, flat } from "./arrange";
import { hues } from "./colours";
import { columnsOf, firstOfName, shapesOf, widthsOf, type Data, type Metric, type ProfileFacts, type Statistics, type Stored } from "./data";
import { classOf, count, packageOf, percent, time } from "./format";
import { ENOUGH_SAMPLES, ProfileColours } from "./profilecolours";
import type { Attributes } from "./query";
import type { Arcs, Beside, Choice, Column, Fact, Quantity, Row, Segment, Shown, Source } from "./source";
import { amountsOf, NONE, nothing, type Amounts, type Columns, type Shape } from "./tree";
import { Parts, partsText, splitAt, stepOf, suffixOf, textOf, Values } from "./values";

interface Tree {
  stored: Stored;
  shape: Shape;
  /** The calls alone. */
  called: Shape;
  columns: Columns;
  widths: Float64Array;
  handed: Uint8Array;
}

/** A number of calls, and whether some may be missing. */
const counted = ({ calls, atLeast }: Amounts) => `${atLeast ? "≥" : ""}${count(calls)}`;
const each = (total: number, calls: number) => (calls === 0 ? 0 : total / calls);

export class ProfileSource implements Source<Amounts> {
  readonly kind = "profile";
  readonly names;
  readonly trees: string[];
  readonly widthLabel = "Metric";
  readonly widthChoices: [string, string][];
  readonly metricChoices: [string, string][] = [];
  readonly first: Int32Array;
  readonly until = new Map<number, number>();
  private readonly loaded = new Map<string, Tree>();
  private readonly known = new Map<number, Values>();

  constructor(
    private readonly data: Data,
    readonly facts: ProfileFacts,
  ) {
    this.names = facts.methods;
    this.widthChoices = facts.metrics.map(({ id, title }) => [id, title]);
    this.first = firstOfName(facts.methods);
    const { budget, threads } = facts.report;
    const numbers = new Map(facts.methods.map(([machine], index) => [machine, this.first[index]]));
    for (const { method, at_ns } of budget?.dropped ?? []) {
      const number = numbers.get(method)!;
      this.until.set(number, Math.min(at_ns, this.until.get(number) ?? at_ns));
    }
    this.trees = [`All threads (${threads.length})`, ...threads.map((thread) => `${thread.name} (${thread.id})`)];
  }

  /** The tree of all threads is number 0; those of the threads follow. */
  tree(number: number, metric: Metric): Tree {
    const block = this.block(number);
    const key = `${block} ${metric.id}`;
    let tree = this.loaded.get(key);
    if (tree === undefined) {
      const stored: Stored = this.data.block(block);
      const columns = columnsOf(stored, this.facts.metrics, metric);
      const widths = widthsOf({ ...stored, columns });
      tree = { stored, columns, handed: stored.handed, widths, ...shapesOf(stored, this.first, widths) };
      this.loaded.set(key, tree);
    }
    return tree;
  }

  private block(number: number): number {
    return this.facts.merged_is_first_thread ? Math.max(number, 1) - 1 : number;
  }

  /** What that tree's nodes and methods have of all metrics. */
  values(number: number, { stored, called }: Tree): Values {
    const block = this.block(number);
    let values = this.known.get(block);
    if (values === undefined) {
      const { metrics, derived } = this.facts;
      values = new Values(stored, called, metrics, derived, this.names.length);
      this.known.set(block, values);
    }
    return values;
  }

  show(number: number, width: string): Shown<Amounts> {
    const { metrics } = this.facts;
    return new ShownProfile(this, number, metrics.find(({ id }) => id === width) ?? metrics[0]);
  }
}

class ShownProfile implements Shown<Amounts> {
  readonly shape: Shape;
  readonly widths: Float64Array;
  readonly whole: number;
  readonly treeColumns: Column<Amounts>[];
  readonly flatColumns: Column<Amounts>[];
  readonly arcColumns: Column<Amounts>[];
  readonly flatOrder = "self";
  readonly attributes: Attributes;
  readonly choices: Choice[];
  readonly isNotable = null;
  readonly handed: Uint8Array;
  readonly text: (value: number) => string;
  private readonly called: Shape;
  readonly columns: Columns;
  private readonly statistics = new Map<number, Statistics>();
  private readonly totalSamples: { samples: Float64Array; running: Float64Array };
  readonly quantities: Quantity[];
  readonly values: Values;
  readonly parts: Parts | null;
  private rows: Row<Amounts>[] | null = null;
  private owners: Int32Array | null = null;

  constructor(
    readonly source: ProfileSource,
    private readonly tree: number,
    private readonly metric: Metric,
  ) {
    this.text = textOf(metric);
    const loaded = source.tree(tree, metric);
    const { shape, called, columns, widths, handed } = loaded;
    this.shape = shape;
    this.called = called;
    this.columns = columns;
    this.handed = handed;
    this.widths = widths;
    this.whole = shape.below(NONE).reduce((sum, root) => sum + widths[root], 0);
    this.totalSamples = summed(called, columns);
    this.values = source.values(tree, loaded);
    const { parts } = source.facts.report;
    this.parts = parts === undefined ? null : new Parts(parts, this.values, source.facts.metrics[0], called);
    this.quantities = this.quantitiesOf();
    const numbers = new Map(source.names.map(([machine], index) => [machine, source.first[index]]));
    for (const of of source.facts.report.statistics ?? []) this.statistics.set(numbers.get(of.method) ?? NONE, of);
    const { share, selfShare, total, self, calls, thrown, selfEach, cpu, totalCpu, waits } = this.columnsOf();
    const hasCpu = source.facts.has_cpu;
    const ofCpu = (column: Column<Amounts>) => (hasCpu ? [column] : []);
    const ofCalls = (...columns: Column<Amounts>[]) => (this.knowsCalls ? columns : []);
    const ofWaits = this.parts === null ? [] : [waits];
    this.treeColumns = [share, total, self, ...ofCalls(calls, thrown), ...ofCpu(totalCpu), ...ofWaits];
    this.flatColumns = [selfShare, self, total, ...ofCalls(calls, selfEach, thrown), ...ofCpu(cpu), ...ofWaits];
    this.arcColumns = [...ofCalls(calls), total, self, ...ofCalls(thrown)];
    this.attributes = this.attributesOf();
    this.choices = new ProfileColours(this).choices();
  }

  /** Whether it ran is said of the total time, as that is what a root has. */
  of(node: number): Amounts {
    const { samples, running } = this.totalSamples;
    const parts = this.parts?.ofNode(node);
    return { ...amountsOf(this.columns, node), samples: samples[node], running: running[node], parts };
  }

  flat(): Row<Amounts>[] {
    if (this.rows === null) {
      this.rows = [];
      flat(this.called, this.columns, this.source.names.length).forEach((amounts, method) => {
        if (amounts !== undefined) this.rows!.push({ method, amounts: { ...amounts, parts: this.parts?.ofMethod(method) } });
      });
    }
    return this.rows;
  }

  arcs(method: number): Arcs<Amounts> {
    return arcs(this.called, this.columns, method);
  }

  methodValues(quantity: string): (number | undefined)[] {
    const [part, id] = splitAt(quantity);
    return this.values.methods(this.values.find(id)).map((value) => value?.[part]);
  }

  beside(colour: string): Beside | null {
    const quantity = this.quantities.find(({ id }) => id === colour);
    if (quantity === undefined || quantity.metric === this.metric.id) return null;
    const [part, id] = splitAt(colour);
    const metric = this.values.find(id);
    return {
      label: metric.extent === "own" ? metric.id : `${metric.id} ${part === "own" ? "self" : part}`,
      title: metric.about,
      text: quantity.text,
      node: (node) => this.values.nodes(metric)[part][node],
      method: (method) => this.values.methods(metric)[method]?.[part] ?? 0,
    };
  }

  /** Each metric of methods themselves, and with what they call. */
  private quantitiesOf(): Quantity[] {
    const { metrics, derived } = this.source.facts;
    return [...metrics, ...derived].flatMap((metric) => {
      const of = (part: "own" | "total", label: string) => ({ id: `${part}:${metric.id}`, label, metric: metric.id, step: stepOf(metric), text: textOf(metric) });
      const own = of("own", metric.extent === "own" ? metric.title : `${metric.title}: self`);
      return metric.extent === "own" ? [own] : [own, of("total", `${metric.title}: total`)];
    });
  }

  /** Other tools' profiles have none. */
  get knowsCalls(): boolean {
    return this.source.facts.report.imported === undefined;
  }

  bar(amounts: Amounts): [number, number] {
    return this.whole === 0 ? [0, 0] : [amounts.total / this.whole, amounts.self / this.whole];
  }

  data(amounts: Amounts): Record<string, string> {
    const suffix = suffixOf(this.metric);
    return {
      calls: String(amounts.calls),
      thrown: String(amounts.thrown),
      [`self${suffix}`]: String(amounts.self),
      [`total${suffix}`]: String(amounts.total),
      [`error${suffix}`]: String(amounts.error),
      [`total-error${suffix}`]: String(amounts.totalError),
      ...(amounts.atLeast ? { "at-least": "true" } : {}),
    };
  }

  /** A value, or what it is at most, where it is not known. */
  private bounded(value: number, error: number): string {
    return value < error ? `<${this.text(value + error)}` : this.text(value);
  }

  /** `Total time`, or the same of another metric. */
  named(part: string): string {
    return this.metric.place === "time" ? `${part} time` : `${part}: ${this.metric.title}`;
  }

  summary(amounts: Amounts): string {
    const { self, total, error, totalError } = amounts;
    const share = percent(total, this.whole);
    const calls = this.knowsCalls ? `, ${counted(amounts)} ${amounts.calls === 1 ? "call" : "calls"}` : "";
    return `${this.bounded(total, totalError)} total (${share}), ${this.bounded(self, error)} self${calls}`;
  }

  facts(node: number): { heading: string; facts: Fact[]; stack?: Segment[] }[] {
    const { shape, source } = this;
    const method = shape.method[node];
    const [machine, display] = source.names[method];
    const caller = shape.parent[node] === NONE ? null : source.names[shape.method[shape.parent[node]]][1];
    const { target, environment } = source.facts.report;
    const host = environment?.host ? ` on ${environment.host}` : "";
    const own = this.of(node);
    const all = this.flat().find((row) => row.method === method)?.amounts ?? nothing();
    const spread = this.statistics.get(method);
    const ns = (name: string, value: number, error?: number): Fact => ({
      name,
      value,
      text: error === undefined ? time(value) : value < error ? this.bounded(value, error) : `${this.text(value)} ±${this.text(error)}`,
    });
    const mean = (amounts: Amounts): Fact => {
      const value = Math.round(each(amounts.total, amounts.calls));
      return { name: this.named("Average"), value, text: this.text(value) };
    };
    const ofMethod: Fact[] = [
      ...(this.knowsCalls ? [{ name: "Number of calls", text: counted(all), value: all.calls }] : []),
      ns(this.named("Total"), all.total, all.totalError),
      ns(this.named("Self"), all.self, all.error),
    ];
    if (spread === undefined || this.metric.place !== "time") {
      if (this.knowsCalls) ofMethod.push(mean(all));
    } else {
      ofMethod.push(
        { name: "Invocations, all threads", text: count(spread.count), value: spread.count },
        ns("Minimum time", spread.min_ns),
        ns("Maximum time", spread.max_ns),
        { name: "Average time", text: time(Math.round(spread.mean_ns)), value: spread.mean_ns },
        { name: "Standard deviation", text: time(Math.round(spread.sd_ns)), value: spread.sd_ns },
        { name: "Median, 90%, 99%", text: [spread.p50_ns, spread.p90_ns, spread.p99_ns].map(time).join(", ") },
      );
    }
    const here: Fact[] = [
      ...(this.knowsCalls ? [{ name: "Calls", text: counted(own), value: own.calls }] : []),
      ns(this.named("Total"), own.total, own.totalError),
      { name: "Share of the whole", text: percent(own.total, this.whole) },
      ns(this.named("Self"), own.self, own.error),
      mean(own),
      { name: "Left by an exception", text: count(own.thrown), value: own.thrown },
      { name: "Level", text: count(shape.level[node]), value: shape.level[node] },
    ];
    if (source.facts.has_cpu) here.splice(5, 0, { name: "Running, not waiting", text: this.running(node) });
    const who: Fact[] = [
      { name: "Method name", text: display },
      { name: "Name for machines", text: machine, value: machine },
      { name: this.handed[node] === 1 ? "Handed over by" : "Caller name", text: caller ?? "none: it is a root" },
      { name: "JVM", text: `${target.main} (pid ${target.pid}, JDK ${target.jdk})${host}` },
      ...this.threadsOf(node),
    ];
    return [
      { heading: "Node", facts: who },
      { heading: "This call chain", facts: here },
      ...this.waitsOf(own),
      ...this.othersOf(node),
      { heading: "This method, wherever called", facts: ofMethod },
    ];
  }

  /** What the self time divides into. */
  private waitsOf({ parts }: Amounts): { heading: string; facts: Fact[]; stack: Segment[] }[] {
    if (this.parts === null || parts === undefined) return [];
    const stack = this.segments(parts);
    const facts = this.parts.parts.map(({ part }, at) => ({ name: part, text: time(parts[at]), value: parts[at] })).filter(({ value }) => value > 0);
    return facts.length === 0 ? [] : [{ heading: "Self time in parts", facts, stack }];
  }

  /** What else is known of the node: every metric that is not told of above, and is not nothing. */
  private othersOf(node: number): { heading: string; facts: Fact[] }[] {
    const { metrics, derived, report } = this.source.facts;
    const isTold = (metric: Metric) => metric === this.metric || metric.place === "calls" || metric.place === "thrown" || report.parts?.some((part) => part.metric === metric.id);
    const facts = [...metrics, ...derived].filter((metric) => !isTold(metric) && metric.ratio?.of !== this.metric.id).flatMap((metric) => {
      const { own, total } = this.values.nodes(metric);
      const text = textOf(metric);
      if (own[node] === 0 && total[node] === 0) return [];
      const both = metric.extent === "own" ? text(own[node]) : `${text(total[node])} total, ${text(own[node])} self`;
      return [{ name: metric.title, text: both, value: own[node] }];
    });
    return facts.length === 0 ? [] : [{ heading: "Other metrics", facts }];
  }

  private segments(divided: number[]): Segment[] {
    const whole = divided.reduce((sum, value) => sum + value, 0);
    const all = this.parts!.parts.map(({ part }, at) => ({ label: part, part: whole === 0 ? 0 : divided[at] / whole, paint: hues[at % hues.length] }));
    return all.filter(({ part }) => part > 0);
  }

  private running(node: number): string {
    const { samples, running } = this.totalSamples;
    if (samples[node] < ENOUGH_SAMPLES) return "too few samples";
    return `${percent(running[node], samples[node])} of ${count(samples[node])} samples`;
  }

  /** In which threads this chain of calls was, and what each took. */
  private threadsOf(node: number): Fact[] {
    const { threads } = this.source.facts.report;
    if (this.tree > 0) return [{ name: "Thread", text: this.source.trees[this.tree] }];
    const path = this.shape.path(node);
    const facts: Fact[] = [];
    for (let index = 0; index < threads.length; index++) {
      const { shape, columns, handed } = this.source.tree(index + 1, this.metric);
      let places = [NONE];
      for (const step of path) {
        const below = places.flatMap((place) => [...shape.below(place)]);
        places = below.filter((child) => shape.method[child] === this.shape.method[step] && handed[child] === this.handed[step]);
      }
      if (places.length === 0) continue;
      const sum = (column: Float64Array) => places.reduce((sum, place) => sum + column[place], 0);
      const [calls, total] = [sum(columns.calls), sum(columns.total)];
      facts.push({
        name: "Thread",
        text: `${threads[index].name} (${threads[index].id}): ${this.knowsCalls ? `${count(calls)} calls, ` : ""}${this.text(total)}`,
        value: threads[index].id,
      });
    }
    const SHOWN = 8;
    const more = facts.length - SHOWN;
    if (more > 0) facts.splice(SHOWN, more, { name: "Threads", text: `and ${count(more)} more` });
    return facts;
  }

  /** Of each node the thread that it is in, or one past the last for nodes in several. */
  threadOfEach(): Int32Array {
    if (this.owners !== null) return this.owners;
    const threads = this.source.facts.report.threads.length;
    const owners = new Int32Array(this.shape.size).fill(this.tree > 0 ? this.tree - 1 : threads);
    if (this.tree === 0) {
      const isKnown = new Uint8Array(this.shape.size);
      const places = new Map<number, number>();
      const key = (parent: number, method: number, handed: number) => ((parent + 1) * this.source.names.length + method) * 2 + handed;
      for (let node = 0; node < this.shape.size; node++) {
        const own = key(this.shape.parent[node], this.shape.method[node], this.handed[node]);
        if (!places.has(own)) places.set(own, node);
      }
      for (let thread = 0; thread < threads; thread++) {
        const { shape, handed } = this.source.tree(thread + 1, this.metric);
        const placeOf = new Int32Array(shape.size);
        for (let node = 0; node < shape.size; node++) {
          const above = shape.parent[node] === NONE ? NONE : placeOf[shape.parent[node]];
          const place = above === -2 ? -2 : (places.get(key(above, shape.method[node], handed[node])) ?? -2);
          placeOf[node] = place;
          if (place < 0) continue;
          owners[place] = isKnown[place] === 0 || owners[place] === thread ? thread : threads;
          isKnown[place] = 1;
        }
      }
    }
    this.owners = owners;
    return owners;
  }

  private columnsOf(): Record<string, Column<Amounts>> {
    const { whole } = this;
    const cpu: Column<Amounts> = {
      id: "cpu",
      label: "CPU",
      title: "Part of the self time in which the thread was running and not waiting; blank for fewer than 10 samples",
      text: (a) => (a.samples < ENOUGH_SAMPLES ? "" : `${Math.round((100 * a.running) / a.samples)}%`),
      value: (a) => (a.samples === 0 ? -1 : a.running / a.samples),
      minor: true,
    };
    const waits: Column<Amounts> = {
      id: "waits",
      label: "Waits",
      title: "What the self time was spent in: the largest part, and all of them stacked",
      text: (a) => partsText(this.parts!.parts, a.parts ?? [], 1),
      picture: (a) => this.segments(a.parts ?? []),
      // What ran is the first part.
      value: (a) => (a.parts ?? []).slice(1).reduce((sum, part) => sum + part, 0),
      minor: true,
    };
    return {
      cpu,
      waits,
      totalCpu: { ...cpu, title: cpu.title.replace("self", "total") },
      share: {
        id: "share",
        label: "Share",
        title: this.metric.place === "time" ? "Part of the time of all roots" : `Part of all roots: ${this.metric.title}`,
        text: (a) => percent(a.total, whole),
        value: (a) => a.total,
      },
      selfShare: {
        id: "share",
        label: "Share",
        title: "Self time's part of the time of all roots",
        text: (a) => percent(a.self, whole),
        value: (a) => a.self,
        minor: true,
      },
      total: {
        id: "total",
        label: "Total",
        title: this.metric.place === "time" ? "Time in the method and everything below it; < where only a bound is known" : `${this.metric.about} With everything below the method`,
        text: (a) => this.bounded(a.total, a.totalError),
        value: (a) => a.total,
      },
      self: {
        id: "self",
        label: "Self",
        title: this.metric.place === "time" ? "Time in the method, and in what it calls that is not instrumented; < where only a bound is known" : this.metric.about,
        text: (a) => this.bounded(a.self, a.error),
        value: (a) => a.self,
      },
      calls: { id: "calls", label: "Calls", title: "Entries, every one counted; ≥ where some may be missing", text: counted, value: (a) => a.calls },
      selfEach: {
        id: "self-call",
        label: "Self/call",
        title: "Self time a call",
        text: (a) => this.bounded(Math.floor(each(a.self, a.calls)), Math.floor(each(a.error, a.calls))),
        value: (a) => each(a.self, a.calls),
        minor: true,
      },
      thrown: {
        id: "thrown",
        label: "Thrown",
        title: "Calls that an exception left",
        text: (a) => count(a.thrown),
        value: (a) => a.thrown,
        minor: true,
      },
    };
  }

  private attributesOf(): Attributes {
    const { columns: c, shape, whole } = this;
    const name = (node: number) => this.source.names[shape.method[node]];
    const threads = this.source.facts.report.threads;
    return {
      method: (node) => name(node)[1],
      machine: (node) => name(node)[0],
      class: (node) => classOf(name(node)[0]),
      package: (node) => packageOf(name(node)[0]),
      thread: (node) => threads[this.threadOfEach()[node]]?.name ?? "several",
      self: (node) => c.self[node],
      total: (node) => c.total[node],
      calls: (node) => c.calls[node],
      thrown: (node) => c.thrown[node],
      error: (node) => c.error[node],
      total_error: (node) => c.totalError[node],
      mean: (node) => each(c.total[node], c.calls[node]),
      share: (node) => (whole === 0 ? 0 : c.total[node] / whole),
      level: (node) => shape.level[node],
      link: (node) => (this.handed[node] === 1 ? "thread" : "call"),
      callees: (node) => shape.fanout(node),
      cpu: (node) => (c.samples[node] === 0 ? -1 : c.running[node] / c.samples[node]),
    };
  }
}

/** Each node's samples and those of what it calls. */
function summed(shape: Shape, columns: Columns): { samples: Float64Array; running: Float64Array } {
  const [samples, running] = [columns.samples.slice(), columns.running.slice()];
  for (let node = shape.size - 1; node >= 0; node--) {
    const above = shape.parent[node];
    if (above === NONE) continue;
    samples[above] += samples[node];
    running[above] += running[node];
  }
  return { samples, running };
}
