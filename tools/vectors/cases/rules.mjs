// The rules beside the message: idempotency, the payload subset, back-off, trace context.
import { ID, Literal, message, meta } from '../text.mjs';

const run = (meta_id, outcome = 'ok', more = {}) => ({ meta_id, expect_effect: 'run', outcome, ...more });
const skip = (meta_id, more = {}) => ({ meta_id, expect_effect: 'skip', ...more });
const sequence = (name, clause, deliveries) => ({ name, clause, deliveries, expected_effects: deliveries.filter((one) => one.expect_effect === 'run').length });
const delivered = (text, outcome = 'ok') => ({ body_text: text, outcome });
const withId = (id, trace) => message({ trace, meta: meta({ id }) });

export const idempotency = {
  description: 'Several deliveries of a message have one effect: its `meta.id` is remembered after success.',
  dedup_key: { clause: 'idempotency/key', envelope_file: 'fixtures/ledger-entry-posted.json', key_field: 'meta.id', expected_key: ID },
  sequences: {
    cases: [
      sequence('twice', 'idempotency/key', [run('A'), skip('A')]),
      sequence('thrice', 'idempotency/key', [run('A'), skip('A'), skip('A')]),
      sequence('two-ids', 'idempotency/key', [run('A'), run('B')]),
      sequence('interleaved', 'idempotency/key', [run('A'), run('B'), skip('A'), skip('B')]),
      sequence('throw-then-ok-then-again', 'idempotency/after-success', [run('A', 'throw'), run('A', 'ok'), skip('A')]),
      sequence('throws-forever', 'idempotency/after-success', [run('A', 'throw'), run('A', 'throw'), run('A', 'throw')]),
      sequence('throw-does-not-unmark-another', 'idempotency/after-success', [run('A'), run('B', 'throw'), skip('A'), run('B')]),
      sequence('empty-id-always-runs', 'idempotency/no-id', [run(''), run(''), run('')]),
      sequence('empty-id-beside-another', 'idempotency/no-id', [run('A'), run(''), skip('A'), run('')]),
      sequence('forgotten-runs-again', 'idempotency/forget', [run('A'), run('A', 'ok', { forget_before: true }), skip('A')]),
      sequence('forget-one-of-two', 'idempotency/forget', [run('A'), run('B'), run('A', 'ok', { forget_before: true }), skip('B')]),
      sequence('forget-unknown', 'idempotency/forget', [run('A', 'ok', { forget_before: true }), skip('A')]),
      sequence('case-matters', 'idempotency/key', [run('a'), run('A'), skip('a')]),
      sequence('spaces-matter', 'idempotency/key', [run('A'), run(' A'), run('A ')]),
      sequence('unicode-forms-matter', 'idempotency/key', [run('é'), run('e\u0301')]),
    ],
  },
  bodies: {
    operation: 'idempotency',
    cases: [
      [
        'same-trace-other-id',
        'idempotency/key',
        [delivered(withId('"one"', '"t"')), delivered(withId('"two"', '"t"'))],
        ['run', 'run'],
        ['one', 'two'],
      ],
      [
        'same-id-other-trace',
        'idempotency/key',
        [delivered(withId('"one"', '"t"')), delivered(withId('"one"', '"u"'))],
        ['run', 'skip'],
        ['one', 'one'],
      ],
      ['absent-id', 'idempotency/no-id', [delivered(withId(null)), delivered(withId(null))], ['run', 'run'], ['', '']],
      ['null-id', 'idempotency/no-id', [delivered(withId('null')), delivered(withId('null'))], ['run', 'run'], ['', '']],
      ['absent-meta', 'idempotency/no-id', [delivered(message({ meta: null })), delivered(message({ meta: null }))], ['run', 'run'], ['', '']],
      [
        'last-duplicate-id',
        'idempotency/key',
        [delivered(message({ meta: meta({}, '"id":"last"') })), delivered(withId('"last"'))],
        ['run', 'skip'],
        ['last', 'last'],
      ],
      [
        'retried-body',
        'idempotency/key',
        [delivered(message({ attempts: '0' }), 'throw'), delivered(message({ attempts: '1' })), delivered(message({ attempts: '2' }))],
        ['run', 'run', 'skip'],
        [ID, ID, ID],
      ],
    ].map(([name, clause, deliveries, effects, keys]) => ({ name, clause, given: { deliveries }, expect: { members: { effects, keys } } })),
  },
};

const shop = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', required: ['sku', 'qty'], properties: { sku: { type: 'string', minLength: 2 }, qty: { type: 'integer', minimum: 1 }, price: { type: 'number', minimum: 0 }, unit: { enum: ['piece', 'kg', 5, null] }, kind: { const: 'line' }, gift: { type: 'boolean' }, tags: { type: 'array', items: { type: 'string' } }, note: { type: 'null' }, box: { type: 'object', required: ['w'], properties: { w: { type: 'number' } } } }, additionalProperties: false };
const line = (more) => ({ sku: 'ab', qty: 1, ...more });
const fits = (name, data) => ({ name, clause: 'payload/subset', valid: true, data });
const fails = (name, data) => ({ name, clause: 'payload/subset', valid: false, data });

export const payload_schema = {
  description: 'The subset of draft-07 that every implementation checks on a payload.',
  schema: shop,
  cases: [
    fits('least', line()),
    fits('everything', line({ price: 0.5, unit: 'kg', kind: 'line', gift: true, tags: ['a', 'b'], note: null, box: { w: 1.5, h: 2 } })),
    fits('enum-number', line({ unit: 5 })),
    fits('enum-null', line({ unit: null })),
    fits('minimum-itself', line({ price: 0 })),
    fits('empty-array', line({ tags: [] })),
    fits('number-takes-an-integer', line({ price: 3 })),
    fits('large-integer', line({ qty: new Literal('9007199254740993') })),
    fails('required-missing', { sku: 'ab' }),
    fails('empty-object', {}),
    fails('additional', line({ color: 'red' })),
    fails('wrong-case-name', { SKU: 'ab', qty: 1 }),
    fails('text-for-integer', line({ qty: '1' })),
    fails('true-for-integer', line({ qty: true })),
    fails('fraction-for-integer', line({ qty: 1.5 })),
    fails('below-minimum', line({ qty: 0 })),
    fails('negative-price', line({ price: -0.01 })),
    fails('short-text', { sku: 'a', qty: 1 }),
    fails('number-for-text', { sku: 12, qty: 1 }),
    fails('not-in-enum', line({ unit: 'lb' })),
    fails('enum-number-as-text', line({ unit: '5' })),
    fails('wrong-const', line({ kind: 'Line' })),
    fails('one-for-boolean', line({ gift: 1 })),
    fails('text-for-boolean', line({ gift: 'true' })),
    fails('object-for-array', line({ tags: {} })),
    fails('item-of-wrong-type', line({ tags: ['a', 1] })),
    fails('zero-for-null', line({ note: 0 })),
    fails('nested-required', line({ box: {} })),
    fails('nested-wrong-type', line({ box: { w: '1' } })),
    fails('array-for-object', line({ box: [] })),
    fails('true-for-number', line({ price: true })),
    fails('null-for-text', { sku: null, qty: 1 }),
  ],
};

const min = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', properties: { two: { type: 'string', minLength: 2 }, three: { type: 'string', minLength: 3 } }, additionalProperties: false };
const length = (name, data, valid) => ({ name, clause: 'payload/code-points', valid, data });

export const payload_schema_unicode = {
  description: 'A length counts code points: not bytes, not UTF-16 units, not what a reader sees as one character.',
  schema: min,
  cases: [
    length('ascii', { three: 'abc' }, true),
    length('two-letters-four-bytes', { three: 'éü' }, false),
    length('three-letters-six-bytes', { three: 'éüğ' }, true),
    length('one-astral-two-units', { two: '😀' }, false),
    length('two-astral', { two: '😀😀' }, true),
    length('two-astral-four-units', { three: '😀😀' }, false),
    length('letter-and-combining', { two: 'e\u0301' }, true),
    length('composed-letter', { two: 'é' }, false),
    length('family-of-seven', { three: '👩\u200d👩\u200d👧\u200d👦' }, true),
    length('flag-is-two', { two: '🇨🇭' }, true),
    length('flag-is-not-three', { three: '🇨🇭' }, false),
    length('spaces-count', { three: ' \t\n' }, true),
    length('empty', { two: '' }, false),
    length('zero-width-counts', { two: 'a\u200b' }, true),
  ],
};

const T = (type, more = {}) => ({ type, ...more });
const violation = (name, schema, data, found) => ({ name, clause: 'payload/violation', given: { schema_text: JSON.stringify(schema), data_text: data }, expect: { members: found ? { valid: false, violation: found } : { valid: true } } });
const inside = (schema) => T('object', { properties: { v: schema } });

export const payload_violation = {
  description: 'The first violation, as `<path>: <code>`; values of different JSON types are never equal, at any depth.',
  operation: 'validate_subset',
  cases: [
    violation('string', inside(T('string')), '{"v":1}', 'v: not_a_string'),
    violation('integer', inside(T('integer')), '{"v":1.5}', 'v: not_an_integer'),
    violation('integer-takes-one-point-zero', inside(T('integer')), '{"v":1.0}'),
    violation('number', inside(T('number')), '{"v":"1"}', 'v: not_a_number'),
    violation('boolean', inside(T('boolean')), '{"v":0}', 'v: not_a_boolean'),
    violation('null', inside(T('null')), '{"v":false}', 'v: not_null'),
    violation('object', inside(T('object')), '{"v":[]}', 'v: not_an_object'),
    violation('array', inside(T('array')), '{"v":{}}', 'v: not_an_array'),
    violation('root', T('array'), '{}', '<root>: not_an_array'),
    violation('missing', T('object', { required: ['a', 'b'] }), '{"a":1}', 'b: missing_required'),
    violation('first-missing', T('object', { required: ['b', 'a'] }), '{}', 'b: missing_required'),
    violation('additional', T('object', { additionalProperties: false }), '{"x":1}', 'x: additional_not_allowed'),
    violation('additional-allowed', T('object', { properties: {} }), '{"x":1}'),
    violation('min-length', inside(T('string', { minLength: 3 })), '{"v":"ab"}', 'v: below_min_length'),
    violation('minimum', inside(T('number', { minimum: 1 })), '{"v":0.5}', 'v: below_minimum'),
    violation('minimum-itself', inside(T('number', { minimum: 1 })), '{"v":1}'),
    violation('enum', inside({ enum: [1, 'a'] }), '{"v":"b"}', 'v: not_in_enum'),
    violation('enum-one-is-not-one-point-zero', inside({ enum: [1] }), '{"v":1.0}', 'v: not_in_enum'),
    violation('enum-true-is-not-one', inside({ enum: [1] }), '{"v":true}', 'v: not_in_enum'),
    violation('enum-object', inside({ enum: [{ a: [1] }] }), '{"v":{"a":[1]}}'),
    violation('const', inside({ const: 'x' }), '{"v":"y"}', 'v: wrong_const'),
    violation('const-null-wrong', inside({ const: null }), '{"v":0}', 'v: wrong_const'),
    violation('const-null', inside({ const: null }), '{"v":null}'),
    violation('const-false-is-not-zero', inside({ const: 0 }), '{"v":false}', 'v: wrong_const'),
    violation('const-deep', inside({ const: { a: [true] } }), '{"v":{"a":[1]}}', 'v: wrong_const'),
    violation('const-before-type', inside({ const: 'x', type: 'integer' }), '{"v":"y"}', 'v: wrong_const'),
    violation('enum-before-type', inside({ enum: ['x'], type: 'integer' }), '{"v":"y"}', 'v: not_in_enum'),
    violation('item', inside(T('array', { items: T('integer') })), '{"v":[1,"2"]}', 'v[1]: not_an_integer'),
    violation('nested-path', T('object', { properties: { a: T('array', { items: T('object', { properties: { b: T('string') } }) }) } }), '{"a":[{"b":"x"},{"b":1}]}', 'a[1].b: not_a_string'),
    violation('required-before-properties', T('object', { required: ['z'], properties: { a: T('string') } }), '{"a":1}', 'z: missing_required'),
    violation('keyword-of-another-type', inside(T('string', { minimum: 5 })), '{"v":"a"}'),
    violation('unknown-keyword', inside(T('string', { maxLength: 1 })), '{"v":"abc"}'),
    violation('no-type', inside({ minLength: 5 }), '{"v":"abc"}'),
  ],
};

const F = 'backoff/formula';
const J = 'backoff/jitter';
const wait = (name, base, multiplier, max, n, seconds, clause = F) => ({ name, clause, retry_backoff: base, retry_backoff_multiplier: multiplier, retry_backoff_max: max, retry_jitter: 'none', n, expect_delay_seconds: seconds });
const jitter = (name, base, multiplier, max, n, longest) => ({ name, clause: J, retry_backoff: base, retry_backoff_multiplier: multiplier, retry_backoff_max: max, retry_jitter: 'full', n, expect_delay_range_seconds: { min: 0, max: longest } });

export const retry_backoff = {
  description: 'd(n) = min(maximum, base * multiplier^(n-1)); a maximum of 0 means no limit; with full jitter, the wait is a random value in [0, d(n)].',
  cases: [
    wait('defaults', 0, 1, 0, 1, 0),
    wait('defaults-later', 0, 1, 0, 9, 0),
    wait('constant-first', 4, 1, 0, 1, 4),
    wait('constant-later', 4, 1, 0, 6, 4),
    wait('double-1', 1, 2, 0, 1, 1),
    wait('double-2', 1, 2, 0, 2, 2),
    wait('double-3', 1, 2, 0, 3, 4),
    wait('double-8', 1, 2, 0, 8, 128),
    wait('triple-4', 2, 3, 0, 4, 54),
    wait('base-and-factor', 5, 2, 0, 3, 20),
    wait('fractional-base', 0.5, 2, 0, 3, 2),
    wait('fractional-factor', 8, 1.5, 0, 3, 18),
    wait('shrinking', 8, 0.5, 0, 3, 2),
    wait('factor-zero-first', 3, 0, 0, 1, 3),
    wait('factor-zero-later', 3, 0, 0, 2, 0),
    wait('capped', 1, 2, 10, 5, 10),
    wait('cap-not-reached', 1, 2, 10, 4, 8),
    wait('cap-exactly', 1, 2, 8, 4, 8),
    wait('cap-below-base', 10, 2, 3, 1, 3),
    wait('cap-holds-forever', 1, 10, 60, 400, 60),
    wait('zero-base-with-cap', 0, 2, 10, 5, 0),
    wait('cap-zero-is-no-cap', 100, 10, 0, 3, 10000),
    jitter('full-first', 4, 1, 0, 1, 4),
    jitter('full-later', 1, 2, 0, 4, 8),
    jitter('full-capped', 1, 2, 5, 4, 5),
    jitter('full-of-nothing', 0, 2, 0, 4, 0),
    jitter('full-fraction', 0.25, 2, 0, 2, 0.5),
  ],
};

const HEX = '4e1c0b7a9d2f46538c7e1a2b3c4d5e6f';
const SPAN = 'b7ad6b7169203331';
const TRACE_ID = '9d3e1f60-7a5b-4c2d-8e90-1f2a3b4c5d6e';
const BARE = TRACE_ID.replaceAll('-', '');
const header = (name, traceparent, flags) => ({ name, clause: 'trace/header', mode: 'extract', traceparent, trace_id: TRACE_ID, expect: { source: 'traceparent', trace_id_hex: HEX, parent_span_id: SPAN, flags } });
const without = (name, traceparent, trace_id = TRACE_ID, trace_id_hex = BARE) => ({ name, clause: 'trace/fallback', mode: 'extract', traceparent, trace_id, expect: { source: 'trace_id', trace_id_hex } });

export const traceparent = {
  description: 'A well-formed `traceparent` of version 00 sets the trace id; any other value is ignored.',
  cases: [
    header('sampled', `00-${HEX}-${SPAN}-01`, '01'),
    header('not-sampled', `00-${HEX}-${SPAN}-00`, '00'),
    header('other-flags', `00-${HEX}-${SPAN}-ff`, 'ff'),
    header('flag-two', `00-${HEX}-${SPAN}-02`, '02'),
    without('absent', null),
    without('empty', ''),
    without('blank', ' '),
    without('words', 'not-a-traceparent'),
    without('short-trace', `00-${HEX.slice(1)}-${SPAN}-01`),
    without('long-trace', `00-${HEX}0-${SPAN}-01`),
    without('short-span', `00-${HEX}-${SPAN.slice(1)}-01`),
    without('long-span', `00-${HEX}-${SPAN}a-01`),
    without('not-hex-trace', `00-${HEX.replace('4', 'g')}-${SPAN}-01`),
    without('not-hex-span', `00-${HEX}-${SPAN.replace('b', 'x')}-01`),
    without('not-hex-flags', `00-${HEX}-${SPAN}-0g`),
    without('no-flags', `00-${HEX}-${SPAN}`),
    without('empty-flags', `00-${HEX}-${SPAN}-`),
    without('one-flag', `00-${HEX}-${SPAN}-1`),
    without('more-parts', `00-${HEX}-${SPAN}-01-00`),
    without('space-before', ` 00-${HEX}-${SPAN}-01`),
    without('space-after', `00-${HEX}-${SPAN}-01 `),
    without('newline-after', `00-${HEX}-${SPAN}-01\n`),
    without('other-version', `01-${HEX}-${SPAN}-01`),
    without('no-version', `${HEX}-${SPAN}-01`),
    without('version-ff', `ff-${HEX}-${SPAN}-01`),
    without('upper-case', `00-${HEX.toUpperCase()}-${SPAN}-01`),
    without('upper-case-span', `00-${HEX}-${SPAN.toUpperCase()}-01`),
    without('zero-trace', `00-${'0'.repeat(32)}-${SPAN}-01`),
    without('zero-span', `00-${HEX}-${'0'.repeat(16)}-01`),
    without('underscores', `00_${HEX}_${SPAN}_01`),
    without('bare-trace-id', null, 'feedbeef', 'feedbeef'),
    without('trace-id-without-hyphens', null, HEX, HEX),
    without('empty-trace-id', null, '', ''),
  ],
};
