// Methods as points: two numbers of each, so that what is large by one and small by the other is seen. The table of methods has the same for
// those who do not see it.

import type { App, Changed } from "./app";
import { announce, choice, el, onceAFrame } from "./dom";
import { shortName } from "./format";
import type { Quantity } from "./source";
import { NONE } from "./tree";

const RADIUS = 4;
/** How far from a point a pointer still means it. */
const NEAR = 14;
/** Room for what stands at the axes. */
const MARGIN = { left: 92, right: 16, top: 14, bottom: 48 };
/** So many of the largest have their names beside them, where there is room. */
const NAMED = 14;

interface Point {
  method: number;
  x: number;
  y: number;
  /** Where it is drawn. */
  left: number;
  top: number;
}

/** From a value to a place: by its logarithm, for what is compared has many orders of magnitude. Nothing is at the beginning. */
class Axis {
  private readonly low: number;
  private readonly high: number;

  constructor(
    values: number[],
    private readonly step: number,
  ) {
    const there = values.filter((value) => value > 0);
    const [least, most] = there.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, 0]);
    this.low = there.length === 0 ? 0 : Math.floor(this.power(least));
    this.high = there.length === 0 ? 1 : Math.max(this.low + 1, Math.ceil(this.power(most)));
  }

  private power(value: number): number {
    // These are exact where the power is whole.
    return this.step === 10 ? Math.log10(value) : Math.log2(value) / Math.log2(this.step);
  }

  /** 0 to 1. What is nothing stands before all others. */
  place(value: number): number {
    const [first, whole] = [0.04, 0.96];
    return value <= 0 ? 0 : first + (whole * (this.power(value) - this.low)) / (this.high - this.low);
  }

  /** Powers of the step, no more than there is room for. */
  ticks(most: number): number[] {
    const every = Math.max(1, Math.ceil((this.high - this.low + 1) / most));
    const ticks = [];
    for (let power = this.low; power <= this.high; power += every) ticks.push(this.step ** power);
    return ticks;
  }
}

export class ScatterView<A> {
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", { id: "scatter", role: "application", "aria-roledescription": "scatter plot", tabindex: 0, "data-points": 0 });
  private readonly box = el("div", { class: "scroller plot" }, this.canvas);
  private readonly tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  private x: Quantity;
  private y: Quantity;
  private points: Point[] = [];
  private isStale = true;
  private readonly queue = onceAFrame(() => this.draw());

  constructor(private readonly app: App<A>) {
    const { quantities } = app.shown;
    const { canvas } = this;
    this.x = quantities[0];
    // Another metric than the first, if there is one.
    this.y = quantities.find(({ metric }) => metric !== this.x.metric) ?? quantities[1] ?? this.x;
    canvas.setAttribute("aria-label", "Methods by two metrics. Left and right go to the next method by the horizontal one, up and down by the vertical one; Enter shows its callers. The table of methods has all of them as rows.");
    const options = quantities.map(({ id, label }) => [id, label] as const);
    const axis = (label: string, id: "x" | "y") =>
      choice(label, `scatter-${id}`, options, this[id].id, (chosen) => {
        this[id] = this.app.shown.quantities.find((quantity) => quantity.id === chosen)!;
        this.restart();
      });
    const tools = el("div", { class: "tools", role: "group", "aria-label": "Axes" }, axis("Across", "x"), axis("Up", "y"));
    this.element = el("div", { class: "view" }, tools, this.box, this.tip);
    canvas.addEventListener("click", (event) => this.select(this.hit(event)));
    canvas.addEventListener("dblclick", () => this.app.state.method !== NONE && this.app.set({ view: "callers" }));
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.restart()).observe(this.box);
    app.onChange((changed) => this.update(changed));
  }

  private update(changed: Changed): void {
    if (["tree", "width", "view", "search", "unchanged"].some((key) => changed.has(key as never))) this.restart();
    else this.queue();
  }

  private restart(): void {
    this.isStale = true;
    this.tip.hidden = true;
    this.queue();
  }

  private draw(): void {
    const { canvas, box, app } = this;
    const [width, height] = [box.clientWidth, box.clientHeight];
    // Not to be seen at the moment.
    if (width === 0 || height === 0) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const colour = (name: string) => style.getPropertyValue(name);
    context.fillStyle = colour("--ground");
    context.fillRect(0, 0, width, height);
    context.font = `12px ${style.fontFamily}`;
    context.textBaseline = "middle";
    const plot = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
    const axes = this.lay(plot);
    this.drawAxes(context, plot, axes, colour);
    const { matches, state } = app;
    for (const point of this.points) {
      const isFound = matches === null || matches[point.method] === 1;
      context.globalAlpha = isFound ? 0.65 : 0.15;
      context.fillStyle = matches !== null && isFound ? colour("--wrong") : colour("--bar-own");
      context.beginPath();
      context.arc(point.left, point.top, RADIUS, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
    const selected = this.points.find(({ method }) => method === state.method);
    if (selected !== undefined) {
      context.strokeStyle = colour("--text");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(selected.left, selected.top, RADIUS + 3, 0, 2 * Math.PI);
      context.stroke();
    }
    this.drawNames(context, width, selected, colour);
    canvas.dataset.points = String(this.points.length);
    canvas.dataset.x = this.x.id;
    canvas.dataset.y = this.y.id;
  }

  /** Finds where the points are. */
  private lay(plot: { width: number; height: number }): [Axis, Axis] {
    const { shown, matches, state } = this.app;
    const [xs, ys] = [shown.methodValues(this.x.id), shown.methodValues(this.y.id)];
    const rows = shown.flat().filter(({ method, amounts }) => {
      const isShown = state.unchanged || shown.isNotable === null || shown.isNotable(amounts);
      return xs[method] !== undefined && ys[method] !== undefined && (isShown || matches?.[method] === 1);
    });
    const axes: [Axis, Axis] = [new Axis(rows.map(({ method }) => xs[method]!), this.x.step), new Axis(rows.map(({ method }) => ys[method]!), this.y.step)];
    if (this.isStale) {
      this.points = rows.map(({ method }) => {
        const [x, y] = [xs[method]!, ys[method]!];
        const left = MARGIN.left + axes[0].place(x) * plot.width;
        const top = MARGIN.top + (1 - axes[1].place(y)) * plot.height;
        return { method, x, y, left, top };
      });
      this.isStale = false;
    }
    return axes;
  }

  private drawAxes(context: CanvasRenderingContext2D, plot: { width: number; height: number }, [across, up]: [Axis, Axis], colour: (name: string) => string): void {
    const bottom = MARGIN.top + plot.height;
    context.strokeStyle = colour("--line");
    context.fillStyle = colour("--soft");
    context.lineWidth = 1;
    const line = (x: number, y: number, toX: number, toY: number) => {
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(toX, toY);
      context.stroke();
    };
    context.textAlign = "center";
    for (const tick of across.ticks(Math.max(2, Math.floor(plot.width / 80)))) {
      const x = MARGIN.left + across.place(tick) * plot.width;
      line(x, MARGIN.top, x, bottom);
      context.fillText(this.x.text(tick), Math.min(x, MARGIN.left + plot.width - 20), bottom + 16);
    }
    context.fillText(this.x.label, MARGIN.left + plot.width / 2, bottom + 34);
    context.textAlign = "right";
    for (const tick of up.ticks(Math.max(2, Math.floor(plot.height / 36)))) {
      const y = MARGIN.top + (1 - up.place(tick)) * plot.height;
      line(MARGIN.left, y, MARGIN.left + plot.width, y);
      context.fillText(this.y.text(tick), MARGIN.left - 6, y);
    }
    context.save();
    context.translate(9, MARGIN.top + plot.height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(this.y.label, 0, 0);
    context.restore();
    context.textAlign = "left";
  }

  /** The selected one's name, and the largest ones', none over another. */
  private drawNames(context: CanvasRenderingContext2D, width: number, selected: Point | undefined, colour: (name: string) => string): void {
    const bySize = [...this.points].sort((a, b) => b.left - b.top - (a.left - a.top)).slice(0, NAMED);
    const taken: { left: number; right: number; top: number }[] = [];
    if (selected !== undefined) taken.push({ left: selected.left - RADIUS - 4, right: selected.left + RADIUS + 4, top: selected.top });
    context.fillStyle = colour("--text");
    for (const point of selected === undefined ? bySize : [selected, ...bySize.filter((other) => other !== selected)]) {
      const text = shortName(this.app.source.names[point.method][1]).replace(/\(.*/, "");
      const length = context.measureText(text).width;
      const gap = RADIUS + (point === selected ? 7 : 4);
      const isFree = (left: number) =>
        left >= MARGIN.left && left + length < width && !taken.some((other) => Math.abs(other.top - point.top) < 14 && left < other.right && left + length > other.left);
      const left = [point.left + gap, point.left - gap - length].find(isFree);
      if (left === undefined) continue;
      taken.push({ left, right: left + length, top: point.top });
      context.fillText(text, left, point.top);
    }
  }

  private hit(event: MouseEvent): Point | null {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const distance = (point: Point) => Math.hypot(point.left - x, point.top - y);
    let nearest: Point | null = null;
    for (const point of this.points) if (distance(point) <= NEAR && (nearest === null || distance(point) < distance(nearest))) nearest = point;
    return nearest;
  }

  private select(point: Point | null): void {
    if (point === null) return;
    this.app.selectMethod(point.method);
    announce(this.describe(point).join(", "));
  }

  private describe({ method, x, y }: Point): string[] {
    return [this.app.name(method), `${this.x.label}: ${this.x.text(x)}`, `${this.y.label}: ${this.y.text(y)}`];
  }

  private onMove(event: PointerEvent): void {
    const point = event.pointerType === "touch" ? null : this.hit(event);
    this.tip.hidden = point === null;
    this.canvas.style.cursor = point === null ? "" : "pointer";
    if (point === null) return;
    const [name, ...numbers] = this.describe(point);
    this.tip.replaceChildren(el("strong", {}, name), ...numbers.map((text) => el("span", {}, text)));
    const box = this.element.getBoundingClientRect();
    this.tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left + 14, box.width - this.tip.offsetWidth - 4))}px`;
    const top = event.clientY - box.top + 14;
    this.tip.style.top = `${top + this.tip.offsetHeight > box.height ? top - this.tip.offsetHeight - 28 : top}px`;
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || this.points.length === 0) return;
    const step = { ArrowRight: ["x", 1], ArrowLeft: ["x", -1], ArrowUp: ["y", 1], ArrowDown: ["y", -1] }[event.key] as ["x" | "y", number] | undefined;
    if (event.key === "Enter" && this.app.state.method !== NONE) this.app.set({ view: "callers" });
    else if (step === undefined) return;
    else {
      const [by, direction] = step;
      const sorted = [...this.points].sort((a, b) => a[by] - b[by] || a.method - b.method);
      const at = sorted.findIndex(({ method }) => method === this.app.state.method);
      this.select(sorted[at < 0 ? sorted.length - 1 : Math.max(0, Math.min(sorted.length - 1, at + direction))]);
    }
    event.preventDefault();
  }
}
