// What happened to the whole JVM, and when: a lane for each track, and its slices in a table.

import type { Report, Slice, Track } from "./data";
import { el, table } from "./dom";
import { count, time } from "./format";
import { textIn } from "./values";

/** So many slices of a track are drawn and listed, the longest. */
const SHOWN = 1000;

export function tracksView({ tracks = [], duration_ns }: Report): HTMLElement {
  const view = el("div", { class: "view prose", id: "tracks", tabindex: 0, role: "region", "aria-label": "What happened to the whole JVM" });
  const all = tracks.flatMap(({ slices }) => slices);
  const begin = all.reduce((least, { start_ns }) => Math.min(least, start_ns), 0);
  const end = all.reduce((most, slice) => Math.max(most, slice.start_ns + slice.duration_ns), duration_ns);
  const place = (ns: number) => (100 * (ns - begin)) / Math.max(end - begin, 1);
  const before = begin < 0 ? ` Recording began at 0: what is left of the line was before.` : "";
  view.append(el("p", {}, `From ${time(begin)} to ${time(end)}.${before}`));
  for (const track of tracks) {
    const shown = longest(track.slices);
    const [one, several] = track.nouns;
    const total = track.slices.reduce((sum, { duration_ns }) => sum + duration_ns, 0);
    const lost = track.lost > 0 ? `; ${count(track.lost)} more were not seen` : "";
    const number = track.slices.length === 1 ? `1 ${one}` : `${count(track.slices.length)} ${several}`;
    view.append(el("h2", {}, track.title), el("p", { class: "note" }, `${track.about}. ${number}${total > 0 ? `, ${time(total)} altogether` : ""}${lost}.`));
    const lane = el("div", { class: "lane", "data-track": track.id, "aria-hidden": "true" });
    if (begin < 0) lane.append(at(el("span", { class: "zero" }), place(0), 0));
    for (const slice of shown) lane.append(at(el("span", { class: "slice", title: told(track, slice) }), place(slice.start_ns), place(begin + slice.duration_ns)));
    view.append(lane);
    if (shown.length > 0) view.append(listed(track, shown));
    if (shown.length < track.slices.length) view.append(el("p", { class: "note" }, `The ${count(SHOWN)} longest are shown.`));
  }
  return view;
}

function longest(slices: Slice[]): Slice[] {
  return [...slices]
    .sort((a, b) => b.duration_ns - a.duration_ns)
    .slice(0, SHOWN)
    .sort((a, b) => a.start_ns - b.start_ns);
}

function at(element: HTMLElement, left: number, width: number): HTMLElement {
  element.style.left = `${left}%`;
  element.style.width = `${width}%`;
  return element;
}

/** What is known of a slice, as text. */
function told({ amounts }: Track, slice: Slice): string {
  const known = amounts.map(({ title, unit }, place) => [title, slice.amounts[place], unit] as const).filter(([, amount]) => amount != null);
  const others = known.map(([title, amount, unit]) => `, ${title} ${textIn(unit, amount!)}`).join("");
  const who = said(slice);
  return `${who === "" ? "" : `${who}: `}${time(slice.duration_ns)} at ${time(slice.start_ns)}${others}`;
}

/** Who did it, and what is said of it. */
function said({ by, label }: Slice): string {
  return [by, label].filter((part) => part !== "").join(", ");
}

function listed({ id, title, amounts }: Track, slices: Slice[]): HTMLElement {
  const rows = slices.map((slice) =>
    el(
      "tr",
      {},
      el("td", { "data-value": slice.start_ns }, time(slice.start_ns)),
      el("td", { "data-value": slice.duration_ns }, time(slice.duration_ns)),
      ...amounts.map(({ unit }, place) => {
        const amount = slice.amounts[place] ?? null;
        return el("td", { "data-value": amount }, amount === null ? "" : textIn(unit, amount));
      }),
      el("td", { class: "name" }, said(slice)),
    ),
  );
  return table(id, title, ["At", "For", ...amounts.map(({ title }) => title), "Reason"], rows);
}
