// Records that are spliced, never written anew: retry, dead letter, redrive, and the poison record.
import { DEAD_LETTER, message, meta, TRACE, URN } from '../text.mjs';

const held = (body) => (typeof body === 'string' ? { body } : { body_base64: body.toString('base64') });
const bytes = (...pieces) => Buffer.concat(pieces.map((piece) => Buffer.from(piece)));

// A body with «old» marks what changes; the expectation is the same text with the new value.
const marked = (text, value) => text.replace(/«[^»]*»/, value);
const plain = (text) => text.replace(/[«»]/g, '');
const splice = (name, text, attempts = 1, clause = 'retry/splice') => ({ name, clause, body: plain(text), attempts, expect: marked(text, String(attempts)) });
const odd = `{ "job" : "${URN}",\n\t"trace_id":"${TRACE}", "data":{"b":1.50,"a":1E2,"n":12345678901234567890,"s":"caf\\u00e9 \\/ \\ud83d\\ude00"},`;

export const retry_bytes = {
  description: 'A retry changes the digits of `attempts` and no other byte. Where there is no such member, one is added at the end.',
  operation: 'retry',
  cases: [
    splice('last-member', message({ attempts: '«0»' })), splice('from-two-to-three', message({ attempts: '«2»' }), 3), splice('longer', message({ attempts: '«9»' }), 10), splice('shorter', message({ attempts: '«100»' }), 1), splice('negative', message({ attempts: '«-3»' }), 1), splice('to-a-large-count', message({ attempts: '«0»' }), 2147483647),
    splice('first-member', `{"attempts":«0»,"job":"${URN}","data":{}}`), splice('middle-member', `{"job":"${URN}","attempts":«0»,"data":{}}`), splice('only-with-job', `{"job":"x","attempts":«0»}`),
    splice('before-the-dead-letter', message({ attempts: '«3»', block: DEAD_LETTER }), 4), splice('spaces-around', `{"job":"x", "attempts" : «0» }`), splice('newlines-around', `{\n  "job": "x",\n  "attempts":\n    «0»\n}\n`), splice('space-before-and-after-the-object', ` \n{"job":"x","attempts":«0»}\t\r\n`),
    splice('odd-formatting', `${odd}"attempts":«0»}`), splice('keeps-float-forms', `{"job":"x","data":{"a":1.0,"b":1.50,"c":1E2,"d":-0.0,"e":1e21},"attempts":«0»}`), splice('keeps-big-integers', `{"job":"x","data":{"n":9007199254740993},"attempts":«0»,"big":100000000000000000000000}`), splice('keeps-escapes', `{"job":"x","data":{"s":"\\u0041\\/\\u2028\\ud83d\\ude00"},"attempts":«0»}`),
    splice('keeps-raw-separators', `{"job":"x","data":{"s":"\u2028\u2029\u007f"},"attempts":«0»}`), splice('keeps-key-order', `{"data":{"z":1,"a":2,"10":3,"2":4},"attempts":«0»,"job":"x"}`), splice('keeps-duplicate-data-keys', `{"job":"x","data":{"a":1,"a":2},"attempts":«0»}`), splice('keeps-forbidden-members', `{"job":"x","timestamp":1,"meta":{"ts":2,"attempts":5},"attempts":«0»}`), splice('keeps-the-alias', `{"urn":"urn:x","attempts":«0»}`),
    splice('keeps-unknown-members', message({ attempts: '«0»', more: '"x":{"b":1,"a":[ 2 ]}' })), splice('keeps-both-identities', `{"job":5,"urn":"urn:x","attempts":«0»}`), splice('keeps-an-infinite-extension', `{"job":"x","x":1e400,"attempts":«0»}`),
    splice('last-duplicate', `{"attempts":7,"job":"x","attempts":«8»}`, 9), splice('last-of-three', `{"attempts":1,"attempts":2,"job":"x","attempts":«3»}`, 4), splice('not-in-data', `{"job":"x","data":{"attempts":7},"attempts":«0»}`), splice('not-in-data-behind', `{"job":"x","attempts":«0»,"data":{"attempts":7}}`), splice('not-in-the-dead-letter', message({ attempts: '«3»', block: '{"attempts":3}' }), 4), splice('not-in-meta', message({ attempts: '«1»', meta: meta({}, '"attempts":9') }), 2),
    splice('not-in-an-extension-behind', `{"job":"x","attempts":«0»,"x":{"attempts":7}}`), splice('not-wrong-case', `{"job":"x","attempts":«0»,"Attempts":7,"ATTEMPTS":8}`), splice('not-in-a-string', `{"job":"x","attempts":«0»,"s":"\\"attempts\\":5}"}`), splice('escaped-name', `{"job":"x","\\u0061ttempts":«0»}`), splice('null-is-replaced', `{"job":"x","attempts":«null»}`), splice('minus-zero-is-replaced', `{"job":"x","attempts":«-0»}`, 1), splice('int64-is-replaced', `{"job":"x","attempts":«9223372036854775807»}`, 1),
    splice('after-a-long-payload', message({ data: `{"v":"${'x'.repeat(5000)}"}`, attempts: '«0»' })), splice('unicode-before', `{"job":"x","data":{"é😀":"東京"},"attempts":«0»}`), splice('braces-in-strings', `{"job":"}{","data":{"s":"}}"},"attempts":«0»}`),
    { name: 'absent-is-added', clause: 'retry/splice', body: '{"job":"x","data":{}}', attempts: 1, expect: '{"job":"x","data":{},"attempts":1}' },
    { name: 'absent-with-nested-attempts', clause: 'retry/splice', body: '{"job":"x","meta":{"attempts":4}}', attempts: 1, expect: '{"job":"x","meta":{"attempts":4},"attempts":1}' },
    { name: 'wrong-case-is-absent', clause: 'retry/splice', body: '{"job":"x","Attempts":4}', attempts: 1, expect: '{"job":"x","Attempts":4,"attempts":1}' },
    ...[['poison', '{"job":"x",'], ['no-identity', '{"attempts":0}'], ['wrong-type', '{"job":"x","attempts":"0"}'], ['trailing-data', '{"job":"x","attempts":0}x']].map(([name, body]) => ({ name: `${name}-is-rejected`, clause: 'retry/splice', body, attempts: 1, expect: 'reject' })),
  ],
};

const about = { reason: 'failed', error: 'boom', exception: 'TimeoutError', failed_at: 1767225605000, original_queue: 'ledger', attempts: 3, lang: 'go' };
const blockText = (changes = {}) => JSON.stringify({ ...about, ...changes });
const letter = (name, body, expect, changes = {}, clause = 'dead-letter/block') => ({ name, clause, body, ...about, ...changes, expect });
const moved = (name, before, after, changes = {}) => letter(name, before, after.replace('§', `"dead_letter":${blockText(changes)}`), changes);

export const dead_letter_bytes = {
  description: 'A dead letter is the message with `attempts` at the counted number and the block at the end; every other byte stays.',
  operation: 'dead_letter',
  cases: [
    moved('plain', '{"job":"x","data":{},"attempts":2}', '{"job":"x","data":{},"attempts":3,§}'),
    moved('canonical', message({ attempts: '2' }), `${message({ attempts: '3' }).slice(0, -1)},§}`),
    moved('nulls-are-written', '{"job":"x","attempts":0}', '{"job":"x","attempts":1,§}', { error: null, exception: null, attempts: 1 }),
    moved('unknown-urn', '{"job":"x","attempts":0}', '{"job":"x","attempts":1,§}', { reason: 'unknown_urn', attempts: 1 }),
    moved('other-language', '{"job":"x","attempts":0}', '{"job":"x","attempts":1,§}', { lang: 'python', attempts: 1 }),
    moved('escaped-error', '{"job":"x","attempts":2}', '{"job":"x","attempts":3,§}', { error: 'line 1\nline "2"\t\u0001/é\u2028' }),
    moved('time-zero', '{"job":"x","attempts":2}', '{"job":"x","attempts":3,§}', { failed_at: 0 }),
    moved('attempts-added', '{"job":"x"}', '{"job":"x","attempts":3,§}'),
    moved('attempts-first', '{"attempts":2,"job":"x"}', '{"attempts":3,"job":"x",§}'),
    moved('extensions-before-the-block', '{"job":"x","attempts":2,"x":{"b":1,"a":2}}', '{"job":"x","attempts":3,"x":{"b":1,"a":2},§}'),
    moved('odd-formatting', `${odd}"attempts" : 2 }`, `${odd}"attempts" : 3 ,§}`),
    moved('space-around-the-object', ' \n{"job":"x","attempts":2}\n', '{"job":"x","attempts":3,§}'),
    moved('old-block-is-replaced', `{"job":"x","attempts":2,"dead_letter":${DEAD_LETTER}}`, '{"job":"x","attempts":3,§}'),
    moved('old-block-in-the-middle', '{"job":"x","dead_letter":{"reason":"failed"},"attempts":2}', '{"job":"x","attempts":3,§}'),
    moved('old-block-first', '{"dead_letter":null,"job":"x","attempts":2}', '{"job":"x","attempts":3,§}'),
    moved('two-old-blocks', '{"job":"x","dead_letter":null,"attempts":2,"dead_letter":{}}', '{"job":"x","attempts":3,§}'),
    moved('block-inside-data-stays', '{"job":"x","data":{"dead_letter":1},"attempts":2}', '{"job":"x","data":{"dead_letter":1},"attempts":3,§}'),
    moved('alias-stays', '{"urn":"x","attempts":2}', '{"urn":"x","attempts":3,§}'),
    moved('forbidden-stay', '{"job":"x","timestamp":1,"attempts":2}', '{"job":"x","timestamp":1,"attempts":3,§}'),
    moved('last-duplicate-counts', '{"attempts":9,"job":"x","attempts":2}', '{"attempts":9,"job":"x","attempts":3,§}'),
    moved('big-numbers-stay', '{"job":"x","data":{"a":1.0,"n":9007199254740993},"attempts":2}', '{"job":"x","data":{"a":1.0,"n":9007199254740993},"attempts":3,§}'),
    moved('non-ascii-queue', '{"job":"x","attempts":2}', '{"job":"x","attempts":3,§}', { original_queue: 'bücher/é' }),
    letter('poison-is-rejected', '{"job":"x"', 'reject'),
    letter('no-identity-is-rejected', '{"data":{}}', 'reject'),
  ],
};

const back = (name, body, expect) => ({ name, clause: 'dead-letter/redrive', body, expect });

export const redrive_bytes = {
  description: 'A redrive takes the block away and sets `attempts` to 0; every other byte stays.',
  operation: 'redrive',
  cases: [
    back('plain', message({ attempts: '3', block: DEAD_LETTER }), message()),
    back('block-first', `{"dead_letter":${DEAD_LETTER},"job":"x","attempts":3}`, '{"job":"x","attempts":0}'),
    back('block-in-the-middle', '{"job":"x","dead_letter":{"reason":"failed"},"attempts":3}', '{"job":"x","attempts":0}'),
    back('no-block', '{"job":"x","attempts":3}', '{"job":"x","attempts":0}'),
    back('no-attempts', '{"job":"x","dead_letter":{}}', '{"job":"x","attempts":0}'),
    back('null-block', '{"job":"x","attempts":3,"dead_letter":null}', '{"job":"x","attempts":0}'),
    back('two-blocks', '{"job":"x","dead_letter":{},"attempts":3,"dead_letter":{}}', '{"job":"x","attempts":0}'),
    back('two-blocks-first', '{"dead_letter":{},"dead_letter":{},"job":"x","attempts":3}', '{"job":"x","attempts":0}'),
    back('extensions-stay', '{"job":"x","attempts":3,"dead_letter":{},"x":1,"y":2}', '{"job":"x","attempts":0,"x":1,"y":2}'),
    back('spaces-stay', '{ "job" : "x" , "attempts" : 3 , "dead_letter" : { } }', '{ "job" : "x" , "attempts" : 0  }'),
    back('odd-formatting-stays', `${odd}"attempts":3,"dead_letter":{"attempts":3}}`, `${odd}"attempts":0}`),
    back('block-inside-data-stays', '{"job":"x","data":{"dead_letter":{},"attempts":5},"attempts":3}', '{"job":"x","data":{"dead_letter":{},"attempts":5},"attempts":0}'),
    back('wrong-case-stays', '{"job":"x","attempts":3,"Dead_Letter":{}}', '{"job":"x","attempts":0,"Dead_Letter":{}}'),
    back('last-duplicate-is-reset', '{"attempts":7,"job":"x","attempts":3}', '{"attempts":7,"job":"x","attempts":0}'),
    back('space-around-stays', '\n{"job":"x","attempts":3}\n', '\n{"job":"x","attempts":0}\n'),
    back('escaped-name', '{"job":"x","attempts":3,"\\u0064ead_letter":{}}', '{"job":"x","attempts":0}'),
    back('alias-stays', '{"urn":"x","attempts":3,"dead_letter":{}}', '{"urn":"x","attempts":0}'),
    back('poison-is-rejected', '{"job":', 'reject'),
    back('no-identity-is-rejected', '{"dead_letter":{}}', 'reject'),
  ],
};

const spliced = (name, body, record) => ({ name, clause: 'poison/splice', ...held(body), expect: { shape: 'splice', record } });
const text = (name, body) => ({ name, clause: 'poison/text', ...held(body), expect: { shape: 'wrapper', record: { raw: body } } });
const encoded = (name, body) => ({ name, clause: 'poison/base64', ...held(body), expect: { shape: 'wrapper', record: { raw: body.toString('base64'), raw_encoding: 'base64' } } });
const either = (name, body, literals, keys) => ({ name, clause: 'poison/splice', body, expect: { shape: 'splice_or_wrapper', record: { raw: body }, splice_literals: literals, splice_keys: keys } });
const deep = `${'['.repeat(600)}${']'.repeat(600)}`;

export const poison_dlq = {
  description: 'The dead-letter record of a body that is no message: the object with the block spliced in, else a wrapper with the text, else a wrapper with base64.',
  original_queue: 'orders',
  cases: [
    spliced('empty-object', '{}', {}), spliced('empty-object-with-spaces', ' { } \n', {}), spliced('one-member', '{"a":1}', { a: 1 }), spliced('wrong-type', '{"job":5,"attempts":"x"}', { job: 5, attempts: 'x' }), spliced('no-identity', '{"data":{},"meta":{"id":"i"}}', { data: {}, meta: { id: 'i' } }), spliced('good-message', '{"job":"urn:x","attempts":1}', { job: 'urn:x', attempts: 1 }),
    spliced('newlines-inside', '{\n "a" : [ ] ,\n "b" : { }\n}', { a: [], b: {} }), spliced('non-ascii', '{"é":"東京 😀"}', { é: '東京 😀' }), spliced('escapes', '{"a":"\\u00e9\\/\\ud83d\\ude00"}', { a: 'é/😀' }), spliced('separators', '{"a":"\u2028\u2029"}', { a: '\u2028\u2029' }), spliced('nested-dead-letter', '{"data":{"dead_letter":1}}', { data: { dead_letter: 1 } }), spliced('wrong-case-dead-letter', '{"Dead_Letter":1}', { Dead_Letter: 1 }),
    spliced('raw-member', '{"raw":"mine"}', { raw: 'mine' }), spliced('raw-encoding-member', '{"raw":"x","raw_encoding":"hex"}', { raw: 'x', raw_encoding: 'hex' }), spliced('empty-name', '{"":0}', { '': 0 }), spliced('brace-in-a-string', '{"a":"}"}', { a: '}' }), spliced('null-member', '{"job":null}', { job: null }), spliced('replacement-character', '{"a":"\ufffd"}', { a: '\ufffd' }), spliced('trailing-newline', '{"a":1}\r\n', { a: 1 }),
    text('empty', ''), text('spaces', '  \n'), text('plain-text', 'hello'), text('null', 'null'), text('true', 'true'), text('number', '3.14'), text('string', '"x"'), text('array', '[1,2]'), text('array-of-messages', '[{"job":"urn:x"}]'), text('two-objects', '{"a":1}{"b":2}'), text('trailing-comma', '{"a":1,}'), text('trailing-data', '{"a":1} x'), text('truncated', '{"a":'), text('byte-order-mark', '\ufeff{"a":1}'), text('nan', '{"a":NaN}'), text('infinity', '{"a":-Infinity}'), text('lone-surrogate', '{"a":"\\ud800"}'), text('lone-surrogate-in-a-name', '{"\\udfff":1}'),
    text('has-a-dead-letter', '{"a":1,"dead_letter":{"reason":"failed"}}'), text('has-a-null-dead-letter', '{"dead_letter":null}'), text('has-an-escaped-dead-letter', '{"\\u0064ead_letter":1}'), text('dead-letter-twice', '{"dead_letter":1,"dead_letter":2}'), text('single-quotes', "{'a':1}"), text('leading-zero', '{"a":01}'), text('raw-newline-in-a-string', '{"a":"x\ny"}'), text('controls', '\u0000\u0001\u001f'), text('quotes-and-backslashes', 'a "b" \\c'), text('separators-in-text', 'a\u2028b'), text('astral-text', 'not json 😀'), text('vertical-tab-before', '\u000b{"a":1}'), text('duplicate-of-dead-letter-and-more', '{"x":1,"dead_letter":1,"x":2}'),
    encoded('one-bad-byte', bytes([0xff])), encoded('bad-byte-in-a-string', bytes('{"a":"', [0xff], '"}')), encoded('latin-1', bytes('{"a":"caf', [0xe9], '"}')), encoded('truncated-sequence', bytes('{"a":"', [0xe2, 0x82], '"}')), encoded('overlong', bytes([0xc0, 0xaf])), encoded('surrogate-as-utf8', bytes([0xed, 0xa0, 0x80])), encoded('bad-byte-after-the-object', bytes('{"a":1}', [0x80])), encoded('utf-16', Buffer.from('{"a":1}\u00e9', 'utf16le')),
    encoded('needs-plus-and-slash', bytes([0xfb, 0xef, 0xff, 0xfe])), encoded('needs-one-pad', bytes([0xff, 0xfe])), encoded('needs-two-pads', bytes([0xfe])), encoded('needs-no-pad', bytes([0xff, 0xfe, 0xfd])), encoded('bom-and-bad-byte', bytes([0xef, 0xbb, 0xbf, 0xff])), encoded('all-bytes', Buffer.from(Array.from({ length: 256 }, (_, n) => n))),
    either('1e400', '{"a":1e400}', ['1e400'], ['a']), either('minus-1e400', '{"a":[-1e400]}', ['-1e400'], ['a']), either('1e-400', '{"a":1e-400}', ['1e-400'], ['a']), either('1e400-in-data', '{"data":{"v":1e400}}', ['1e400'], ['data']), either('big-integer', '{"a":123456789012345678901234567890}', ['123456789012345678901234567890'], ['a']), either('long-decimal', '{"a":0.1234567890123456789}', ['0.1234567890123456789'], ['a']), either('one-point-zero', '{"a":1.0,"b":1E2}', ['1.0', '1E2'], ['a', 'b']), either('deep', `{"a":${deep}}`, [deep], ['a']), either('deep-objects', `{"a":${'{"k":'.repeat(600)}1${'}'.repeat(600)}}`, ['{"k":'.repeat(600)], ['a']),
    either('duplicates', '{"a":1,"a":2}', ['"a":1', '"a":2'], ['a']), either('duplicates-inside', '{"x":{"a":1,"a":2}}', ['"a":1,"a":2'], ['x']), either('2-53-plus-1', '{"a":9007199254740993}', ['9007199254740993'], ['a']),
  ],
};

