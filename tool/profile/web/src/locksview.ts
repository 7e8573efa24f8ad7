// Contended locks: who waited for which, where and how long, and who held it.

import type { App } from "./app";
import type { Locks, LockPlace, Waits } from "./data";
import { button, el } from "./dom";
import { count, percent, time } from "./format";

/** Frames of a stack, and places of a lock, that are shown at once. */
const FRAMES = 12;
const PLACES = 20;

export function locksView<A>(app: App<A>, locks: Locks): HTMLElement {
  const { contended, unfinished, limits, looks, other_parks } = locks;
  const view = el("div", { class: "view prose", id: "locks", tabindex: 0, role: "region", "aria-label": "Contended locks" });
  const over = locks.over_ns > 0 ? ` of ${time(locks.over_ns)} or longer` : "";
  view.append(el("p", {}, `${count(contended.length)} contended locks: ${waits(locks)}${over}. Who holds locks was looked at ${count(looks)} times.`));
  if (other_parks.waits > 0) view.append(el("p", { class: "note" }, `Parked for something else than locks, not counted: ${waits(other_parks)}.`));
  for (const lock of contended) {
    const share = percent(lock.blocked_ns, locks.blocked_ns);
    const kind = lock.kind === "monitor" ? "monitor of " : "";
    const heading = el("summary", {}, el("b", {}, `${share} ${kind}${lock.class} `), el("span", { class: "note" }, `${lock.address}, ${waits(lock)}`));
    const attributes = { class: "lock", "data-class": lock.class, "data-kind": lock.kind, "data-waits": lock.waits, "data-blocked-ns": lock.blocked_ns };
    const details = el("details", attributes, heading, ...lock.places.slice(0, PLACES).map((it) => place(app, it)));
    if (lock.places.length > PLACES) details.append(el("p", { class: "note" }, `${count(lock.places.length - PLACES)} other places are in the JSON.`));
    details.open = lock === contended[0];
    view.append(details);
  }
  for (const wait of unfinished) {
    const heading = `${wait.thread} waited for ${wait.lock} at the end, as at each look of ${time(wait.seen_ns)} before`;
    view.append(el("h2", {}, heading), stack(wait.stack));
    if (wait.holder !== null) view.append(el("p", {}, `Held by ${wait.holder.thread}:`), stack(wait.holder.stack));
  }
  for (const limit of limits) view.append(el("p", { class: "note" }, limit));
  return view;
}

function place<A>(app: App<A>, place: LockPlace): HTMLElement {
  const threads = `${count(place.threads)} ${place.threads === 1 ? "thread" : "threads"}`;
  const part = el("div", { class: "place", "data-waits": place.waits, "data-node": place.node }, el("p", {}, `${waits(place)}, ${threads}, in`), stack(place.stack));
  const { node } = place;
  // Its node is one of the tree of all threads.
  if (node !== null) part.append(button("In the tree", () => app.set({ tree: 0, node, view: "tree" })));
  for (const left of place.left_by) part.append(el("p", { class: "note" }, `after ${left.thread} had left it: ${waits(left)}`));
  for (const { thread, seen, stack: frames } of place.holders) {
    part.append(el("p", {}, `Held meanwhile by ${thread}, seen ${count(seen)} of ${count(place.seen)} times, in`), stack(frames));
  }
  return part;
}

function stack(frames: string[]): HTMLElement {
  // A method's descriptor is of no use to people; a frame's source is.
  const name = (frame: string) => frame.replace(/\((?!.*(:\d+|Native Method|Unknown Source)\)).*$/, "");
  const shown = frames.slice(0, FRAMES).map((frame) => el("li", { title: frame }, name(frame)));
  const more = frames.length > FRAMES ? [el("li", { class: "note" }, `… ${count(frames.length - FRAMES)} more`)] : [];
  return el("ol", { class: "path" }, ...shown, ...more);
}

function waits({ waits, blocked_ns, longest_ns }: Waits): string {
  return waits === 1 ? `1 wait of ${time(blocked_ns)}` : `${count(waits)} waits, ${time(blocked_ns)}, ${time(longest_ns)} at most`;
}
