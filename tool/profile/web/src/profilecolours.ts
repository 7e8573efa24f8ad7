// What a profile's nodes can be coloured by.

import { graded, hues, neutral, nominal, sequence, shares, type Mapping } from "./colours";
import { classOf, count, packageOf, percent } from "./format";
import type { ProfileSource } from "./profile";
import type { Choice, Quantity, Row } from "./source";
import type { Amounts, Columns, Shape } from "./tree";
import { partsText, splitAt, type Parts, type Values } from "./values";

/** Fewer samples say nothing of the processor's share. */
export const ENOUGH_SAMPLES = 10;

/** What is coloured. */
export interface Coloured {
  source: ProfileSource;
  shape: Shape;
  columns: Columns;
  values: Values;
  parts: Parts | null;
  quantities: Quantity[];
  knowsCalls: boolean;
  text(value: number): string;
  named(part: string): string;
  flat(): Row<Amounts>[];
  threadOfEach(): Int32Array;
}

export class ProfileColours {
  constructor(private readonly of: Coloured) {}

  choices(): Choice[] {
    const { columns, shape, parts } = this.of;
    const choices: Choice[] = [
      { id: "package", label: "Package", make: () => this.byName("package", "Package", packageOf, "other packages") },
      { id: "class", label: "Class", make: () => this.byName("class", "Class", classOf, "other classes") },
      { id: "thread", label: "Thread", make: () => this.byThread() },
      { id: "self", label: "Self time", make: () => graded("self", this.of.named("Self"), shape.size, (node) => columns.self[node], this.of.text) },
      ...(this.of.knowsCalls ? [{ id: "calls", label: "Calls", make: () => graded("calls", "Calls", shape.size, (node) => columns.calls[node], (n) => count(Math.floor(n))) }] : []),
      { id: "error", label: "Error", make: () => this.byError() },
    ];
    if (this.of.source.facts.has_cpu) choices.push({ id: "cpu", label: "Running or waiting", make: () => this.byCpu() });
    if (parts !== null) choices.push({ id: "waits", label: "Waits, stacked", make: () => this.byParts(parts) });
    for (const quantity of this.of.quantities) {
      const [part] = splitAt(quantity.id);
      const group = part === "own" ? "Metrics, of the method itself" : "Metrics, with what it calls";
      choices.push({ id: quantity.id, label: this.of.values.find(quantity.metric).title, group, make: () => this.byQuantity(quantity) });
    }
    return choices;
  }

  /** Any number that nodes have. */
  private byQuantity({ id, label, text }: Quantity): Mapping {
    const [part, of] = splitAt(id);
    const metric = this.of.values.find(of);
    const values = this.of.values.nodes(metric)[part];
    if (metric.unit === "share") return shares(id, label, metric.ratio!.one, (node) => values[node], text);
    return graded(id, label, this.of.shape.size, (node) => values[node], (value) => text(Math.floor(value)));
  }

  /** What was waited in: frames are divided as their times are. */
  private byParts(parts: Parts): Mapping {
    const divided = (node: number) => parts.ofTotal(node);
    const largest = (values: number[]) => values.reduce((best, value, at) => (value > values[best] ? at : best), 0);
    return {
      id: "waits",
      label: "Total time",
      key: parts.parts.map(({ part }, at) => ({ paint: hues[at % hues.length], label: part })),
      classOf: (node) => largest(divided(node)),
      describe: (node) => partsText(parts.parts, divided(node)) || "none",
      stack: divided,
    };
  }

  private byName(id: string, label: string, nameOf: (machine: string) => string, others: string): Mapping {
    const weights = new Map<string, number>();
    for (const { method, amounts } of this.of.flat()) {
      const name = nameOf(this.of.source.names[method][0]);
      weights.set(name, (weights.get(name) ?? 0) + amounts.self);
    }
    const names = [...weights.keys()].sort((a, b) => weights.get(b)! - weights.get(a)! || (a < b ? -1 : 1));
    const ranks = new Map(names.map((name, rank) => [name, rank]));
    const ofMethod = Int32Array.from(this.of.source.names, ([machine]) => ranks.get(nameOf(machine)) ?? names.length - 1);
    return nominal(id, label, names.map((name) => name || "(no package)"), (node) => ofMethod[this.of.shape.method[node]], others);
  }

  private byThread(): Mapping {
    const { threads } = this.of.source.facts.report;
    const owners = this.of.threadOfEach();
    const SHOWN = 11;
    const shown = threads.slice(0, SHOWN).map((thread) => `${thread.name} (${thread.id})`);
    const mapping = nominal("thread", "Thread", shown, (node) => owners[node], "");
    const several = mapping.key.push({ paint: neutral, label: "several threads" }) - 1;
    const others = threads.length > SHOWN ? mapping.key.push({ paint: neutral, label: "other threads" }) - 1 : several;
    return {
      ...mapping,
      classOf: (node) => (owners[node] >= threads.length ? several : owners[node] >= SHOWN ? others : owners[node]),
      describe: (node) => {
        const thread = threads[owners[node]];
        return thread === undefined ? "several threads" : `${thread.name} (${thread.id})`;
      },
    };
  }

  private byError(): Mapping {
    const { self, error } = this.of.columns;
    const bounds = [0.01, 0.05, 0.25, 1];
    const labels = ["±1% of self time or less", "to ±5%", "to ±25%", "to ±100%", "more than the time itself"];
    const paints = [sequence[0], sequence[1], sequence[2], sequence[4], sequence[5]];
    const classOf = (node: number) => bounds.filter((bound) => error[node] > bound * self[node]).length;
    return {
      id: "error",
      label: "Error",
      key: labels.map((label, index) => ({ label, paint: paints[index] })),
      classOf,
      describe: (node) => `±${this.of.text(error[node])}`,
    };
  }

  private byCpu(): Mapping {
    const { samples, running } = this.of.columns;
    const labels = ["too few samples", "waiting: runs 0 to 25%", "runs 25 to 50%", "runs 50 to 75%", "running: 75 to 100%"];
    const paints = [neutral, sequence[0], sequence[1], sequence[3], sequence[5]];
    const classOf = (node: number) =>
      samples[node] < ENOUGH_SAMPLES ? 0 : 1 + Math.min(3, Math.floor((4 * running[node]) / samples[node]));
    return {
      id: "cpu",
      label: "Running or waiting",
      key: labels.map((label, index) => ({ label, paint: paints[index] })),
      classOf,
      describe: (node) =>
        samples[node] < ENOUGH_SAMPLES ? "too few samples" : `runs ${percent(running[node], samples[node])}`,
    };
  }
}
