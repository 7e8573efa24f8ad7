// The same calls by method: the flat view, and each method between its callers and callees. The sums are those of the tool's reports
// (arcflow's xprof and xarc): no time counts twice where methods are recursive.

import { NONE, nothing, type Amounts, type Columns, type Shape } from "./tree";

/** A caller or callee: `method` is NONE where the method was entered from outside the call graph. */
export interface Arc {
  method: number;
  amounts: Amounts;
}

/** What each method took; undefined for those that were not called. */
export function flat(shape: Shape, columns: Columns, methods: number): (Amounts | undefined)[] {
  const rows: (Amounts | undefined)[] = new Array(methods);
  const open = new Int32Array(methods);
  const { method } = shape;
  shape.walk(
    (node) => {
      const row = (rows[method[node]] ??= nothing());
      addOwn(row, columns, node);
      if (open[method[node]]++ === 0) addTotal(row, columns, node, 1);
    },
    (node) => open[method[node]]--,
  );
  return rows;
}

/** A method's callers and callees, in no particular order. */
export function arcs(shape: Shape, columns: Columns, of: number): { callers: Arc[]; callees: Arc[] } {
  const callers = new Map<number, Amounts>();
  const callees = new Map<number, Amounts>();
  const get = (map: Map<number, Amounts>, method: number) => {
    let amounts = map.get(method);
    if (amounts === undefined) map.set(method, (amounts = nothing()));
    return amounts;
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
        if (method[node] !== of) addTotal(child, columns, node, 1);
      }
      if (method[node] === of) {
        const arc = get(callers, caller);
        addOwn(arc, columns, node);
        if (open.length === 0) addTotal(arc, columns, node, 1);
        else {
          // The enclosing call's child on the way here was given this time too.
          const child = path[open[open.length - 1] + 1];
          if (child !== undefined) get(callees, method[child]).total -= columns.total[node];
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
  const list = (map: Map<number, Amounts>) => [...map].map(([method, amounts]) => ({ method, amounts }));
  return { callers: list(callers), callees: list(callees) };
}

function addOwn(sum: Amounts, columns: Columns, node: number): void {
  sum.calls += columns.calls[node];
  sum.thrown += columns.thrown[node];
  sum.self += columns.self[node];
  sum.error += columns.error[node];
  sum.samples += columns.samples[node];
  sum.running += columns.running[node];
  if (columns.atLeast[node] === 1) sum.atLeast = true;
}

function addTotal(sum: Amounts, columns: Columns, node: number, times: number): void {
  sum.total += times * columns.total[node];
  sum.totalError += times * columns.totalError[node];
}
