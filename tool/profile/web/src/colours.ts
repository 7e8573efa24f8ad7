// The mapper: a node's attribute as its colour, and the key that says which is which. A colour never says what no text does.

/** A colour for each theme. */
export interface Paint {
  light: string;
  dark: string;
}

/** An entry of the key. */
export interface KeyEntry {
  paint: Paint;
  label: string;
}

/** What a node's colour stands for. */
export interface Mapping {
  id: string;
  label: string;
  /** Which entry of the key a node is under. */
  classOf(node: number): number;
  /** The same in words, of this node. */
  describe(node: number): string;
  /** Of a change: what stands before the name in a frame, so that it is not told by the colour alone. */
  sign?(node: number): string;
  /** Of a node that is several: how much of it each entry of the key is. */
  stack?(node: number): number[];
  key: KeyEntry[];
}

const grey: Paint = { light: "#d4d7dd", dark: "#3d434e" };
/** For what an attribute says nothing of. */
export const neutral = grey;

/** Twelve hues, as far apart as may be; texts are black on the light ones and white on the dark ones. */
const HUES = [212, 28, 146, 280, 52, 340, 178, 8, 96, 240, 312, 72];

export const hues: Paint[] = HUES.map((hue, index) => ({
  light: `hsl(${hue} ${index < 6 ? 72 : 52}% ${index < 6 ? 78 : 72}%)`,
  dark: `hsl(${hue} ${index < 6 ? 44 : 34}% ${index < 6 ? 30 : 24}%)`,
}));

/** From little to much: the lightness falls, or rises on dark ground, and the hue turns, so that it is seen without hues too. */
export const sequence: Paint[] = [
  { light: "#f1efe4", dark: "#2a2e36" },
  { light: "#e3e0b6", dark: "#2c3f52" },
  { light: "#f2cf7e", dark: "#2f5a63" },
  { light: "#f3ab5f", dark: "#5b6b3d" },
  { light: "#e8804f", dark: "#8a6a1f" },
  { light: "#d9573f", dark: "#b3541e" },
];

/** From less over the same to more: blue and orange are told apart with any colour vision. */
export const diverging: Paint[] = [
  { light: "#5f9ed6", dark: "#2f6fae" },
  { light: "#9cc4e8", dark: "#2b527a" },
  { light: "#cfe1f3", dark: "#2b3d52" },
  { light: "#e2e3e6", dark: "#363b44" },
  { light: "#fbdcb8", dark: "#54402a" },
  { light: "#f6b26b", dark: "#85551d" },
  { light: "#e58a2e", dark: "#b0610a" },
];

/** Named values: the first get hues of their own, the others share grey. */
export function nominal(
  id: string,
  label: string,
  names: string[],
  nameOf: (node: number) => number,
  others: string,
): Mapping {
  const shown = Math.min(names.length, hues.length);
  const key = names.slice(0, shown).map((name, index) => ({ paint: hues[index], label: name }));
  if (names.length > shown) key.push({ paint: grey, label: others });
  return {
    id,
    label,
    key,
    classOf: (node) => Math.min(nameOf(node), key.length - 1),
    describe: (node) => names[nameOf(node)],
  };
}

/** Numbers in steps by factors of four below the largest. */
export function graded(
  id: string,
  label: string,
  size: number,
  valueOf: (node: number) => number,
  text: (value: number) => string,
): Mapping {
  let largest = 0;
  for (let node = 0; node < size; node++) largest = Math.max(largest, valueOf(node));
  const steps = sequence.length;
  const bound = (step: number) => largest / 4 ** (steps - step);
  const key = sequence.map((paint, step) => ({
    paint,
    label: step === 0 ? `up to ${text(bound(1))}` : step === steps - 1 ? `above ${text(bound(step))}` : `to ${text(bound(step + 1))}`,
  }));
  return {
    id,
    label,
    key,
    classOf: (node) => {
      const value = valueOf(node);
      let step = 0;
      while (step < steps - 1 && value > bound(step + 1)) step++;
      return step;
    },
    describe: (node) => text(valueOf(node)),
  };
}

/** Shares, in steps: of `one` a value is all. */
export function shares(id: string, label: string, one: number, valueOf: (node: number) => number, text: (value: number) => string): Mapping {
  const bounds = [0.01, 0.05, 0.2, 0.5, 0.8];
  const key = sequence.map((paint, step) => ({
    paint,
    label: step === bounds.length ? `above ${text(bounds[step - 1] * one)}` : `${step === 0 ? "up to" : "to"} ${text(bounds[step] * one)}`,
  }));
  return {
    id,
    label,
    key,
    classOf: (node) => bounds.filter((bound) => valueOf(node) > bound * one).length,
    describe: (node) => text(valueOf(node)),
  };
}

/** What a query finds, and the rest. */
export function found(query: string, isFound: Uint8Array): Mapping {
  return {
    id: "query",
    label: "Query",
    key: [
      { paint: neutral, label: "others" },
      { paint: hues[1], label: query === "" ? "what a query finds: write one under Find node" : query },
    ],
    classOf: (node) => isFound[node],
    describe: (node) => (isFound[node] === 1 ? "found" : "not found"),
    sign: (node) => (isFound[node] === 1 ? "● " : ""),
  };
}

/** Black or white, whichever is told better from a colour. */
export function inkOn(red: number, green: number, blue: number): string {
  const linear = (value: number) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = 0.2126 * linear(red / 255) + 0.7152 * linear(green / 255) + 0.0722 * linear(blue / 255);
  return luminance > 0.179 ? "#000000" : "#ffffff";
}
