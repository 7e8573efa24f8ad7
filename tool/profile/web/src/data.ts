// The data that the tool put into the page: see tool/profile/src/page.rs.

import { Chances, type Sampled } from "./chances";
import { partOfTime } from "./partoftime";
import { NONE, Shape, errorOfSamples, type Columns } from "./tree";

/** What the JSON report has but for its calls: docs/REFERENCE.md describes it. */
export interface Report {
  target: { pid: number; main: string; jdk: string };
  roots: { pattern: string; calls: number; open: { threads: number } }[];
  /** Of recordings below roots only, as events. */
  clock?: { mode: string; source: string };
  controls: { root: string; charged_ns: number; control_ns: number; error_ns: number }[];
  duration_ns: number;
  methods: { skipped: { method: string; reason: string }[] };
  events?: { recorded: number; lost: number; healed: number; calls: number };
  /** The format, if another tool made it: then no calls are known. */
  imported?: string;
  threads: { id: number; name: string }[];
  statistics?: Statistics[];
  locks?: Locks;
  tracks?: Track[];
  budget?: { dropped: { method: string; at_ns: number }[] };
  environment: { host: string; started: string | null } | null;
  warnings: string[];
  /** What self times divide into, where waits were counted. */
  parts?: Part[];
}

/** A part of self times, and how it is known. */
export interface Part {
  part: string;
  metric: string;
  known: "events" | "samples" | "rest";
}

/** How a method's invocations spread. */
export interface Statistics {
  method: string;
  count: number;
  total_ns: number;
  min_ns: number;
  max_ns: number;
  mean_ns: number;
  sd_ns: number;
  p50_ns: number;
  p90_ns: number;
  p99_ns: number;
}

/** How often and how long threads waited. */
export interface Waits {
  waits: number;
  blocked_ns: number;
  longest_ns: number;
}

interface Holder {
  thread: string;
  seen: number;
  stack: string[];
}

/** Where a lock was waited for. */
export interface LockPlace extends Waits {
  threads: number;
  stack: string[];
  node: number | null;
  left_by: (Waits & { thread: string })[];
  seen: number;
  holders: Holder[];
}

/** Contended locks. */
export interface Locks extends Waits {
  over_ns: number;
  other_parks: Waits;
  looks: number;
  contended: (Waits & { kind: string; class: string; address: string; places: LockPlace[] })[];
  unfinished: { lock: string; thread: string; seen_ns: number; stack: string[]; holder: Holder | null }[];
  limits: string[];
}

/** What of one kind happened to the whole JVM. */
export interface Track {
  id: string;
  title: string;
  nouns: [string, string];
  about: string;
  amounts: { id: string; title: string; unit: Exclude<Metric["unit"], "share"> }[];
  slices: Slice[];
  lost: number;
}

/** All threads of a JVM at one moment; threads, groups and locks are named by their place in their lists. */
export interface ThreadsReport {
  target: { pid: number; main: string; vm: string };
  cpu: { window_ns: number; recent_ns: number; ended_ns: number; process_ns: number } | null;
  virtual_threads: { count: number; parked: number; pinned: number } | null;
  deadlocks: { certain: boolean; waits: { thread: number; kind: string; lock: number | null; holder: number; certain: boolean }[] }[];
  blockers: {
    thread: number | null;
    deadlock: number | null;
    doing: string | null;
    waiting: number[];
    wanted: { holder: number; kind: string; lock: number | null; waiting: number }[];
  }[];
  groups: { threads: number[]; recent_cpu_ns: number; stack: string[] }[];
  threads: {
    id: number;
    name: string;
    java_id: number | null;
    state: string;
    doing: string;
    cpu_ns: number | null;
    recent_cpu_ns: number | null;
    elapsed_ns: number | null;
    allocated_bytes: number | null;
    group: number;
    wait: { kind: string; lock: number | null; frame: number; holder: number | null } | null;
    holds: { lock: number; frame: number | null }[];
    notes: string[];
  }[];
  locks: { object: string }[];
  unread: string[];
  warnings: string[];
}

export interface ThreadsFacts extends Pick<Facts, "title" | "blocks" | "metrics"> {
  kind: "threads";
  report: ThreadsReport;
}

/** It happened once: when since recording began, and how much it was of the track's amounts. */
export interface Slice {
  start_ns: number;
  duration_ns: number;
  label: string;
  by: string;
  amounts: (number | null)[];
}

interface Side {
  file: string;
  main: string;
  pid: number;
  jdk: string;
  host: string;
}

interface Facts {
  title: string;
  head: string;
  foot: string;
  /** Machine name, name for people. */
  methods: [string, string][];
  blocks: { nodes: number; bytes: number; handed: number[]; at_least: number[]; sampled?: Sampled; errors: Errors[] }[];
  /** What adds up, and what follows from it. */
  metrics: Metric[];
  derived: Metric[];
}

/** How uncertain values are together: see tool/profile/src/profile/column.rs. */
type Errors = "added" | "of-time" | { "of-samples": number };

export interface ProfileFacts extends Facts {
  kind: "profile";
  report: Report;
  merged_is_first_thread: boolean;
  has_cpu: boolean;
}

/** What is counted or measured at each node: see tool/profile/src/profile/metric.rs. */
export interface Metric {
  id: string;
  title: string;
  unit: "count" | "nanoseconds" | "bytes" | "bytecodes" | "share";
  extent: "own" | "own-and-total";
  is_uncertain: boolean;
  about: string;
  /** Where its values are; columns are in the order of their metrics. */
  place: "time" | "calls" | "thrown" | "column" | "ratio";
  /** Of what two it is the quotient, or of what the first leaves of the second. */
  ratio?: { of: string; by: string; how: "each" | "part" | "rest"; one: number };
}

export interface DiffFacts extends Facts {
  kind: "diff";
  report: { before: Side; after: Side; per: string; notes: string[] };
  presence: string;
  divisors: [number, number];
  /** No time is known better than to this part, before and after; null where times are not known. */
  doubts: [number | null, number | null];
  /** An uncertainty is so many standard deviations. */
  deviations: number;
}

/** A tree as it is stored. */
export interface Stored {
  parent: Int32Array;
  method: Int32Array;
  columns: Columns;
  /** Nodes that their parents did not call, but handed over: 1. Their times are no part of the parents'. */
  handed: Uint8Array;
  /** Of metrics that are in columns, what each node has itself, and the uncertainty of that. */
  others: { own: Float64Array; error: Float64Array; errors: Errors }[];
}

export interface Data {
  facts: ProfileFacts | DiffFacts | ThreadsFacts;
  /** A block, decoded. */
  block(index: number): Stored;
}

/** Reads what is embedded in this page. */
export async function load(): Promise<Data> {
  const element = document.getElementById("data")!;
  const packed = bytesOf(element.textContent!.trim());
  element.remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Data["facts"];
  const starts = [4 + length];
  for (const block of facts.blocks) starts.push(starts[starts.length - 1] + block.bytes);
  return {
    facts,
    block: (index) => {
      const { nodes, handed, at_least, sampled, errors } = facts.blocks[index];
      const metrics = facts.metrics.filter(({ place }) => place === "column");
      const stored = decode(bytes.subarray(starts[index], starts[index + 1]), nodes, metrics, errors);
      for (const node of handed) stored.handed[node] = 1;
      for (const node of at_least) stored.columns.atLeast[node] = 1;
      if (sampled !== undefined) stored.columns.chances = new Chances(sampled, stored.parent, stored.handed, stored.columns);
      return stored;
    },
  };
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** A snapshot's columns: see tool/profile/src/snapshot/columns.rs. */
function decode(bytes: Uint8Array, nodes: number, metrics: Metric[], errors: Errors[]): Stored {
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = bytes[at++];
      if (byte < 128) return value + byte * unit;
      value += (byte - 128) * unit;
    }
  };
  const integers = () => Int32Array.from({ length: nodes }, next);
  const numbers = () => Float64Array.from({ length: nodes }, next);
  const parent = integers();
  for (let node = 0; node < nodes; node++) parent[node] = parent[node] === 0 ? NONE : node - parent[node];
  const method = integers();
  const [calls, thrown, self, error, totalError, samples, running] = Array.from({ length: 7 }, numbers);
  // Of each total what exceeds the node's self time and its children's totals, zigzag.
  const total = numbers();
  for (let node = 0; node < nodes; node++) {
    const rest = total[node];
    total[node] = rest % 2 === 0 ? rest / 2 : -(rest + 1) / 2;
  }
  for (let node = nodes - 1; node >= 0; node--) {
    total[node] += self[node];
    if (parent[node] !== NONE) total[parent[node]] += total[node];
  }
  const none = () => new Float64Array(nodes);
  const others = metrics.map(({ is_uncertain }, at) => ({ own: numbers(), error: is_uncertain ? numbers() : none(), errors: errors[at] }));
  const atLeast = new Uint8Array(nodes);
  return { parent, method, others, handed: new Uint8Array(nodes), columns: { calls, thrown, self, error, totalError, samples, running, total, atLeast } };
}

/** The numbers with a metric that adds up in the place of time. */
export function columnsOf(stored: Stored, metrics: Metric[], metric: Metric): Columns {
  const { columns, others, parent, handed } = stored;
  if (metric.place === "time" || metric.place === "ratio") return columns;
  const columnar = metrics.filter(({ place }) => place === "column");
  const exactly = (own: Float64Array) => ({ own, error: new Float64Array(parent.length), errors: "added" as Errors });
  const { own, error, errors } = metric.place === "column" ? others[columnar.indexOf(metric)] : exactly(columns[metric.place]);
  const add = (totals: Float64Array) => {
    for (let node = parent.length - 1; node >= 0; node--) {
      if (parent[node] !== NONE && handed[node] === 0) totals[parent[node]] += totals[node];
    }
  };
  const [total, totalError] = [own.slice(), error.slice()];
  [total, totalError].forEach(add);
  const of: Columns = { ...columns, self: own, error, total, totalError, chances: undefined };
  if (errors === "of-time") of.ofTime = partOfTime(of, columns, add);
  else if (errors !== "added") {
    of.grain = errors["of-samples"];
    total.forEach((value, node) => (totalError[node] = errorOfSamples(value, errors["of-samples"])));
  }
  return of;
}

/** Methods of one name, of different class loaders, are one to the reader: the first of them. */
export function firstOfName(methods: [string, string][]): Int32Array {
  const known = new Map<string, number>();
  return Int32Array.from(methods, ([machine], index) => {
    if (!known.has(machine)) known.set(machine, index);
    return known.get(machine)!;
  });
}

/** The tree's shape, each method the first of its name; and the shape of the calls alone, in which what was handed over is a root. */
export function shapesOf(stored: Stored, first: Int32Array, weight: Float64Array): { shape: Shape; called: Shape } {
  const { parent, handed } = stored;
  const method = stored.method.map((method) => first[method]);
  const shape = new Shape(parent, method, weight);
  if (!handed.includes(1)) return { shape, called: shape };
  return { shape, called: new Shape(parent.map((above, node) => (handed[node] === 1 ? NONE : above)), method, weight) };
}

/** How wide frames are: each node's total, and those of what was handed over below it. */
export function widthsOf({ parent, handed, columns }: Stored): Float64Array {
  const { total } = columns;
  if (!handed.includes(1)) return total;
  const widths = total.slice();
  for (let node = widths.length - 1; node >= 0; node--) {
    const outside = handed[node] === 1 ? widths[node] : widths[node] - total[node];
    if (parent[node] !== NONE) widths[parent[node]] += outside;
  }
  return widths;
}
