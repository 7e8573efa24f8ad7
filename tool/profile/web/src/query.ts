// Queries for nodes by their attributes: `self > 1ms && calls < 10 && method ~ parse`.
//
//     query   = all { ("||" | "or") all }
//     all     = one { ("&&" | "and") one }
//     one     = ("!" | "not") one | "(" query ")" | name operator value
//     operator = "<" | "<=" | ">" | ">=" | "=" | "==" | "!=" | "~" | "!~"
//
// `~` finds a part of a text, without regard to case; `*` in it stands for anything. A value with spaces is quoted.

/** What a node has under a name: a number (times in ns, shares 0 to 1), or a text. */
export type Attributes = Record<string, (node: number) => number | string>;

export type Predicate = (node: number) => boolean;

/** A mistake, and the column where it is, from 1. */
export class QueryError extends Error {
  constructor(
    readonly column: number,
    what: string,
  ) {
    super(`column ${column}: ${what}`);
  }
}

interface Token {
  text: string;
  column: number;
  isQuoted: boolean;
  isOperator: boolean;
}

const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*"|'[^']*')|(&&|\|\||<=|>=|==|!=|!~|[<>=~!()])|([^\s&|<>=!~()"']+(?:\([^\s&|<>=!~()]*\)[^\s&|<>=!~()"']*)*))/y;
const UNITS: Record<string, number> = { "": 1, ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9, "%": 0.01, k: 1e3, m: 1e6 };

function tokens(text: string): Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  while (text.slice(TOKEN.lastIndex).trim() !== "") {
    const start = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) {
      const blank = /^\s*/.exec(text.slice(start))![0].length;
      throw new QueryError(start + blank + 1, `\`${text[start + blank]}\` means nothing here`);
    }
    const [whole, quoted, operator, word] = match;
    const shown = quoted ?? operator ?? word;
    const column = start + whole.length - shown.length + 1;
    const unquoted = quoted?.slice(1, -1).replace(/\\(.)/g, "$1");
    found.push({ text: unquoted ?? shown, column, isQuoted: quoted !== undefined, isOperator: operator !== undefined });
  }
  return found;
}

/** Whether a text contains another, or matches its wildcards. */
export function contains(pattern: string): (text: string) => boolean {
  const wanted = pattern.toLowerCase().replaceAll("::", ".");
  if (!wanted.includes("*")) return (text) => text.toLowerCase().includes(wanted);
  const escaped = wanted.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  const expression = new RegExp(escaped.join(".*"), "i");
  return (text) => expression.test(text);
}

export function parse(text: string, attributes: Attributes): Predicate {
  const input = tokens(text);
  let at = 0;
  const end = text.trimEnd().length + 1;
  const column = () => input[at]?.column ?? end;
  const take = (...texts: string[]): boolean => {
    const isNext = at < input.length && !input[at].isQuoted && texts.includes(input[at].text);
    if (isNext) at++;
    return isNext;
  };
  const any = (): Predicate => {
    let left = all();
    while (take("||", "or")) {
      const [one, other] = [left, all()];
      left = (node) => one(node) || other(node);
    }
    return left;
  };
  const all = (): Predicate => {
    let left = one();
    while (take("&&", "and")) {
      const [first, second] = [left, one()];
      left = (node) => first(node) && second(node);
    }
    return left;
  };
  const one = (): Predicate => {
    if (take("!", "not")) {
      const negated = one();
      return (node) => !negated(node);
    }
    if (take("(")) {
      const inner = any();
      if (!take(")")) throw new QueryError(column(), "a `)` is missing");
      return inner;
    }
    return comparison();
  };
  const comparison = (): Predicate => {
    const names = Object.keys(attributes).join(", ");
    const name = input[at];
    if (name === undefined) throw new QueryError(end, `say what to compare: ${names}`);
    const get = Object.hasOwn(attributes, name.text) ? attributes[name.text] : undefined;
    if (get === undefined) throw new QueryError(name.column, `there is no \`${name.text}\`; there is ${names}`);
    at++;
    const operator = input[at];
    if (!operator?.isOperator || !/^(<=?|>=?|==?|!=|!?~)$/.test(operator.text)) {
      throw new QueryError(column(), "write <, <=, >, >=, =, != or ~ here");
    }
    at++;
    const value = input[at];
    if (value === undefined || value.isOperator) throw new QueryError(column(), `say what \`${name.text}\` is compared with`);
    at++;
    if (operator.text.endsWith("~")) {
      const matches = contains(value.text);
      const wanted = operator.text === "~";
      return (node) => matches(String(get(node))) === wanted;
    }
    const number = /^([-+]?\d*\.?\d+)([a-zµμ%]*)$/i.exec(value.text);
    const unit = number === null ? undefined : UNITS[number[2].toLowerCase()];
    if (number !== null && unit === undefined) {
      throw new QueryError(value.column, `\`${number[2]}\` is no unit; there is ns, us, ms, s, %, k and m`);
    }
    const wanted = number === null || value.isQuoted ? value.text : Number(number[1]) * unit!;
    if (typeof wanted === "string" && /[<>]/.test(operator.text)) {
      throw new QueryError(value.column, `\`${value.text}\` is no number; write one such as 10, 1.5ms or 5%`);
    }
    const same = (have: number | string) => (typeof have === "string" ? have === value.text : have === wanted);
    switch (operator.text) {
      case "<":
        return (node) => get(node) < wanted;
      case "<=":
        return (node) => get(node) <= wanted;
      case ">":
        return (node) => get(node) > wanted;
      case ">=":
        return (node) => get(node) >= wanted;
      case "!=":
        return (node) => !same(get(node));
      default:
        return (node) => same(get(node));
    }
  };
  const predicate = any();
  if (at < input.length) throw new QueryError(column(), "write && or || before this");
  return predicate;
}
