// Numbers for people, as the text report writes them.

/** As Rust rounds: to the nearest, ties to even. */
function fixed(value: number, digits: number): string {
  const scaled = value * 10 ** digits;
  const isTie = scaled % 1 === 0.5 && Number.isInteger(value * 2 ** (digits + 1));
  return isTie && Math.floor(scaled) % 2 === 0 ? (Math.floor(scaled) / 10 ** digits).toFixed(digits) : value.toFixed(digits);
}

/** A duration with its unit and four significant digits: `12.34 ms`. */
export function time(ns: number): string {
  if (ns < 0) return `-${time(-ns)}`;
  if (ns === Infinity) return "?";
  if (ns < 1e3) return `${Number.isInteger(ns) ? ns : fixed(ns, ns < 10 ? 2 : 1)} ns`;
  const [value, unit] = ns < 1e6 ? [ns / 1e3, "us"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return `${fixed(value, value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0)} ${unit}`;
}

/** A size with its unit: `12.34 MiB`. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${Number.isInteger(bytes) ? bytes : fixed(bytes, 1)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), units.length);
  const value = bytes / 1024 ** power;
  return `${fixed(value, value < 10 ? 3 : value < 100 ? 2 : 1)} ${units[power - 1]}`;
}

/** With its thousands separated: `1,234,567`. */
export function count(n: number): string {
  const [whole, part] = (Number.isInteger(n) ? String(n) : n.toFixed(2)).split(".");
  const separated = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return part === undefined ? separated : `${separated}.${part}`;
}

/** A part of a whole: `12.3%`. */
export function percent(part: number, whole: number): string {
  return `${fixed(whole === 0 ? 0 : (100 * part) / whole, 1)}%`;
}

/** With its sign: `+1.200 ms`. */
export function signed(value: number, text: (value: number) => string): string {
  return `${value < 0 ? "−" : value > 0 ? "+" : "±"}${text(Math.abs(value))}`;
}

/** A relative change: `+5.0%`. */
export function relative(before: number, after: number): string {
  if (before === 0) return after === 0 ? "±0%" : "new";
  const part = (100 * (after - before)) / before;
  return signed(part, (value) => `${value < 100 ? value.toFixed(1) : count(Math.round(value))}%`);
}

/** The package in a method's machine name `a.b.C.m(I)V`; empty for the unnamed one. */
export function packageOf(machine: string): string {
  const className = classOf(machine);
  return className.slice(0, Math.max(0, className.lastIndexOf(".")));
}

/** The class in a method's machine name. A hidden class's name ends where its address begins. */
export function classOf(machine: string): string {
  const qualified = machine.split("(", 1)[0].split("$$Lambda", 1)[0];
  const isCut = qualified.length < machine.split("(", 1)[0].length;
  return isCut ? qualified : qualified.slice(0, Math.max(0, qualified.lastIndexOf(".")));
}

/** What turns a line around, or is not seen, as Java writes it: `\\u202e`. See tool/src/printable.rs; lines stay lines here. */
export function printable(text: string): string {
  return text.replace(
    /[\0-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff]|\udb40[\udc00-\udc7f]/g,
    (found) => found.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}

/** The parts of a method's name: its packages, or of a name without any its class, with their last dot, and the rest. */
export function parted(display: string): [string, string] {
  const rest = shortName(display);
  if (rest.length < display.length) return [display.slice(0, display.length - rest.length), rest];
  const method = display.split("(", 1)[0].lastIndexOf(".") + 1;
  return [display.slice(0, method), display.slice(method)];
}

/** A name in less and less: without its packages, without its parameters, the method alone. What is left of it is cut last. */
export function shorter(display: string): string[] {
  const short = shortName(display);
  const open = short.indexOf("(");
  if (open < 0) return [short];
  const head = short.slice(0, open);
  const method = head.slice(head.lastIndexOf(".") + 1);
  return [short, `${head}(…`, `${method}(…`, method];
}

/** Without packages: `Shop.checkout(Cart)`. */
export function shortName(display: string): string {
  const end = display.indexOf("(");
  const qualified = end < 0 ? display : display.slice(0, end);
  const parts = qualified.split(".");
  // A hidden class has a dot in its name: Shop$$Lambda.0x00007f12.
  const length = parts.at(-3)?.includes("$$Lambda") ? 3 : 2;
  return parts.slice(-length).join(".") + (end < 0 ? "" : display.slice(end));
}
