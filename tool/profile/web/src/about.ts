// What the text report says besides its calls, and what could not be instrumented; and the keys.

import type { DiffFacts, ProfileFacts, Statistics } from "./data";
import { el, table } from "./dom";
import { count, time } from "./format";

const KEYS: [string, string][] = [
  ["Tab, Shift-Tab", "from control to control"],
  ["← → Home End", "between the tabs"],
  ["↑ ↓ Home End Page Up Page Down", "rows of a table or the tree"],
  ["→ ← (tree)", "open, or go to the first callee; close, or go to the caller"],
  ["* (tree)", "open all siblings"],
  ["o (tree)", "open the next level"],
  ["b (tree)", "open the hot path: where most time goes, from the selected node on"],
  ["Enter", "tree: open or close; methods: callers and callees; flame graph: zoom"],
  ["↑ ↓ ← → (flame graph)", "caller, callee, neighbours"],
  ["→ ←, ↑ ↓ (scatter)", "the next method by the one metric, by the other"],
  ["z, u, r (tree, flame graph)", "zoom to the selected, up one level, reset"],
];

export function aboutView(facts: ProfileFacts | DiffFacts): HTMLElement {
  const view = el("div", { class: "view prose", tabindex: 0, role: "region", "aria-label": "About this file" });
  view.append(el("h2", {}, facts.kind === "diff" ? "Comparison" : "Recording"), el("pre", { id: "head" }, facts.head.trim()));
  if (facts.foot.trim() !== "") view.append(el("h2", {}, facts.kind === "diff" ? "Conditions" : "Truth and cost"), el("pre", { id: "foot" }, facts.foot.trim()));
  if (facts.kind === "profile") {
    const { statistics, methods } = facts.report;
    if (statistics !== undefined && statistics.length > 0) view.append(...invocations(statistics, facts));
    if (methods.skipped.length > 0) view.append(...skipped(methods.skipped));
  }
  const keys = el("dl", { class: "keys" });
  for (const [key, meaning] of KEYS) keys.append(el("dt", {}, key), el("dd", {}, meaning));
  view.append(el("h2", {}, "Keys"), keys);
  return view;
}

/** How the invocations of methods spread, where that was recorded. */
function invocations(statistics: Statistics[], facts: ProfileFacts): HTMLElement[] {
  const names = new Map(facts.methods);
  const rows = [...statistics]
    .sort((a, b) => b.total_ns - a.total_ns)
    .map((of) => {
      const times = [of.mean_ns, of.sd_ns, of.min_ns, of.p50_ns, of.p90_ns, of.p99_ns, of.max_ns];
      return el(
        "tr",
        { "data-method": of.method, "data-count": of.count, "data-total-ns": of.total_ns },
        el("td", { class: "name" }, names.get(of.method) ?? of.method),
        el("td", {}, count(of.count)),
        ...times.map((ns) => el("td", { "data-value": ns }, time(Math.round(ns)))),
      );
    });
  const heads = ["Method", "Count", "Mean", "Std dev", "Min", "Median", "90%", "99%", "Max"];
  return [el("h2", {}, "Invocations, each with what it calls, of all threads"), table("statistics", "Invocations", heads, rows)];
}

function skipped(methods: { method: string; reason: string }[]): HTMLElement[] {
  const rows = methods.map(({ method, reason }) =>
    el("tr", { "data-method": method }, el("td", { class: "name" }, method), el("td", { class: "name" }, reason)),
  );
  return [el("h2", {}, "Methods that were not instrumented"), table("skipped", "Skipped methods", ["Method", "Reason"], rows)];
}
