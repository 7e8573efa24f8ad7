// Find next: from the selected node on to the next that a query describes, depth first or level by level.

import type { App } from "./app";
import { announce, button, choice, el } from "./dom";
import { count } from "./format";
import { parse, QueryError, type Predicate } from "./query";
import { NONE } from "./tree";

type Order = "depth" | "breadth";

export class FindBar<A> {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly result = el("output", { id: "find-result" });
  private order: Order = "depth";

  constructor(private readonly app: App<A>) {
    this.input = el("input", {
      id: "query",
      type: "text",
      placeholder: app.source.kind === "diff" ? "total > 1ms && changed = yes" : "self > 1ms && calls < 10 && method ~ parse",
      spellcheck: "false",
      autocomplete: "off",
      "aria-describedby": "find-result query-help",
    });
    const names = Object.keys(app.shown.attributes).join(", ");
    const help = `Attributes: ${names}. Operators: < <= > >= = != ~ (contains) !~ && || ! ( ). Units: ns us ms s % k m.`;
    const orders = [["depth", "Depth first"], ["breadth", "Breadth first"]] as const;
    const form = el(
      "form",
      { id: "find", role: "search", "aria-label": "Find next node", submit: (event: Event) => this.next(event) },
      el("label", { class: "field grow" }, el("span", {}, "Find node"), this.input),
      choice<Order>("Order", "find-order", orders, this.order, (order) => (this.order = order)),
      button("Find next", () => {}, { id: "find-next", type: "submit" }),
      this.result,
      el("p", { id: "query-help", class: "note" }, help),
    );
    this.input.addEventListener("input", () => this.say("", false));
    this.element = form;
  }

  private next(event: Event): void {
    event.preventDefault();
    const { app } = this;
    let predicate: Predicate;
    try {
      predicate = parse(this.input.value, app.shown.attributes);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      this.say(error.message, true);
      return;
    }
    app.setQuery(this.input.value.trim());
    const { shape } = app.shown;
    const order = this.order === "depth" ? shape.depthFirst().preorder : shape.breadthFirst();
    let [found, place, total, next, nextPlace] = [NONE, 0, 0, NONE, 0];
    let isPast = app.state.node === NONE;
    for (const node of order) {
      if (predicate(node)) {
        total++;
        if (found === NONE) [found, place] = [node, total];
        if (isPast && next === NONE) [next, nextPlace] = [node, total];
      }
      if (node === app.state.node) isPast = true;
    }
    if (found === NONE) {
      this.say("no node is like that", true);
      return;
    }
    // After the last comes the first again.
    if (next !== NONE) [found, place] = [next, nextPlace];
    this.say(`${count(place)} of ${count(total)}`, false);
    const root = shape.isAbove(app.state.root, found) ? app.state.root : NONE;
    app.set({ root, node: found });
    announce(`${place} of ${total}: ${app.name(shape.method[found])}, ${app.shown.summary(app.shown.of(found))}`);
  }

  private say(text: string, isWrong: boolean): void {
    this.result.textContent = text;
    this.result.classList.toggle("wrong", isWrong);
    this.input.setAttribute("aria-invalid", String(isWrong));
    if (isWrong) announce(text);
  }
}
