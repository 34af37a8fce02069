// The building blocks of every vector and case: a message as text, and the kinds of entry.
//
// Expectations are never computed by Tallystick. A byte is expected because JavaScript says so
// (`String(number)` is ECMAScript's Number::toString, `sort()` compares UTF-16 code units,
// `JSON.stringify` escapes minimally), because BigInt says so, or because it is written here by hand.

export const URN = 'urn:babel:ledger:entry.posted';
export const TRACE = '0b6f1c1e-6d0a-4c52-9f0d-2f4d7a5e9c11';
export const ID = '3d9a7c54-1b2e-4f60-8a71-5c6d7e8f9012';
export const CREATED = 1767225600000;
export const META = `{"id":"${ID}","queue":"ledger","lang":"go","schema_version":1,"created_at":${CREATED}}`;

// A literal that JSON.stringify cannot write, such as 1.0.
export class Literal {
  constructor(text) {
    this.text = text;
  }
}

// A message in canonical order, each part given as JSON text; `null` leaves the member out.
export function message(parts = {}) {
  const { job = JSON.stringify(URN), trace = JSON.stringify(TRACE), data = '{}', meta = META, attempts = '0', block = null, more = '' } = parts;
  const members = { job, trace_id: trace, data, meta, attempts, dead_letter: block };
  const text = Object.entries(members).filter(([, value]) => value !== null).map(([name, value]) => `"${name}":${value}`);
  return `{${[...text, ...(more ? [more] : [])].join(',')}}`;
}

// `meta` in canonical order with members changed, left out (null) or added at the end.
export function meta(changes = {}, more = '') {
  const members = { id: JSON.stringify(ID), queue: '"ledger"', lang: '"go"', schema_version: '1', created_at: String(CREATED), ...changes };
  const text = Object.entries(members).filter(([, value]) => value !== null).map(([name, value]) => `"${name}":${value}`);
  return `{${[...text, ...(more ? [more] : [])].join(',')}}`;
}

export const DEAD_LETTER = '{"reason":"failed","error":"timeout","exception":null,"failed_at":1767225605000,"original_queue":"ledger","attempts":3,"lang":"go"}';

const held = (input) => (typeof input === 'string' ? { input } : { input_base64: input.toString('base64') });

// Three kinds of byte vector: it comes back as it is, it changes, or it is rejected.
export const same = (name, clause, input) => ({ name, clause, input, expect: input });
export const turns = (name, clause, input, expect) => ({ name, clause, ...held(input), expect });
// A body that decodes, but that no consumer accepts, has no canonical bytes (docs/reference/protocol.md).
export const unaccepted = (name, clause, input) => rejected(name, clause, input, 'not_accepted');
export const rejected = (name, clause, input, code, pointer) => ({
  name, clause, ...held(input), rejected: pointer === undefined ? { code } : { code, pointer },
});

// JSON with one case per line, so that a difference is a line.
export function pretty(value, depth = 0, open = 3) {
  const pad = ' '.repeat(depth + 1);
  const wide = value !== null && typeof value === 'object' && !(value instanceof Literal);
  if (!wide || depth >= open || Object.keys(value).length === 0 || !holdsObjects(value)) return compact(value);
  const [start, end] = Array.isArray(value) ? '[]' : '{}';
  const inner = Array.isArray(value)
    ? value.map((item) => pad + pretty(item, depth + 1, Array.isArray(value) ? depth + 1 : open))
    : Object.entries(value).map(([name, item]) => `${pad}${JSON.stringify(name)}: ${pretty(item, depth + 1, open)}`);
  return `${start}\n${inner.join(',\n')}\n${' '.repeat(depth)}${end}`;
}

const holdsObjects = (value) => Object.values(value).some((item) => item !== null && typeof item === 'object') || typeof Object.values(value)[0] === 'string';

function compact(value) {
  if (value instanceof Literal) return value.text;
  if (Array.isArray(value)) return `[${value.map(compact).join(', ')}]`;
  if (value !== null && typeof value === 'object') {
    return `{${Object.entries(value).filter(([, item]) => item !== undefined).map(([name, item]) => `${JSON.stringify(name)}: ${compact(item)}`).join(', ')}}`;
  }
  return JSON.stringify(value);
}
