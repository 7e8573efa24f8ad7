// The same calls by method: the flat view, and each method between its callers and callees. The sums are those of the tool's reports
// (arcflow's xprof and xarc): no time counts twice where methods are recursive.

import { unsaid, type Said } from "./chances";
import { settle } from "./partoftime";
import { NONE, errorOfSamples, nothing, type Amounts, type Columns, type Shape } from "./tree";

/** A caller or callee: `method` is NONE where the method was entered from outside the call graph. */
export interface Arc {
  method: number;
  amounts: Amounts;
}

/** A row that is being added up. */
interface Sum {
  row: Amounts;
  /** What samples say of it. */
  said: Said;
  totalSaid: Said;
  /** Of parts of the time: that, and which variances they have besides. */
  time?: Sum;
  besides: number;
  totalBesides: number;
}

/** What each method took; undefined for those that were not called. */
export function flat(shape: Shape, columns: Columns, methods: number): (Amounts | undefined)[] {
  const sums: (Sum | undefined)[] = new Array(methods).fill(undefined);
  const open = new Int32Array(methods);
  const { method } = shape;
  shape.walk(
    (node) => {
      const sum = (sums[method[node]] ??= none());
      addOwn(sum, columns, node);
      if (open[method[node]]++ === 0) addTotal(sum, columns, node);
    },
    (node) => open[method[node]]--,
  );
  return sums.map((sum) => sum && settled(sum, columns));
}

/** A method's callers and callees, in no particular order. */
export function arcs(shape: Shape, columns: Columns, of: number): { callers: Arc[]; callees: Arc[] } {
  const callers = new Map<number, Sum>();
  const callees = new Map<number, Sum>();
  const get = (map: Map<number, Sum>, method: number) => {
    let sum = map.get(method);
    if (sum === undefined) map.set(method, (sum = none()));
    return sum;
  };
  const { method, parent } = shape;
  const path: number[] = [];
  // Where on the path the open calls of the method are, the innermost last.
  const open: number[] = [];
  shape.walk(
    (node) => {
      const above = parent[node];
      const caller = above === NONE ? NONE : method[above];
      if (caller === of) {
        const child = get(callees, method[node]);
        addOwn(child, columns, node);
        if (method[node] !== of) addTotal(child, columns, node);
      }
      if (method[node] === of) {
        const arc = get(callers, caller);
        addOwn(arc, columns, node);
        if (open.length === 0) addTotal(arc, columns, node);
        else {
          // The enclosing call's child on the way here was given this time too.
          const child = path[open[open.length - 1] + 1];
          if (child !== undefined) takeTotal(get(callees, method[child]), columns, node);
        }
        open.push(path.length);
      }
      path.push(node);
    },
    (node) => {
      path.pop();
      if (method[node] === of) open.pop();
    },
  );
  const list = (map: Map<number, Sum>) => [...map].map(([method, sum]) => ({ method, amounts: settled(sum, columns) }));
  return { callers: list(callers), callees: list(callees) };
}

const none = (): Sum => ({ row: nothing(), said: unsaid(), totalSaid: unsaid(), besides: 0, totalBesides: 0 });

function addOwn(sum: Sum, columns: Columns, node: number): void {
  const { row } = sum;
  row.calls += columns.calls[node];
  row.thrown += columns.thrown[node];
  row.self += columns.self[node];
  row.error += columns.chances?.addOwn(node, sum.said) ?? columns.error[node];
  row.samples += columns.samples[node];
  row.running += columns.running[node];
  if (columns.atLeast[node] === 1) row.atLeast = true;
  if (columns.ofTime === undefined) return;
  sum.besides += columns.ofTime.besides[node];
  addOwn((sum.time ??= none()), columns.ofTime.time, node);
}

function addTotal(sum: Sum, columns: Columns, node: number): void {
  sum.row.total += columns.total[node];
  sum.row.totalError += columns.chances?.addTotal(node, sum.totalSaid) ?? columns.totalError[node];
  if (columns.ofTime === undefined) return;
  sum.totalBesides += columns.ofTime.totalBesides[node];
  addTotal((sum.time ??= none()), columns.ofTime.time, node);
}

/** Takes away what a node has with what it calls, uncertainties left alone. */
function takeTotal(sum: Sum, columns: Columns, node: number): void {
  sum.row.total -= columns.total[node];
  if (columns.ofTime !== undefined && sum.time !== undefined) takeTotal(sum.time, columns.ofTime.time, node);
}

function settled({ row, said, totalSaid, time, besides, totalBesides }: Sum, { chances, ofTime, grain }: Columns): Amounts {
  chances?.settle(row, said, totalSaid);
  if (ofTime !== undefined && time !== undefined) settle(row, settled(time, ofTime.time), besides, totalBesides);
  if (grain !== undefined) [row.error, row.totalError] = [errorOfSamples(row.self, grain), errorOfSamples(row.total, grain)];
  return row;
}
