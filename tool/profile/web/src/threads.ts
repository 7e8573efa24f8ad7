// All threads of a JVM at one moment: who waits for whom, each stack once, and a table of the threads.

import type { ThreadsFacts, ThreadsReport } from "./data";
import { button, el, onceAFrame } from "./dom";
import { Grid, type GridColumn } from "./grid";
import { count, percent, size, time } from "./format";
import { heading } from "./head";
import { tabs } from "./tabs";
import { startTheme } from "./theme";

/** Stacks that are shown at once, and as many more each time; threads of one that are named at once, and with what they do. */
const STACKS = 100;
const NAMED = 3;
const THREADS = 50;

type Thread = ThreadsReport["threads"][number];
type Group = ThreadsReport["groups"][number];
type View = "stacks" | "threads";

export function threadsPage({ report }: ThreadsFacts): void {
  const { target, threads } = report;
  startTheme(() => {});
  let view: View = "stacks";
  const stacks = new StacksView(report);
  const choose = (wanted: View) => {
    view = wanted;
    shown.mark();
    table.draw();
  };
  const table = new TableView(report, (thread) => {
    choose("stacks");
    stacks.reveal(thread);
  });
  const views = { stacks: stacks.element, threads: table.element };
  const all: [View, string][] = [["stacks", "Stacks"], ["threads", `Threads (${count(threads.length)})`]];
  const shown = tabs(all, views, () => view, choose);
  const head = heading(target.main, summary(report), [...report.warnings, ...unread(report)], () => {});
  head.append(search(report, (found) => [stacks, table].forEach((view) => view.find(found))));
  const main = el("main", { class: "alone" }, el("div", { class: "stage" }, shown.list, ...shown.panels));
  document.getElementById("app")!.replaceChildren(head, main);
}

function summary({ target, threads, groups, virtual_threads, cpu }: ThreadsReport): string {
  const stacks = groups.filter(({ stack }) => stack.length > 0).length;
  const parts = [`pid ${target.pid}, ${target.vm}`, `${count(threads.length)} threads, ${count(stacks)} different stacks`];
  if (virtual_threads !== null) parts.push(`${count(virtual_threads.count)} virtual: ${count(virtual_threads.parked)} parked, ${count(virtual_threads.pinned)} pinned`);
  if (cpu !== null && cpu.window_ns > 0) {
    const all = cpu.recent_ns + cpu.ended_ns;
    const ended = cpu.ended_ns > 0 ? `, ${time(cpu.ended_ns)} of it by threads that have ended` : "";
    parts.push(`CPU in the last ${time(cpu.window_ns)}: ${time(all)} (${percent(all, cpu.window_ns)})${ended}`);
  }
  if (cpu !== null) parts.push(`CPU since the start: ${time(cpu.process_ns)}`);
  return `${parts.join("; ")}.`;
}

function unread({ unread }: ThreadsReport): string[] {
  return unread.length === 0 ? [] : [`${count(unread.length)} lines of the JVM's are not understood: ${unread[0]}`];
}

/** What the search finds: threads by their names and by what they do, and all of a stack by its frames. */
type Found = { threads: Set<number> } | null;

function search(report: ThreadsReport, changed: (found: Found) => void): HTMLElement {
  const { threads, groups } = report;
  const result = el("output", { id: "search-result", for: "search" });
  const find = () => {
    const wanted = input.value.trim().toLowerCase().replaceAll("::", ".");
    const has = (text: string) => text.toLowerCase().includes(wanted);
    const isFound = groups.map(({ stack }) => stack.some(has));
    const found = threads.filter(({ name, doing, group }) => isFound[group] || has(name) || has(doing));
    result.textContent = wanted === "" ? "" : found.length === 0 ? "nothing found" : `${count(found.length)} of ${count(threads.length)} threads`;
    changed(wanted === "" ? null : { threads: new Set(found.map(({ id }) => id)) });
  };
  const attributes = { id: "search", type: "search", placeholder: "part of a thread's name, a frame, a lock", spellcheck: "false", autocomplete: "off" };
  const input = el("input", { ...attributes, "aria-describedby": "search-result", input: onceAFrame(find) });
  return el("div", { class: "controls search" }, el("label", { class: "field grow" }, el("span", {}, "Search"), input), result);
}

function named({ name, java_id }: Thread): string {
  return java_id === null ? name : `${name} (#${java_id})`;
}

class StacksView {
  readonly element = el("div", { class: "view prose", id: "stacks", tabindex: 0, role: "region", "aria-label": "Stacks" });
  private readonly list = el("div");
  private found: Found = null;
  private limit = STACKS;

  constructor(private readonly report: ThreadsReport) {
    this.element.append(...this.deadlocks(), ...this.blockers(), el("h2", {}, "Stacks"), this.list);
    this.fill();
  }

  find(found: Found): void {
    [this.found, this.limit] = [found, STACKS];
    this.fill();
  }

  /** Opens a thread's stack, and goes there. */
  reveal({ group }: Thread): void {
    // Whoever is led there wants to see it, whatever he has looked for.
    if (!this.shown().includes(this.report.groups[group])) this.found = null;
    this.limit = Math.max(this.limit, this.shown().indexOf(this.report.groups[group]) + 1);
    this.fill();
    const details = this.list.querySelector<HTMLDetailsElement>(`details[data-group="${group}"]`);
    if (details === null) return;
    details.open = true;
    details.scrollIntoView({ block: "start" });
  }

  private shown(): Group[] {
    const { found } = this;
    return this.report.groups.filter(({ threads }) => found === null || threads.some((thread) => found.threads.has(thread)));
  }

  private fill(): void {
    const groups = this.shown();
    const made = groups.slice(0, this.limit).map((group) => this.group(group));
    const rest = groups.length - made.length;
    const more = button(`${count(rest)} more stacks`, () => {
      this.limit += STACKS;
      this.fill();
    });
    this.list.replaceChildren(...made, ...(rest > 0 ? [more] : []));
    if (groups.length === 0) this.list.append(el("p", { class: "note" }, "No stack to be shown: change the search."));
  }

  private deadlocks(): HTMLElement[] {
    return this.report.deadlocks.flatMap(({ certain, waits }, number) => {
      const edges = waits.map(({ thread, kind, lock, holder }) => {
        const held = kind === "class-initialisation" ? "initialised by" : "held by";
        const [who, other] = [this.report.threads[thread], this.report.threads[holder]];
        const wants = `wants ${this.lock(lock)}, ${held} ${named(other)}`;
        return el("li", { "data-thread": thread }, this.link(who), el("p", {}, wants), el("p", { class: "note" }, `at ${this.report.groups[who.group].stack[0] ?? "?"}`));
      });
      const title = `Deadlock ${number + 1}${certain ? "" : ", likely"}: ${count(waits.length)} ${waits.length === 1 ? "thread" : "threads"} wait for each other`;
      return [el("h2", { class: "wrong" }, title), el("ol", { class: "deadlock" }, ...edges)];
    });
  }

  private blockers(): HTMLElement[] {
    const { blockers, threads } = this.report;
    if (blockers.length === 0) return [];
    const lines = blockers.map(({ thread, deadlock, doing, waiting, wanted }) => {
      const wait = `${count(waiting.length)} ${waiting.length === 1 ? "thread waits" : "threads wait"} for `;
      const whom = thread === null ? `deadlock ${(deadlock ?? 0) + 1}` : this.link(threads[thread]);
      const what = wanted.map(({ lock, holder, waiting: by }) => el("li", { class: "note" }, `${this.lock(lock)}${holder === thread ? "" : `, of ${named(threads[holder])}`}: ${count(by)}`));
      return el("li", { "data-waiting": waiting.length }, el("span", {}, wait, whom, doing === null ? "" : `, which is: ${doing}`), el("ul", {}, ...what));
    });
    return [el("h2", {}, "Who holds others up"), el("ul", { id: "blockers" }, ...lines)];
  }

  private group({ threads, recent_cpu_ns, stack }: Group): HTMLElement {
    const all = threads.map((thread) => this.report.threads[thread]);
    const number = all[0].group;
    const names = all.slice(0, NAMED).map(named).join(", ");
    const cpu = recent_cpu_ns > 0 ? `, CPU ${time(recent_cpu_ns)}` : "";
    const others = all.length > NAMED ? `, and ${count(all.length - NAMED)} more` : "";
    const title = el("summary", {}, el("b", {}, `${count(all.length)} ${all.length === 1 ? "thread" : "threads"}: `), `${names}${others} `, el("span", { class: "note" }, `${all[0].doing}${cpu}`));
    const details = el("details", { class: "lock", "data-group": number, "data-threads": threads.length }, title);
    // What is not looked at is not made.
    details.addEventListener("toggle", () => details.open && details.childElementCount === 1 && details.append(...this.inside(all, stack)));
    return details;
  }

  private inside(all: Thread[], stack: string[]): HTMLElement[] {
    const [only] = all.length === 1 ? all : [];
    const frames = stack.map((frame, at) => el("li", {}, frame, ...(only === undefined ? [] : this.locks(only, at))));
    const lines = all.slice(0, THREADS).map((thread) => {
      const holds = thread.holds.map(({ lock }) => this.lock(lock));
      const facts = [thread.state, thread.doing, ...(holds.length > 0 ? [`holds ${holds.join(", ")}`] : []), ...thread.notes];
      return el("li", { "data-thread": thread.id }, named(thread), el("span", { class: "note" }, ` ${facts.join("; ")}`));
    });
    if (all.length > THREADS) lines.push(el("li", { class: "note" }, `… ${count(all.length - THREADS)} more`));
    return [el("ol", { class: "path" }, ...frames), el("ul", { class: "place" }, ...lines)];
  }

  /** What a thread waits for or has taken at a frame. */
  private locks({ wait, holds }: Thread, at: number): HTMLElement[] {
    const lines = holds.filter(({ frame }) => frame === at).map(({ lock }) => `holds ${this.lock(lock)}`);
    if (wait !== null && wait.frame === at) {
      const holder = wait.holder === null ? "" : `, which ${named(this.report.threads[wait.holder])} holds`;
      lines.unshift(`waits for ${this.lock(wait.lock)}${holder}`);
    }
    return lines.map((line) => el("p", { class: "note" }, line));
  }

  private lock(lock: number | null): string {
    return lock === null ? "?" : this.report.locks[lock].object;
  }

  private link(thread: Thread): HTMLElement {
    return button(named(thread), () => this.reveal(thread), { class: "link" });
  }
}

class TableView {
  readonly element: HTMLElement;
  private readonly grid: Grid<Thread>;
  private readonly columns: GridColumn<Thread>[];
  private rows: Thread[];
  private order = "recent";

  constructor(private readonly report: ThreadsReport, open: (thread: Thread) => void) {
    const known = (id: string, label: string, title: string, of: (thread: Thread) => number | null, text: (value: number) => string): GridColumn<Thread> => ({
      id,
      label,
      title,
      value: (row) => of(row) ?? -1,
      cell: (row) => (of(row) === null ? "" : text(of(row)!)),
    });
    const waiting = new Map(report.blockers.map((blocker) => [blocker.thread, blocker.waiting.length]));
    const states = [...new Set(report.threads.map(({ state }) => state))].sort().reverse();
    this.columns = [
      { id: "state", label: "State", title: "Thread.State", value: ({ state }) => states.indexOf(state), cell: ({ state }) => state },
      known("recent", "CPU, recent", "CPU time in the window before the dump", ({ recent_cpu_ns }) => recent_cpu_ns, time),
      known("cpu", "CPU", "CPU time since the thread's start", ({ cpu_ns }) => cpu_ns, time),
      known("allocated", "Allocated", "Bytes allocated since the thread's start", ({ allocated_bytes }) => allocated_bytes, size),
      known("elapsed", "Age", "Time since the thread's start", ({ elapsed_ns }) => elapsed_ns, time),
      known("waiting", "Held up", "How many threads wait for it", ({ id }) => waiting.get(id) ?? null, count),
    ];
    this.rows = [...report.threads];
    this.grid = new Grid<Thread>({
      id: "thread-table",
      label: "Threads",
      role: "grid",
      nameLabel: "Thread",
      columns: this.columns,
      name: (row) => [el("span", { class: "label", title: `${named(row)}: ${row.doing}` }, el("span", {}, named(row), el("span", { class: "note" }, `  ${row.doing}`)))],
      attributes: (row) => ({ "data-thread": String(row.id) }),
      select: () => {},
      open,
      sort: (id) => {
        this.order = id;
        this.sort();
      },
      empty: "No thread to be shown: change the search.",
    });
    const hint = "A double click, or Enter, shows a thread's stack.";
    this.element = el("div", { class: "view" }, el("p", { class: "note" }, hint), this.grid.element);
    this.sort();
  }

  draw(): void {
    this.grid.render();
  }

  find(found: Found): void {
    this.rows = this.report.threads.filter(({ id }) => found === null || found.threads.has(id));
    this.sort();
  }

  private sort(): void {
    const { value } = this.columns.find(({ id }) => id === this.order)!;
    this.rows.sort((a, b) => value(b) - value(a) || a.id - b.id);
    this.grid.setOrder(this.order);
    this.grid.setRows(this.rows.length, (index) => this.rows[index]);
  }
}
