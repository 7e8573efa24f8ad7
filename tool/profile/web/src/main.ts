// The page: controls above, a view in tabs, and the node information window.

import { aboutView } from "./about";
import { App, type ViewId } from "./app";
import { CallersView } from "./callersview";
import { load, type DiffFacts, type ProfileFacts } from "./data";
import { DiffSource } from "./diff";
import { choice, el } from "./dom";
import { FindBar } from "./find";
import { FlameView } from "./flame";
import { count, percent } from "./format";
import { heading } from "./head";
import { InfoView } from "./info";
import { locksView } from "./locksview";
import { MethodsView } from "./methodsview";
import { ProfileSource } from "./profile";
import { ScatterView } from "./scatter";
import type { Source } from "./source";
import { tabs } from "./tabs";
import { paintOf, startTheme } from "./theme";
import { threadsPage } from "./threads";
import { tracksView } from "./tracksview";
import { TreeView } from "./treeview";

/** All that there may be; locks and tracks only where they were recorded. */
const VIEWS: [ViewId, string][] = [
  ["flame", "Flame graph"],
  ["tree", "Tree"],
  ["methods", "Methods"],
  ["callers", "Callers and callees"],
  ["scatter", "Scatter"],
  ["locks", "Locks"],
  ["tracks", "Over time"],
  ["about", "About"],
];

function page<A>(source: Source<A>, facts: ProfileFacts | DiffFacts): void {
  const app = new App(source);
  startTheme(() => app.tell("theme"));
  const locks = facts.kind === "profile" ? facts.report.locks : undefined;
  const views: Partial<Record<ViewId, HTMLElement>> = {
    flame: new FlameView(app).element,
    tree: new TreeView(app).element,
    methods: new MethodsView(app).element,
    callers: new CallersView(app).element,
    scatter: new ScatterView(app).element,
    ...(locks === undefined ? {} : { locks: locksView(app, locks) }),
    ...(facts.kind === "profile" && facts.report.tracks !== undefined ? { tracks: tracksView(facts.report) } : {}),
    about: aboutView(facts),
  };
  const { list, panels, mark } = tabs(VIEWS, views, () => app.state.view, (view) => app.set({ view }));
  app.onChange((changed) => changed.has("view") && mark());
  const main = el("main", {}, el("div", { class: "stage" }, list, key(app), ...panels), new InfoView(app).element);
  document.getElementById("app")!.replaceChildren(header(app, facts), main);
}

function header<A>(app: App<A>, facts: ProfileFacts | DiffFacts): HTMLElement {
  const [title, line] = facts.kind === "profile" ? ofProfile(facts) : ofDiff(facts);
  const head = heading(title, line, warnings(facts), () => app.tell("theme"));
  const more = el("details", { id: "more" }, el("summary", {}, "Threads, colours, queries"), controls(app), new FindBar(app).element);
  // Where there is little room it is folded, so that what is profiled is seen first.
  const narrow = matchMedia("(max-width: 760px)");
  const fold = () => (more.open = !narrow.matches);
  narrow.addEventListener("change", fold);
  fold();
  head.append(search(app), more);
  return head;
}

function ofProfile({ report, metrics }: ProfileFacts): [string, string] {
  const { target, roots, events, duration_ns, clock, imported } = report;
  if (imported !== undefined) return [target.main, `${imported}: ${metrics.map(({ title }) => title).join(", ")}`];
  const entered = roots
    .map(({ pattern, calls, open }) => `${pattern} (entered ${count(calls)}×${open.threads > 0 ? `, ${open.threads} ${open.threads === 1 ? "thread" : "threads"} in it before` : ""})`)
    .join(", ");
  const cpu = clock?.mode === "cpu" ? "; all times are CPU time" : "";
  return [
    target.main,
    `pid ${target.pid}, JDK ${target.jdk}, ${(duration_ns / 1e9).toFixed(1)} s, ${count(events?.calls ?? 0)} calls, ${count(events?.lost ?? 0)} events lost${cpu}. Root ${entered}`,
  ];
}

function ofDiff(facts: DiffFacts): [string, string] {
  const { before, after, per } = facts.report;
  const what = per === "root-call" ? "per root call, on average" : "of the whole runs";
  return [`${before.file} → ${after.file}`, `${after.main}: times and calls are ${what}. Times come with their uncertainty, ±; what changed by less is the same.`];
}

function warnings(facts: ProfileFacts | DiffFacts): string[] {
  if (facts.kind === "diff") return facts.report.notes;
  const { events, warnings } = facts.report;
  const lost = events !== undefined && events.lost > 0 ? [`${count(events.lost)} events were lost: calls and times are too low`] : [];
  return [...lost, ...warnings];
}

function search<A>(app: App<A>): HTMLElement {
  const search = el("input", {
    id: "search",
    type: "search",
    placeholder: "part of a method's name",
    spellcheck: "false",
    autocomplete: "off",
    "aria-describedby": "search-result",
    input: () => app.set({ search: search.value }),
  });
  const result = el("output", { id: "search-result", for: "search" });
  app.onChange((changed) => {
    if (changed.has("search") || changed.has("tree") || changed.has("width")) result.textContent = found(app);
  });
  return el("div", { class: "controls search" }, el("label", { class: "field grow" }, el("span", {}, "Search"), search), result);
}

function controls<A>(app: App<A>): HTMLElement {
  const { source } = app;
  const bar = el("div", { class: "controls", role: "group", "aria-label": "What is shown" });
  const numbered = source.trees.map((name, index) => [String(index), name] as const);
  if (source.kind === "profile") bar.append(choice("Thread", "thread", numbered, "0", (tree) => app.set({ tree: Number(tree) })));
  if (source.widthChoices.length > 1) bar.append(choice(source.widthLabel, "width", source.widthChoices, app.state.width, (width) => app.set({ width })));
  if (source.metricChoices.length > 1) bar.append(choice("Metric", "metric", source.metricChoices, app.state.metric, (metric) => app.set({ metric })));
  const query = ["query", "What the query finds"] as const;
  const isAlone = ({ group }: { group?: string }) => group === undefined;
  const option = ({ id, label, group }: { id: string; label: string; group?: string }) => [id, label, group] as const;
  const { choices: all } = app.shown;
  const choices = [...all.filter(isAlone).map(option), query, ...all.filter((choice) => !isAlone(choice)).map(option)];
  bar.append(choice("Colour", "colour", choices, app.state.colour, (colour) => app.set({ colour })));
  if (app.shown.isNotable !== null) {
    const box = el("input", { id: "unchanged", type: "checkbox", change: () => app.set({ unchanged: box.checked }) });
    bar.append(el("label", { class: "field check" }, box, el("span", {}, "Show unchanged")));
  }
  return bar;
}

/** How many methods the search finds, and the time of their outermost nodes. */
function found<A>(app: App<A>): string {
  const { matches, shown } = app;
  if (matches === null) return "";
  const { parent, method, size } = shown.shape;
  const isCovered = new Uint8Array(size);
  let [width, whole] = [0, 0];
  for (let node = 0; node < size; node++) {
    const above = parent[node];
    const isInner = above >= 0 && isCovered[above] === 1;
    isCovered[node] = isInner || matches[method[node]] === 1 ? 1 : 0;
    if (isCovered[node] === 1 && !isInner) width += shown.widths[node];
    if (above < 0) whole += shown.widths[node];
  }
  const methods = new Set(shown.flat().filter((row) => matches[row.method] === 1).map((row) => row.method)).size;
  const names = methods === 1 ? "1 method" : `${count(methods)} methods`;
  return methods === 0 ? "nothing found" : `${names}, ${shown.text(Math.round(width))} (${percent(width, whole)})`;
}

/** The views that have colours. */
const COLOURED: readonly ViewId[] = ["flame", "tree"];

/** What the colours stand for, where there are any. */
function key<A>(app: App<A>): HTMLElement {
  const list = el("ul", { id: "key", "aria-label": "Key to the colours" });
  const fill = () => {
    list.replaceChildren(
      ...app.mapping.key.map(({ paint, label }) => {
        const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
        swatch.style.background = paintOf(paint);
        return el("li", {}, swatch, label);
      }),
    );
    list.dataset.mapping = app.mapping.id;
  };
  // One colour for all tells nothing apart.
  const hide = () => (list.hidden = !COLOURED.includes(app.state.view) || app.mapping.key.length < 2);
  fill();
  hide();
  app.onChange((changed) => {
    if (["colour", "tree", "width", "theme"].some((key) => changed.has(key as never))) fill();
    hide();
  });
  return list;
}

async function start(): Promise<void> {
  const data = await load();
  const { facts } = data;
  if (facts.kind === "threads") threadsPage(facts);
  else if (facts.kind === "profile") page(new ProfileSource(data, facts), facts);
  else page(new DiffSource(data, facts), facts);
  const root = document.getElementById("app")!;
  root.dataset.ready = "true";
  root.dataset.kind = facts.kind;
}

start().catch((error: unknown) => {
  const what = error instanceof Error ? error.message : String(error);
  document.getElementById("app")!.textContent = `This page cannot be shown: ${what}. It needs a browser of 2023 or later, and the whole file.`;
});
