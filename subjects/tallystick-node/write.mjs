// Writing: the canonical bytes. Fixed member order of the envelope, meta and dead_letter, then
// RFC 8785 (UTF-16 key order, ECMAScript numbers, minimal escapes); integers exact at any size.
import { Num } from './read.mjs';

const META_ORDER = ['id', 'queue', 'lang', 'schema_version', 'created_at'];
const DEAD_LETTER_ORDER = [
  'reason', 'error', 'exception', 'failed_at', 'original_queue', 'attempts', 'lang',
];
export const ENVELOPE_ORDER = ['job', 'trace_id', 'data', 'meta', 'attempts', 'dead_letter'];
const INSIDE = { meta: META_ORDER, dead_letter: DEAD_LETTER_ORDER };

export const canonicalEnvelope = (envelope) => writeObject(envelope, ENVELOPE_ORDER, INSIDE);
export const canonicalDeadLetter = (block) => writeObject(block, DEAD_LETTER_ORDER);

// Strings compare by UTF-16 code units, and JSON.stringify escapes as RFC 8785 asks.
export function canonicalValue(value) {
  if (value instanceof Num) return value.text;
  if (value instanceof Map) return writeObject(value, []);
  if (Array.isArray(value)) return `[${value.map(canonicalValue).join(',')}]`;
  return JSON.stringify(value);
}

// Tells whether a value holds a number with a fraction or exponent beyond any double.
export function overflows(value) {
  if (value instanceof Num) return !value.finite && !value.integer;
  return (value instanceof Map || Array.isArray(value)) && [...value.values()].some(overflows);
}

function writeObject(map, first, inside = {}) {
  const others = [...map.keys()].filter((key) => !first.includes(key)).sort(byCodeUnits);
  const members = [...first.filter((key) => map.has(key)), ...others].map((key) => {
    const value = map.get(key);
    const order = value instanceof Map && first.includes(key) ? inside[key] : undefined;
    return `${JSON.stringify(key)}:${order ? writeObject(value, order) : canonicalValue(value)}`;
  });
  return `{${members.join(',')}}`;
}

const byCodeUnits = (a, b) => (a < b ? -1 : Number(a > b));
