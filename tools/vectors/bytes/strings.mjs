// Strings: only the quote, the backslash and the C0 controls are escaped; nothing is normalized.
import { message, meta, rejected, same, turns } from '../text.mjs';

const data = (token) => message({ data: `{"v":${token}}` });
const hex = (code) => code.toString(16).padStart(4, '0');
const escapes = (text) => [...text].flatMap((char) => char.split('')).map((unit) => `\\u${hex(unit.charCodeAt(0))}`).join('');
const toMinimal = (name, token) => turns(name, 'canonical/strings-minimal', data(token), data(JSON.stringify(JSON.parse(token))));
const kept = (name, text) => same(name, 'canonical/strings-minimal', data(`"${text}"`));
const lone = (name, input, pointer, clause = 'canonical/surrogates') => rejected(name, clause, input, 'lone_surrogate', pointer);

const EVERY = escapes(String.fromCharCode(...Array.from({ length: 128 }, (_, code) => code)));

const RAW = [
  ['del', '\u007f'], ['u0080', '\u0080'], ['next-line', '\u0085'], ['no-break-space', '\u00a0'], ['soft-hyphen', '\u00ad'], ['e-acute', '\u00e9'],
  ['e-and-combining-acute', 'e\u0301'],
  ['u07ff', '\u07ff'],
  ['u0800', '\u0800'],
  ['zero-width-joiner', 'a\u200db'],
  ['right-to-left-override', '\u202eabc'],
  ['line-separator', '\u2028'], ['paragraph-separator', '\u2029'], ['ideographic-space', '\u3000'], ['ud7ff', '\ud7ff'], ['ue000', '\ue000'],
  ['byte-order-mark-inside', '\ufeff'], ['replacement-character', '\ufffd'], ['ufffe', '\ufffe'], ['uffff', '\uffff'], ['u10000', '\u{10000}'],
  ['g-clef', '\u{1d11e}'],
  ['emoji-with-joiners', '\u{1f469}\u200d\u{1f4bb}'],
  ['u10ffff', '\u{10ffff}'],
  ['html', '<a href=\'x\'>&amp;</a>'],
  ['slash', 'a/b//c'],
  ['mixed-scripts', 'Zürich — 東京 — القاهرة — ☕'], ['looks-like-an-escape', 'u0041 x0041 %41'],
];

const TOKENS = [
  ['escaped-slash', '"a\\/b"'],
  ['escaped-quote', '"say \\"hi\\""'],
  ['escaped-backslash', '"C:\\\\dir"'],
  ['backslash-then-u', '"\\\\u0041"'],
  ['quote-as-u0022', '"\\u0022"'],
  ['backslash-as-u005c', '"\\u005c"'],
  ['slash-as-u002f', '"\\u002F"'],
  ['letter-as-escape', '"\\u0041"'],
  ['e-acute-as-escape', '"\\u00e9"'],
  ['e-acute-as-upper-escape', '"\\u00E9"'],
  ['del-as-escape', '"\\u007f"'],
  ['next-line-as-escape', '"\\u0085"'],
  ['line-separator-as-escape', '"\\u2028"'],
  ['paragraph-separator-as-escape', '"\\u2029"'],
  ['ufeff-as-escape', '"\\ufeff"'],
  ['html-as-escapes', '"\\u003ca\\u0026b\\u003e"'],
  ['pair-as-escapes', '"\\ud83d\\ude00"'],
  ['pair-as-upper-escapes', '"\\uD834\\uDD1E"'],
  ['least-pair', '"\\ud800\\udc00"'],
  ['greatest-pair', '"\\udbff\\udfff"'],
  ['two-pairs', '"\\ud83d\\ude00\\ud83d\\ude01"'],
  ['pair-between-letters', '"a\\ud83d\\ude00b"'],
  ['raw-pair-then-escape', '"😀\\u0041"'],
  ['upper-hex-control', '"\\u001F"'],
  ['short-escapes', '"\\b\\f\\n\\r\\t"'],
  ['empty', '""'],
  ['backslash-before-a-pair', '"\\\\\\ud83d\\ude00"'],
  ['noncharacter-as-escape', '"\\uffff"'],
];

export default {
  description: 'Strings. The quote, the backslash and U+0000 to U+001F are escaped, in the shortest form and with lower-case hex; every other character is written as UTF-8.',
  vectors: [
    ...Array.from({ length: 32 }, (_, code) => toMinimal(`control-u${hex(code)}`, `"\\u${hex(code)}"`)),
    ...RAW.map(([name, text]) => kept(`raw-${name}`, text)),
    ...TOKENS.map(([name, token]) => toMinimal(name, token)),
    toMinimal('every-ascii-as-escapes', `"${EVERY}"`),
    ...RAW.map(([name, text]) => same(`extension-${name}`, 'canonical/strings-minimal', message({ more: `"x":["${text}",{"${text}":1}]` }))),
    ...TOKENS.map(([name, token]) => turns(`extension-${name}`, 'canonical/strings-minimal', message({ more: `"x":{"y":${token}}` }), message({ more: `"x":{"y":${JSON.stringify(JSON.parse(token))}}` }))),
    turns('extension-every-ascii-as-escapes', 'canonical/strings-minimal', message({ more: `"x":"${EVERY}"` }), message({ more: `"x":${JSON.stringify(JSON.parse(`"${EVERY}"`))}` })),
    turns('escapes-in-a-key', 'canonical/strings-minimal', message({ data: '{"\\u0061\\/\\u000a":1}' }), message({ data: '{"a/\\n":1}' })),
    turns('escapes-in-job', 'canonical/strings-minimal', message({ job: '"urn:\\u0062abel:x"' }), message({ job: '"urn:babel:x"' })),
    turns('escapes-in-trace-id', 'canonical/strings-minimal', message({ trace: '"t\\/1"' }), message({ trace: '"t/1"' })),
    turns('escapes-in-meta', 'canonical/strings-minimal', message({ meta: meta({ queue: '"caf\\u00e9"' }) }), message({ meta: meta({ queue: '"café"' }) })),
    turns('escaped-member-name', 'canonical/strings-minimal', message().replace('"attempts"', '"\\u0061ttempts"'), message()),
    turns('escaped-meta-member-name', 'canonical/strings-minimal', message().replace('"queue"', '"qu\\u0065ue"'), message()),
    same('not-normalized', 'canonical/strings-minimal', message({ data: '{"e\u0301":"\u00e9","\u00e9":"e\u0301"}' })),
    same('line-separator-in-a-key', 'canonical/strings-minimal', message({ data: '{"a\u2028b":1}' })),
    same('raw-control-free-long-text', 'canonical/strings-minimal', data(`"${'ß∂ƒ '.repeat(300)}"`)),
    lone('lone-high', data('"\\ud800"'), '/data/v'),
    lone('pair-with-text-between', data('"\\ud83dx\\ude00"'), '/data/v'),
    lone('pair-with-an-escape-between', data('"\\ud83d\\n\\ude00"'), '/data/v'),
    lone('lone-low', data('"\\udc00"'), '/data/v'),
    lone('lone-high-then-text', data('"\\ud83dx"'), '/data/v'),
    lone('lone-high-at-the-end', data('"x\\udbff"'), '/data/v'),
    lone('two-highs', data('"\\ud83d\\ud83d"'), '/data/v'),
    lone('high-high-low', data('"\\ud83d\\ud83d\\ude00"'), '/data/v'),
    lone('high-low-low', data('"\\ud83d\\ude00\\ude00"'), '/data/v'),
    lone('low-high', data('"\\ude00\\ud83d"'), '/data/v'),
    lone('high-then-letter-escape', data('"\\ud83d\\u0041"'), '/data/v'),
    lone('high-then-newline-escape', data('"\\ud83d\\n"'), '/data/v'), lone('lone-in-an-array', data('["ok","\\udfff"]'), '/data/v/1'),
    lone('lone-in-a-key', message({ data: '{"a":{"\\ud800":1}}' }), '/data/a'), lone('lone-in-job', message({ job: '"urn:x\\ud800"' }), '/job'),
    lone('lone-in-trace-id', message({ trace: '"\\udfff"' }), '/trace_id'),
    lone('lone-in-meta', message({ meta: meta({ queue: '"\\ud800"' }) }), '/meta/queue'),
    lone('lone-in-an-extension', message({ more: '"x":{"y":"\\ud800"}' }), '/x/y'),
    lone('lone-in-an-earlier-duplicate', message({ data: '{"v":"\\ud800","v":"ok"}' }), '/data/v'),
    ...[['newline', '\n'], ['tab', '\t'], ['nul', '\0'], ['unit-separator', '\u001f']].map(([name, char]) =>
      rejected(`raw-${name}`, 'envelope/one-object', data(`"a${char}b"`), 'not_json', '/data/v')),
    ...[['x-escape', '\\x41'], ['single-quote-escape', "\\'"], ['short-u-escape', '\\u12'], ['u-escape-not-hex', '\\u00g0'], ['unknown-escape', '\\a'], ['zero-escape', '\\0'], ['upper-u-escape', '\\U0041']].map(
      ([name, escape]) => rejected(name, 'envelope/one-object', data(`"${escape}"`), 'not_json', '/data/v')),
  ],
};
