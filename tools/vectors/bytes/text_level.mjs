// The text itself: white space, depth, grammar, encoding; and the type of every known member.
import { DEAD_LETTER, message, meta, rejected, same, turns } from '../text.mjs';

const SPACE = 'canonical/no-white-space';
const DEPTH = 'canonical/depth';
const ONE = 'envelope/one-object';
const spread = (text, space) => JSON.stringify(JSON.parse(text), null, space);
const bytes = (...pieces) => Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece))));
const sample = message({ data: '{"a":[1,{"b":" two  spaces "}],"c":{}}' });

export const whitespace = {
  description: 'White space. White space between tokens is not written; white space inside a string is kept.',
  vectors: [
    same('none', SPACE, sample),
    turns('two-space-indent', SPACE, spread(sample, 2), sample),
    turns('tab-indent', SPACE, spread(sample, '\t'), sample),
    turns('carriage-returns', SPACE, spread(sample, 1).replaceAll('\n', '\r\n'), sample),
    turns('after-colons-and-commas', SPACE, sample.replaceAll(':{', ' : {').replaceAll(',"', ' , "'), sample),
    turns('before-the-object', SPACE, ` \t\r\n${sample}`, sample),
    turns('after-the-object', SPACE, `${sample} \n`, sample),
    turns('inside-empty-containers', SPACE, message({ data: '{"a":[ \n ],"b":{ \t }}' }), message({ data: '{"a":[],"b":{}}' })),
    turns('every-kind-everywhere', SPACE, spread(sample, 1).replaceAll(/\n */g, ' \t\n\r '), sample),
    same('inside-strings-kept', SPACE, message({ data: '{" a ":"  \u00a0 "}' })),
    ...[['vertical-tab', '\v'], ['form-feed', '\f'], ['no-break-space', '\u00a0'], ['line-separator', '\u2028'], ['em-space', '\u2003'], ['next-line', '\u0085'], ['nul', '\0']].flatMap(([name, char]) => [
      rejected(`${name}-before-the-object`, ONE, `${char}${sample}`, 'not_json'),
      rejected(`${name}-between-tokens`, ONE, sample.replace('"data":', `"data":${char}`), 'not_json', '/data'),
    ]),
    rejected('form-feed-after-the-object', ONE, `${sample}\f`, 'trailing_data'),
    rejected('byte-order-mark', 'envelope/utf8', `\ufeff${sample}`, 'byte_order_mark'),
    rejected('byte-order-mark-after-the-object', ONE, `${sample}\ufeff`, 'trailing_data'),
  ],
};

const nest = (open, close, levels, inner = '') => open.repeat(levels) + inner + close.repeat(levels);
const list = (levels, inner) => `{"v":${nest('[', ']', levels, inner)}}`;
const object = (levels) => `{"v":${nest('{"k":', '}', levels, '1')}}`;

export const depth = {
  description: 'Depth. Objects and arrays nest at most 1000 levels deep, the message itself included; a deeper message is rejected.',
  vectors: [
    same('lists-1000', DEPTH, message({ data: list(998) })),
    rejected('lists-1001', DEPTH, message({ data: list(999) }), 'too_deep'),
    same('objects-1000', DEPTH, message({ data: object(998) })),
    rejected('objects-1001', DEPTH, message({ data: object(999) }), 'too_deep'),
    same('mixed-1000', DEPTH, message({ data: `{"v":${nest('[{"k":', '}]', 499, '0')}}` })),
    rejected('mixed-1001', DEPTH, message({ data: `{"v":${nest('[{"k":', '}]', 499, '[]')}}` }), 'too_deep'),
    same('extension-1000', DEPTH, message({ more: `"x":${nest('[', ']', 999)}` })),
    rejected('extension-1001', DEPTH, message({ more: `"x":${nest('[', ']', 1000)}` }), 'too_deep'),
    same('meta-extension-1000', DEPTH, message({ meta: meta({}, `"x":${nest('[', ']', 998)}`) })),
    rejected('meta-extension-1001', DEPTH, message({ meta: meta({}, `"x":${nest('[', ']', 999)}`) }), 'too_deep'),
    rejected('lists-5000', DEPTH, message({ data: list(5000) }), 'too_deep'),
    rejected('lists-5000-never-closed', DEPTH, `{"job":"urn:x","data":{"v":${'['.repeat(5000)}`, 'too_deep'),
    same('brackets-in-a-string', DEPTH, message({ data: `{"v":"${'[{'.repeat(1200)}"}` })),
    same('many-siblings', DEPTH, message({ data: `{"v":[${Array(1500).fill('[]').join(',')}]}` })),
    turns('1000-with-white-space', DEPTH, message({ data: `{"v":${nest('[ ', ' ]', 998)}}` }), message({ data: list(998) })),
  ],
};

const text = (name, body, code, pointer) => rejected(name, ONE, body, code, pointer);
const broken = (name, data, pointer = '/data/v', code = 'not_json') => text(name, message({ data: `{"v":${data}}` }), code, pointer);

export const grammar = {
  description: 'Grammar. A body is exactly one JSON object by RFC 8259, in UTF-8; any other body is rejected.',
  vectors: [
    text('empty', '', 'empty'),
    text('spaces', ' \n\t\r ', 'empty'),
    rejected('null', 'envelope/identity', 'null', 'no_identity', '/job'),
    text('true', 'true', 'not_an_object', ''),
    text('number', '1', 'not_an_object', ''),
    text('string', '"urn:x"', 'not_an_object', ''),
    text('array', `[${message()}]`, 'not_an_object', ''),
    text('empty-array', '[]', 'not_an_object', ''),
    rejected('empty-object', 'envelope/identity', '{}', 'no_identity', '/job'),
    text('plain-words', 'hello', 'not_json'),
    text('xml', '<job/>', 'not_json'),
    text('two-objects', `${message()}${message()}`, 'trailing_data'),
    text('two-lines', `${message()}\n${message()}`, 'trailing_data'),
    text('comma-after', `${message()},`, 'trailing_data'),
    text('brace-after', `${message()}}`, 'trailing_data'),
    text('nul-after', `${message()}\0`, 'trailing_data'),
    text('word-after', `${message()}x`, 'trailing_data'),
    broken('nan', 'NaN'),
    broken('infinity', 'Infinity'),
    broken('minus-infinity', '-Infinity'),
    broken('undefined', 'undefined'),
    broken('python-true', 'True'),
    broken('python-none', 'None'),
    broken('upper-null', 'NULL'),
    broken('long-word', 'trueish'),
    broken('leading-zero', '01'),
    broken('minus-leading-zero', '-01'),
    broken('plus', '+1'),
    broken('bare-minus', '-'),
    broken('point-first', '.5'),
    broken('point-last', '1.'),
    broken('exponent-without-digits', '1e'),
    broken('exponent-plus-only', '1e+'),
    broken('two-points', '1.2.3'),
    broken('hex', '0x10'), broken('underscore', '1_000', '/data/v'), broken('big-int-suffix', '1n', '/data/v'), broken('minus-space', '- 1'),
    broken('single-quotes', "'a'"),
    broken('comma-last-in-list', '[1,]', '/data/v/1'),
    broken('comma-first-in-list', '[,1]', '/data/v/0'),
    broken('two-commas', '[1,,2]', '/data/v/1'),
    broken('no-comma', '[1 2]', '/data/v/0'),
    broken('colon-in-list', '["a":1]', '/data/v/0'),
    broken('comma-last-in-object', '{"a":1,}', '/data/v'),
    broken('comma-first-in-object', '{,"a":1}', '/data/v'),
    broken('comma-for-colon', '{"a","b"}', '/data/v/a'),
    broken('two-values-for-colon', '{"a" 1 2}', '/data/v/a'),
    broken('no-colon', '{"a" 1}', '/data/v/a'),
    broken('no-value', '{"a":}', '/data/v/a'),
    broken('name-without-quotes', '{a:1}', '/data/v'),
    broken('number-as-name', '{1:2}', '/data/v'),
    broken('mismatched-close', '[}', '/data/v/0'),
    broken('comment', '1/* one */', '/data/v'),
    text('line-comment', `// a message\n${message()}`, 'not_json'),
    broken('empty-value', '', '/data/v'),
    text('truncated-in-a-string', message().slice(0, 20), 'not_json', '/job'),
    text('truncated-after-a-colon', '{"job":', 'truncated', '/job'),
    text('truncated-after-a-value', '{"job":"urn:x"', 'truncated', '/job'),
    text('truncated-after-a-comma', '{"job":"urn:x",', 'truncated', ''),
    text('truncated-at-the-brace', '{', 'truncated', ''),
    text('truncated-last-brace', message().slice(0, -1), 'truncated', '/attempts'),
    ...[
      ['utf8-truncated', [0xc3]],
      ['utf8-continuation-alone', [0x80]],
      ['utf8-overlong-slash', [0xc0, 0xaf]],
      ['utf8-overlong-three', [0xe0, 0x80, 0xaf]],
      ['utf8-surrogate', [0xed, 0xa0, 0x80]],
      ['utf8-beyond-unicode', [0xf4, 0x90, 0x80, 0x80]],
      ['utf8-f5', [0xf5, 0x80, 0x80, 0x80]],
      ['utf8-ff', [0xff]], ['latin-1', [0xe9]], ['utf8-truncated-astral', [0xf0, 0x9f, 0x98]],
    ].map(([name, inner]) => rejected(name, 'envelope/utf8', bytes('{"job":"urn:x","data":{"v":"', inner, '"}}'), 'not_utf8')),
    rejected('utf8-invalid-in-a-key', 'envelope/utf8', bytes('{"job":"urn:x","', [0xff], '":1}'), 'not_utf8'),
    rejected('utf8-invalid-after-the-object', 'envelope/utf8', bytes(message(), [0xff]), 'not_utf8'),
    rejected('utf16-little-endian', 'envelope/utf8', Buffer.from(`\ufeff${message()}`, 'utf16le'), 'not_utf8'),
    text('utf16-without-a-mark', Buffer.from(message(), 'utf16le'), 'not_json', ''),
  ],
};

const WRONG = {
  string: [['number', '5'], ['true', 'true'], ['object', '{}'], ['array', '[]']],
  object: [['array', '[]'], ['string', '"{}"'], ['number', '0'], ['false', 'false']],
  int64: [
    ['fraction', '1.0'],
    ['exponent', '1e0'],
    ['text', '"1"'],
    ['true', 'true'],
    ['object', '{}'],
    ['array', '[1]'],
    ['2-63', '9223372036854775808'],
    ['minus-2-63-minus-1', '-9223372036854775809'],
    ['10-400', `1${'0'.repeat(400)}`],
  ],
};
const TOP = { trace_id: ['trace', 'string'], data: ['data', 'object'], meta: ['meta', 'object'], attempts: ['attempts', 'int64'], dead_letter: ['block', 'object'] };
const INSIDE = {
  meta: { id: 'string', queue: 'string', lang: 'string', schema_version: 'int64', created_at: 'int64' },
  dead_letter: { reason: 'string', error: 'string', exception: 'string', failed_at: 'int64', original_queue: 'string', attempts: 'int64', lang: 'string' },
};
const dashed = (name) => name.replaceAll('_', '-');
const inside = (part, name, value) =>
  part === 'meta' ? message({ meta: meta({ [name]: value }) }) : message({ block: JSON.stringify({ ...JSON.parse(DEAD_LETTER), [name]: '\0' }).replace('"\\u0000"', value) });

export const types = {
  description: 'Types. Each known member has its type or is null, also if a later duplicate replaces it; a 64-bit integer has no fraction and no exponent.',
  vectors: [
    ...Object.entries(TOP).flatMap(([name, [part, kind]]) => WRONG[kind].map(([what, value]) => rejected(`${dashed(name)}-${what}`, 'envelope/typed-members', message({ [part]: value }), 'wrong_type', `/${name}`))),
    ...Object.entries(INSIDE).flatMap(([part, names]) => Object.entries(names).flatMap(([name, kind]) =>
      WRONG[kind].slice(0, kind === 'int64' ? 9 : 2).map(([what, value]) => rejected(`${dashed(part)}-${dashed(name)}-${what}`, 'envelope/typed-members', inside(part, name, value), 'wrong_type', `/${part}/${name}`)))),
    same('int64-least', 'envelope/typed-members', message({ attempts: '-9223372036854775808' })),
    same('int64-greatest', 'envelope/typed-members', message({ meta: meta({ created_at: '9223372036854775807' }) })),
    turns('int64-minus-zero', 'envelope/typed-members', message({ meta: meta({ created_at: '-0' }) }), message({ meta: meta({ created_at: '0' }) })),
    same('job-of-any-length', 'envelope/identity', message({ job: `"urn:${'x'.repeat(2000)}"` })),
    same('unknown-members-have-no-type', 'envelope/typed-members', message({ more: '"Attempts":"x","META":5' })),
  ],
};
