// Parts of the nodes' time: of what makes that wrong each has its share, and many nodes together no more than their time. See
// tool/profile/src/profile/column.rs.

import type { Amounts, Columns } from "./tree";

/** What a column of such parts needs beside its numbers. */
export interface PartOfTime {
  time: Columns;
  /** Which variances the nodes' parts have besides their shares: of themselves, and with what they call. */
  besides: Float64Array;
  totalBesides: Float64Array;
}

/** Of columns that have all uncertainties added up; they are told the totals' here. `add` adds what each node has to its caller's. */
export function partOfTime(parts: Columns, time: Columns, add: (totals: Float64Array) => void): PartOfTime {
  const own = (node: number) => shared(parts.self[node], time.self[node], time.error[node]);
  const total = (node: number) => shared(parts.total[node], time.total[node], time.totalError[node]);
  const besides = parts.error.map((error, node) => without(error, own(node)));
  const added = besides.slice();
  add(added);
  added.forEach((sum, node) => (parts.totalError[node] = joined(parts.totalError[node], total(node), sum)));
  const totalBesides = parts.totalError.map((error, node) => without(error, total(node)));
  return { time, besides, totalBesides };
}

/** A row's uncertainties, to which all that belongs to it was added, by those of its time. */
export function settle(row: Amounts, time: Amounts, besides: number, totalBesides: number): void {
  row.error = joined(row.error, shared(row.self, time.self, time.error), besides);
  row.totalError = joined(row.totalError, shared(row.total, time.total, time.totalError), totalBesides);
}

/** Of no time it may be all. */
const shared = (part: number, time: number, error: number) => (time > 0 ? Math.min(part / time, 1) : 1) * error;
const without = (error: number, shared: number) => Math.max(error * error - shared * shared, 0);
const joined = (all: number, shared: number, besides: number) => Math.min(Math.round(Math.sqrt(shared * shared + besides)), all);
