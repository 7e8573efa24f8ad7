// The node information window (JaViz, table 1): what is known of the selected call chain and its method.

import type { App } from "./app";
import { button, el, stacked } from "./dom";
import { paintOf } from "./theme";
import { NONE } from "./tree";

/** A number and its unit stay on one line. */
function whole(text: string): string {
  return text.replace(/(?<=\d) (?=(?:[num]?s|[KMGT]iB|B)\b)/g, "\u00a0");
}

function swatchOf(paint: string): HTMLElement {
  const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.background = paint;
  return swatch;
}

/** Of a longer path the middle is left out. */
const PATH = 30;

export class InfoView<A> {
  readonly element = el("aside", { id: "node", "aria-label": "Node information" });

  constructor(private readonly app: App<A>) {
    this.fill();
    app.onChange((changed) => {
      if (["node", "tree", "width", "colour", "theme"].some((key) => changed.has(key as never))) this.fill();
    });
  }

  private fill(): void {
    const { app } = this;
    const { node } = app.state;
    if (node === NONE) {
      const hint = "Select a frame, a row or a method: what is known of it stands here.";
      this.element.replaceChildren(el("h2", {}, "Node information"), el("p", { class: "note" }, hint));
      this.element.removeAttribute("data-node");
      return;
    }
    const { shape } = app.shown;
    const parts: Node[] = [el("h2", {}, app.name(shape.method[node]))];
    parts.push(
      el(
        "div",
        { class: "tools", role: "group", "aria-label": "Go to" },
        button("Zoom here", () => app.zoom(node)),
        button("In the tree", () => app.set({ view: "tree" })),
        button("Callers and callees", () => app.set({ view: "callers" })),
      ),
    );
    for (const { heading, facts, stack } of app.shown.facts(node)) {
      const paints = new Map(stack?.map(({ label, paint }) => [label, paintOf(paint)]));
      // Names are long: each gets the whole width.
      const list = el("dl", { class: facts.some((fact) => fact.name === "Method name") ? "names" : "numbers" });
      for (const { name, text, value } of facts) {
        const swatch = paints.has(name) ? [swatchOf(paints.get(name)!), " "] : [];
        list.append(el("dt", {}, ...swatch, name), el("dd", { "data-name": name, "data-value": value === undefined ? null : String(value) }, whole(text)));
      }
      if (stack !== undefined) parts.push(el("h3", {}, heading), stacked(stack.map((piece) => ({ ...piece, paint: paintOf(piece.paint) }))), list);
      else parts.push(el("h3", {}, heading), list);
    }
    const { mapping } = app;
    const swatch = swatchOf(paintOf(mapping.key[mapping.classOf(node)].paint));
    parts.push(el("p", { class: "note" }, swatch, ` ${mapping.label}: ${mapping.describe(node)}`));
    parts.push(el("h3", {}, "From the root"), this.path(shape.path(node)));
    this.element.dataset.node = String(node);
    this.element.replaceChildren(...parts);
  }

  private path(path: number[]): HTMLElement {
    const { app } = this;
    const step = (node: number) =>
      el("li", {}, button(app.name(app.shown.shape.method[node]), () => app.set({ node }), { class: "link" }));
    const list = el("ol", { class: "path" });
    if (path.length <= PATH) list.append(...path.map(step));
    else {
      const left = path.length - PATH;
      list.append(...path.slice(0, PATH / 2).map(step), el("li", { class: "note" }, `… ${left} more …`));
      list.append(...path.slice(-PATH / 2).map(step));
    }
    return list;
  }
}
