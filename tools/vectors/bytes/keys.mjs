// Key order inside a value: by UTF-16 code units, which is how JavaScript compares strings.
import { message, meta, same, turns } from '../text.mjs';

const CLAUSE = 'canonical/key-order';
const object = (keys) => `{${keys.map((key, n) => `${JSON.stringify(key)}:${n}`).join(',')}}`;
const ordered = (keys) => `{${keys.map((key, n) => [key, n]).sort(([a], [b]) => (a < b ? -1 : Number(a > b))).map(([key, n]) => `${JSON.stringify(key)}:${n}`).join(',')}}`;
const data = (name, keys) => turns(name, CLAUSE, message({ data: object(keys) }), message({ data: ordered(keys) }));

const SETS = [
  ['letters', ['b', 'a', 'c']],
  ['case-before-letter', ['a', 'B', 'A', 'b']],
  ['prefix-first', ['ab', 'a', 'abc', '']],
  ['empty-key-first', ['a', '']],
  ['digits-as-text', ['10', '2', '1', '9', '01']],
  ['integer-like-and-letters', ['b', '10', 'a', '2', '-1']],
  ['array-index-limit', ['4294967295', '4294967294', '4294967296', 'x']],
  ['punctuation', ['~', '{', '_', '[', '!', ' ', '"', '\\', '/', ':', ',']],
  ['controls', ['\n', '\t', '\r', '\b', '\f', '\u0000', '\u001f', ' ']],
  ['del-and-latin', ['\u0080', '\u007f', '~', 'é', '\u00ff']],
  ['accents-are-not-letters', ['z', 'é', 'e', 'f', 'É']],
  ['composed-and-decomposed', ['é', 'e\u0301', 'f']],
  ['ue000-after-astral', ['\ue000', '\u{10000}']],
  ['uffff-after-astral', ['\uffff', '\u{10ffff}', '\ud7ff']],
  ['fullwidth-after-emoji', ['ａ', '😀', 'z']],
  ['bom-after-emoji', ['\ufeff', '😀']],
  ['presentation-form-after-clef', ['ﬁ', '𝄞', 'fi']],
  ['astral-among-themselves', ['\u{10ffff}', '\u{10000}', '\u{1f600}']],
  ['shared-high-surrogate', ['\u{1f601}', '\u{1f600}', '\u{1f602}']],
  ['astral-after-a-common-prefix', ['a\uffff', 'a\u{1f600}', 'a']],
  ['private-use-in-the-middle', ['x\ue000y', 'x\u{10000}y', 'xy']],
  ['line-separators', ['\u2029', '\u2028', '\u2027']],
  ['scripts', ['東', 'я', 'β', 'א', 'a', '☕', '한']],
  ['hundred-numbers', Array.from({ length: 100 }, (_, n) => String((n * 37) % 100))],
  ['dunder-and-constructor', ['constructor', '__proto__', 'toString', 'hasOwnProperty']],
  ['words-of-json', ['true', 'null', 'false']],
  ['long-common-prefix', [`${'k'.repeat(400)}b`, `${'k'.repeat(400)}a`]],
];

export default {
  description: 'Key order. Inside data and every extension, members are sorted by the UTF-16 code units of their names.',
  vectors: [
    ...SETS.map(([name, keys]) => data(name, keys)),
    ...SETS.map(([name, keys]) => turns(`extension-${name}`, CLAUSE, message({ more: `"x":${object(keys)}` }), message({ more: `"x":${ordered(keys)}` }))),
    turns('at-every-level', CLAUSE, message({ data: '{"b":{"d":[{"f":1,"e":2}],"c":0},"a":{}}' }), message({ data: '{"a":{},"b":{"c":0,"d":[{"e":2,"f":1}]}}' })),
    same('arrays-keep-their-order', CLAUSE, message({ data: '{"v":[3,1,2,"b","a",{"k":1},{"j":2}]}' })),
    turns('inside-a-top-level-extension', CLAUSE, message({ more: '"x":{"b":1,"a":2}' }), message({ more: '"x":{"a":2,"b":1}' })),
    turns('inside-a-meta-extension', CLAUSE, message({ meta: meta({}, '"ext":{"b":{"😀":1,"ﬁ":2},"a":1}') }), message({ meta: meta({}, '"ext":{"a":1,"b":{"😀":1,"ﬁ":2}}') })),
    turns('inside-a-dead-letter-extension', CLAUSE, message({ block: '{"reason":"failed","host":{"b":1,"a":2}}' }), message({ block: '{"reason":"failed","host":{"a":2,"b":1}}' })),
    turns('contract-names-inside-data-are-plain-keys', CLAUSE, message({ data: '{"job":1,"attempts":2,"meta":{"queue":1,"id":2}}' }), message({ data: '{"attempts":2,"job":1,"meta":{"id":2,"queue":1}}' })),
    turns('meta-inside-an-extension-is-a-plain-object', CLAUSE, message({ more: '"x":{"meta":{"queue":1,"lang":2,"id":3}}' }), message({ more: '"x":{"meta":{"id":3,"lang":2,"queue":1}}' })),
    turns('escaped-keys-sort-by-their-value', CLAUSE, message({ data: '{"\\u0062":1,"a":2}' }), message({ data: '{"a":2,"b":1}' })),
    turns('large-payload', CLAUSE,
      message({ data: object(Array.from({ length: 60 }, (_, n) => `key-${(n * 17) % 60}`)) }), message({ data: ordered(Array.from({ length: 60 }, (_, n) => `key-${(n * 17) % 60}`)) })),
  ],
};
