// Reading: exactly one strict RFC 8259 text in valid UTF-8, no lone surrogate escape, at most
// 1000 levels deep; the last duplicate wins; numbers keep their canonical text; the spans of the
// top-level members are kept for splicing.
//
// JSON.parse judges the grammar and reads each string. It would round big integers, lose the
// order and the duplicates of members, and hide their place, so a small walk of our own does those.

const MAX_DEPTH = 1000;
const SEPARATORS = ' \t\r\n,:';
const LITERALS = new Map([['true', true], ['false', false], ['null', null]]);

// A JSON number: its canonical text (the literal itself when no double can hold it).
export class Num {
  constructor(literal) {
    const double = Number(literal);
    this.integer = !/[.eE]/.test(literal);
    this.finite = Number.isFinite(double);
    if (literal === '-0') this.text = '0';
    else this.text = this.integer || !this.finite ? literal : String(double);
  }
}

const text = (value) => typeof value === 'string';
const object = (value) => value instanceof Map;
const integer = (value) => {
  if (!(value instanceof Num && value.integer && value.text.length <= 20)) return false;
  return BigInt.asIntN(64, BigInt(value.text)) === BigInt(value.text);
};

// What the contract asks of known members (facts 2.7), at every occurrence; null is always fine.
const DATA = { pointer: '/data', types: {} };
const META = {
  pointer: '/meta',
  types: { id: text, queue: text, lang: text, schema_version: integer, created_at: integer },
};
const DEAD_LETTER = {
  pointer: '/dead_letter',
  types: {
    reason: text, error: text, exception: text, original_queue: text, lang: text,
    failed_at: integer, attempts: integer,
  },
};
export const ENVELOPE = {
  pointer: '',
  types: { trace_id: text, attempts: integer, data: object, meta: object, dead_letter: object },
  inside: { data: DATA, meta: META, dead_letter: DEAD_LETTER },
};
export { DATA };

const own = (table, key) => (table && Object.hasOwn(table, key) ? table[key] : undefined);

export const utf8Text = (bytes) => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);

// Gives {value, members, problem, source}; throws when the text is not strict JSON.
// `level` is how many containers already surround the text.
export function read(source, shape = undefined, level = 0) {
  JSON.parse(source);
  const found = { source, members: [], problem: undefined };
  let at = 0;

  const skip = () => {
    while (at < source.length && SEPARATORS.includes(source[at])) at += 1;
    return at;
  };
  const complain = (reason, pointer) => {
    found.problem ??= { reason, pointer };
  };
  const string = () => {
    const start = at;
    do at = source.indexOf('"', at + 1);
    while (escaped(source, at));
    at += 1;
    const value = JSON.parse(source.slice(start, at));
    if (!value.isWellFormed()) throw new SyntaxError('a lone surrogate escape');
    return value;
  };
  const scalar = (inData) => {
    const start = at;
    while (at < source.length && !SEPARATORS.includes(source[at]) && !']}'.includes(source[at])) at += 1;
    const literal = source.slice(start, at);
    if (LITERALS.has(literal)) return LITERALS.get(literal);
    const number = new Num(literal);
    if (!number.finite && inData) complain('a number inside data is beyond the range of a double', '');
    return number;
  };
  const members = (want, depth) => {
    const map = new Map();
    while (source[skip()] !== '}') {
      const start = at;
      const key = string();
      const valueAt = skip();
      const value = walk(want === DATA ? DATA : own(want?.inside, key), depth);
      map.set(key, value);
      if (depth === 1) found.members.push({ key, start, value: valueAt, end: at });
      const isOf = own(want?.types, key);
      if (isOf && value !== null && !isOf(value)) complain(`must be ${isOf.name} or null`, `${want.pointer}/${key}`);
    }
    return map;
  };
  const walk = (want, depth) => {
    const opening = source[skip()];
    if (opening === '"') return string();
    if (opening !== '{' && opening !== '[') return scalar(want === DATA);
    if (depth === MAX_DEPTH) throw new SyntaxError('nested deeper than 1000 levels');
    at += 1;
    let value;
    if (opening === '{') value = members(want, depth + 1);
    else {
      value = [];
      while (source[skip()] !== ']') value.push(walk(want === DATA ? DATA : undefined, depth + 1));
    }
    at += 1;
    return value;
  };

  found.value = walk(shape, level);
  return found;
}

function escaped(source, quote) {
  let slashes = 0;
  while (source[quote - 1 - slashes] === '\\') slashes += 1;
  return slashes % 2 === 1;
}
