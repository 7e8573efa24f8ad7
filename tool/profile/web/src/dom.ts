// Elements, made by the DOM alone: no text ever becomes markup.

import { printable } from "./format";

type Child = Node | string | null;
type Attributes = Record<string, string | number | boolean | null | ((event: any) => void)>;

/** An element. Attributes that are functions are listeners: `{ click: () => ... }`; null and false leave one out. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null).map((child) => (typeof child === "string" ? printable(child) : child)));
  return element;
}

/** What draws when the next frame is, however often it is asked to before. */
export function onceAFrame(draw: () => void): () => void {
  let isQueued = false;
  return () => {
    if (isQueued) return;
    isQueued = true;
    requestAnimationFrame(() => {
      isQueued = false;
      draw();
    });
  };
}

/** A choice of named values, each under a heading if it has one. */
export function choice<T extends string>(
  label: string,
  id: string,
  options: readonly (readonly [T, string, string?])[],
  chosen: T,
  change: (value: T) => void,
): HTMLLabelElement {
  const select = el("select", { id, change: () => change(select.value as T) });
  const groups = new Map<string, HTMLOptGroupElement>();
  const place = (group: string | undefined): HTMLElement => {
    if (group === undefined) return select;
    if (!groups.has(group)) {
      groups.set(group, el("optgroup", { label: printable(group) }));
      select.append(groups.get(group)!);
    }
    return groups.get(group)!;
  };
  for (const [value, text, group] of options) place(group).append(el("option", { value }, text));
  select.value = chosen;
  return el("label", { class: "field" }, el("span", {}, label), select);
}

export function button(text: string, click: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return el("button", { type: "button", click, ...attributes }, text);
}

const announcer = el("div", { id: "announcer", class: "visually-hidden", role: "status", "aria-live": "polite" });
document.body.append(announcer);

/** Tells a screen reader. */
export function announce(text: string): void {
  announcer.textContent = text;
}

/** A bar of pieces that are together as long as it is. */
export function stacked(segments: { label: string; part: number; paint: string }[]): HTMLElement {
  const bar = el("span", { class: "stacked", "aria-hidden": "true" });
  for (const { label, part, paint } of segments) {
    const piece = el("span", { title: `${label} ${Math.round(100 * part)}%` });
    piece.style.width = `${100 * part}%`;
    piece.style.background = paint;
    bar.append(piece);
  }
  return bar;
}

/** A table that is scrolled by itself; methods and reasons are left-aligned. */
export function table(id: string, label: string, heads: string[], rows: HTMLElement[]): HTMLElement {
  const head = el("tr", {}, ...heads.map((text) => el("th", { scope: "col", class: /^(Method|Reason)$/.test(text) ? "name" : "" }, text)));
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label }, el("table", { id }, el("thead", {}, head), el("tbody", {}, ...rows)));
}
