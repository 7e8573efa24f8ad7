// The flame graph, or icicle, on a canvas. What is drawn is found from the root down: a frame too narrow to be seen is not entered, so
// that a drawing costs as much as it shows, however large the tree is. The tree view has the same for those who do not see it.

import type { App, Changed } from "./app";
import { inkOn } from "./colours";
import { announce, button, el, onceAFrame } from "./dom";
import { shorter } from "./format";
import { paintOf } from "./theme";
import { NONE } from "./tree";

const ROW = 20;
/** Frames narrower than this, in CSS pixels, are drawn together. */
const NARROWEST = 0.75;
/** Frames narrower than this have no text. */
const TEXT_FROM = 36;
/** What stands for siblings too narrow to be drawn. */
const TOGETHER = -2;

interface Frame {
  node: number;
  level: number;
  x: number;
  width: number;
}

export class FlameView<A> {
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", {
    id: "flame",
    role: "application",
    "aria-roledescription": "flame graph",
    tabindex: 0,
    "data-frames": 0,
  });
  private readonly scroller: HTMLElement;
  private readonly sizer = el("div", { class: "sizer" });
  private readonly tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  private frames: Frame[] = [];
  private levels = 0;
  private isStale = true;
  private readonly queue = onceAFrame(() => this.draw());
  private readonly inks = new Map<string, string>();

  constructor(private readonly app: App<A>) {
    const { canvas } = this;
    canvas.setAttribute("aria-label", "Flame graph. Arrow keys go to callers, callees and neighbours; Enter zooms, Backspace goes up one level, R resets. The tree has the same calls as rows.");
    this.sizer.append(canvas);
    this.scroller = el("div", { class: "scroller flame", scroll: () => this.queue() }, this.sizer);
    const kind = button("", () => app.set({ flames: !app.state.flames }), { id: "flames" });
    const label = () => (kind.textContent = app.state.flames ? "Show as icicle" : "Show as flames");
    label();
    const tools = el(
      "div",
      { class: "tools", role: "group", "aria-label": "Zoom" },
      button("Zoom to selected", () => app.state.node !== NONE && app.zoom(app.state.node), { id: "zoom-in" }),
      button("Up one level", () => app.upOneLevel(), { id: "zoom-up" }),
      button("Reset", () => app.zoom(NONE), { id: "zoom-reset" }),
      kind,
    );
    this.element = el("div", { class: "view flame-view" }, tools, this.scroller, this.tip);
    canvas.addEventListener("click", (event) => this.onClick(event));
    canvas.addEventListener("dblclick", (event) => this.zoomTo(this.hit(event)));
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    canvas.addEventListener("focus", () => this.queue());
    canvas.addEventListener("blur", () => this.queue());
    new ResizeObserver(() => this.restart()).observe(this.scroller);
    app.onChange((changed) => {
      if (changed.has("flames")) label();
      this.update(changed);
    });
    this.restart();
  }

  private update(changed: Changed): void {
    const { state } = this.app;
    if (["tree", "width", "root", "flames", "view"].some((key) => changed.has(key as never))) this.restart();
    else this.queue();
    if (changed.has("node") && state.node !== NONE) this.reveal();
  }

  private restart(): void {
    this.isStale = true;
    this.tip.hidden = true;
    this.queue();
  }

  /** Finds the frames that are wide enough, the root's callers above it. */
  private layOut(): void {
    const { shown, state } = this.app;
    const { shape, widths } = shown;
    const width = this.scroller.clientWidth;
    const frames: Frame[] = [];
    const callers = state.root === NONE ? [] : shape.path(state.root).slice(0, -1);
    callers.forEach((node, level) => frames.push({ node, level, x: 0, width }));
    const tops = state.root === NONE ? shape.below(NONE) : Int32Array.of(state.root);
    const whole = tops.reduce((sum, node) => sum + widths[node], 0);
    const scale = whole === 0 ? 0 : width / whole;
    const pending: Frame[] = [];
    const place = (nodes: Int32Array, level: number, x: number, limit: number) => {
      let [at, rest] = [x, limit];
      for (let index = 0; index < nodes.length; index++) {
        const node = nodes[index];
        const wide = Math.min(widths[node] * scale, rest);
        if (wide < NARROWEST) {
          // Siblings come in order of width: those that follow are narrower still.
          const narrow = nodes.subarray(index).reduce((sum, other) => sum + widths[other] * scale, 0);
          if (narrow >= NARROWEST) frames.push({ node: TOGETHER, level, x: at, width: Math.min(narrow, rest) });
          return;
        }
        const frame = { node, level, x: at, width: wide };
        frames.push(frame);
        pending.push(frame);
        at += wide;
        rest -= wide;
      }
    };
    place(tops, callers.length, 0, width);
    while (pending.length > 0) {
      const { node, level, x, width } = pending.pop()!;
      place(shape.below(node), level + 1, x, width);
    }
    this.frames = frames;
    this.levels = frames.reduce((levels, frame) => Math.max(levels, frame.level + 1), 0);
    this.sizer.style.height = `${Math.max(this.levels * ROW, this.scroller.clientHeight)}px`;
    if (state.flames) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.isStale = false;
  }

  private draw(): void {
    const { canvas, scroller, app } = this;
    const [width, height] = [scroller.clientWidth, scroller.clientHeight];
    // Not to be seen at the moment.
    if (width === 0 || height === 0) return;
    if (this.isStale) this.layOut();
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const ground = style.getPropertyValue("--ground");
    const strong = style.getPropertyValue("--text");
    context.fillStyle = ground;
    context.fillRect(0, 0, width, height);
    context.font = `12px ${style.fontFamily}`;
    context.textBaseline = "middle";
    const { mapping, matches, shown, state } = app;
    const paints = mapping.key.map((entry) => paintOf(entry.paint));
    let drawn = 0;
    let selected: Frame | null = null;
    for (const frame of this.frames) {
      const y = this.top(frame.level);
      if (y + ROW < 0 || y > height) continue;
      drawn++;
      if (frame.node === TOGETHER) {
        context.fillStyle = style.getPropertyValue("--faint");
        context.fillRect(frame.x, y + ROW / 2 - 2, Math.max(0.5, frame.width - 0.5), 4);
        continue;
      }
      const paint = paints[mapping.classOf(frame.node)];
      const stack = mapping.stack?.(frame.node);
      const method = shown.shape.method[frame.node];
      const isDimmed = matches !== null && matches[method] === 0;
      context.globalAlpha = isDimmed ? 0.3 : 1;
      if (stack === undefined) {
        context.fillStyle = paint;
        context.fillRect(frame.x, y, Math.max(0.5, frame.width - 1), ROW - 1);
      } else this.fillStacked(context, frame, y, stack, paints);
      context.globalAlpha = 1;
      if (matches !== null && !isDimmed) {
        context.fillStyle = strong;
        context.fillRect(frame.x, y + ROW - 4, Math.max(0.5, frame.width - 1), 3);
      }
      if (frame.width >= TEXT_FROM) {
        const lead = (mapping.sign?.(frame.node) ?? "") + app.link(frame.node);
        // Over several colours there is no one ink for all: what is under the text is covered.
        const text = fitting(context, lead, app.name(method), frame.width - 8);
        if (stack !== undefined && text !== "") {
          context.fillStyle = ground;
          context.globalAlpha = 0.75;
          context.fillRect(frame.x + 2, y + 2, Math.min(frame.width - 5, context.measureText(text).width + 4), ROW - 5);
          context.globalAlpha = 1;
        }
        context.fillStyle = isDimmed || stack !== undefined ? strong : this.inkOf(context, paint);
        context.fillText(text, frame.x + 4, y + ROW / 2);
      }
      if (frame.node === state.node) selected = frame;
    }
    if (selected !== null) {
      context.lineWidth = 2;
      context.strokeStyle = strong;
      context.strokeRect(selected.x + 1, this.top(selected.level) + 1, Math.max(2, selected.width - 3), ROW - 3);
    }
    canvas.dataset.frames = String(drawn);
    canvas.dataset.root = String(state.root);
    canvas.dataset.drawings = String(Number(canvas.dataset.drawings ?? 0) + 1);
  }

  /** A frame in pieces, as long as what it is divided into. */
  private fillStacked(context: CanvasRenderingContext2D, frame: Frame, y: number, stack: number[], paints: string[]): void {
    const whole = stack.reduce((sum, value) => sum + value, 0);
    const width = Math.max(0.5, frame.width - 1);
    let x = frame.x;
    stack.forEach((value, part) => {
      const piece = whole === 0 ? 0 : (value / whole) * width;
      if (piece === 0) return;
      context.fillStyle = paints[part];
      context.fillRect(x, y, piece, ROW - 1);
      x += piece;
    });
  }

  /** Where a level is on the canvas. */
  private top(level: number): number {
    const { scrollTop, clientHeight } = this.scroller;
    const height = Math.max(this.levels * ROW, clientHeight);
    return (this.app.state.flames ? height - (level + 1) * ROW : level * ROW) - scrollTop;
  }

  private inkOf(context: CanvasRenderingContext2D, paint: string): string {
    let ink = this.inks.get(paint);
    if (ink === undefined) {
      // The canvas gives any colour back as #rrggbb.
      context.fillStyle = paint;
      const hex = String(context.fillStyle);
      const part = (at: number) => Number.parseInt(hex.slice(at, at + 2), 16);
      ink = inkOn(part(1), part(3), part(5));
      this.inks.set(paint, ink);
    }
    return ink;
  }

  private hit(event: MouseEvent): Frame | null {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const isHit = (frame: Frame) => {
      const top = this.top(frame.level);
      return y >= top && y < top + ROW && x >= frame.x && x < frame.x + frame.width;
    };
    return this.frames.find((frame) => frame.node !== TOGETHER && isHit(frame)) ?? null;
  }

  private onClick(event: MouseEvent): void {
    const frame = this.hit(event);
    if (frame === null) return;
    const { state } = this.app;
    // A caller of the root is gone back to; the second click on a selected frame zooms.
    const isCaller = state.root !== NONE && frame.node !== state.root && this.app.shown.shape.isAbove(frame.node, state.root);
    if (isCaller) this.zoomTo(frame);
    else this.select(frame.node);
  }

  private zoomTo(frame: Frame | null): void {
    if (frame !== null) this.app.zoom(frame.node);
  }

  private select(node: number): void {
    this.app.set({ node });
    announce(`${this.app.name(this.app.shown.shape.method[node])}: ${this.app.shown.summary(this.app.shown.of(node))}`);
  }

  private onMove(event: PointerEvent): void {
    const frame = event.pointerType === "touch" ? null : this.hit(event);
    this.tip.hidden = frame === null;
    this.canvas.style.cursor = frame === null ? "" : "pointer";
    if (frame === null) return;
    const { app } = this;
    const { node } = frame;
    const mapped = `${app.mapping.label}: ${app.mapping.describe(node)}`;
    this.tip.replaceChildren(
      el("strong", {}, app.name(app.shown.shape.method[node])),
      el("span", {}, app.shown.summary(app.shown.of(node))),
      el("span", {}, mapped),
    );
    const box = this.element.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left + 14, event.clientY - box.top + 14];
    this.tip.style.left = `${Math.max(0, Math.min(left, box.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${top + this.tip.offsetHeight > box.height ? top - this.tip.offsetHeight - 28 : top}px`;
  }

  /** Scrolls to the selected frame, and zooms out as far as it takes to have it there. */
  private reveal(): void {
    const { app, scroller } = this;
    const { shape } = app.shown;
    const { node, root } = app.state;
    if (!shape.isAbove(root, node) && !shape.isAbove(node, root)) app.set({ root: NONE });
    if (scroller.clientHeight === 0) return;
    const top = this.top(shape.level[node] - 1);
    if (top < 0) scroller.scrollTop += top;
    else if (top + ROW > scroller.clientHeight) scroller.scrollTop += top + ROW - scroller.clientHeight;
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { app } = this;
    const { shape } = app.shown;
    const { node, root, flames } = app.state;
    const parent = node === NONE ? NONE : shape.parent[node];
    const sibling = (step: number) => {
      const siblings = shape.below(parent);
      return siblings[siblings.indexOf(node) + step] ?? node;
    };
    const [toCallee, toCaller] = flames ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
    const first = root === NONE ? shape.below(NONE)[0] : root;
    if (first === undefined) return;
    if (event.key.startsWith("Arrow") && node === NONE) this.select(first);
    else if (event.key === toCallee) this.select(shape.below(node)[0] ?? node);
    else if (event.key === toCaller) this.select(parent === NONE ? node : parent);
    else if (event.key === "ArrowRight") this.select(sibling(1));
    else if (event.key === "ArrowLeft") this.select(sibling(-1));
    else if (event.key === "Home") this.select(first);
    else if ((event.key === "Enter" || event.key === "z") && node !== NONE) app.zoom(node);
    else if (event.key === "Backspace" || event.key === "u") app.upOneLevel();
    else if (event.key === "Escape" || event.key === "r") app.zoom(NONE);
    else return;
    event.preventDefault();
  }
}

/** As much of a name as fits behind what leads it. */
function fitting(context: CanvasRenderingContext2D, lead: string, name: string, width: number): string {
  const fits = (text: string) => context.measureText(text).width <= width;
  const names = shorter(name);
  const whole = names.find((shorter) => fits(lead + shorter));
  if (whole !== undefined) return lead + whole;
  // The method's own name is worth more than what leads it.
  const method = names[names.length - 1];
  return fits(method) ? method : cut(context, method, width);
}

/** As much of a text as fits. */
function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  let [fits, tooLong] = [0, text.length];
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) fits = middle;
    else tooLong = middle;
  }
  return fits === 0 ? "" : `${text.slice(0, fits)}…`;
}
