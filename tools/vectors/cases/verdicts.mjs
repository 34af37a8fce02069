// How a consumer sorts a body: ok, no_identity or poison. One list; outside Kafka the last two are one.
const ONE = 'envelope/one-object';
const TYPED = 'envelope/typed-members';
const WHO = 'envelope/identity';
const UTF8 = 'envelope/utf8';
const FINITE = 'envelope/data-finite';
const U = '"job":"urn:x"';
const bytes = (...pieces) => Buffer.concat(pieces.map((piece) => Buffer.from(piece)));

const POISON = [
  [ONE, {
    empty: '',
    spaces: '   ',
    newline: '\n',
    'plain-text': 'not a message',
    'xml': '<x/>',
    'yaml': 'job: urn:x',
    'array': '[]',
    'array-of-objects': `[{${U}}]`,
    'true': 'true',
    'number': '42',
    'text': '"urn:x"',
    'text-of-json': '"{\\"job\\":\\"urn:x\\"}"',
    'two-objects': `{${U}}{${U}}`,
    'object-then-comma': `{${U}},`,
    'object-then-text': `{${U}} end`,
    'object-then-null': `{${U}}null`,
    'json-lines': `{${U}}\n{${U}}\n`,
    'single-quotes': "{'job':'urn:x'}",
    'name-without-quotes': '{job:"urn:x"}',
    'comma-last': `{${U},}`,
    'comma-first': `{,${U}}`,
    'comment': `{${U}/* */}`,
    'unclosed': `{${U}`,
    'unclosed-string': '{"job":"urn:x}',
    'no-colon': '{"job" "urn:x"}',
    'no-value': '{"job":}',
    'nan-in-data': `{${U},"data":{"a":NaN}}`,
    'nan-in-an-extension': `{${U},"x":NaN}`,
    'infinity-in-data': `{${U},"data":{"a":Infinity}}`,
    'minus-infinity-in-an-extension': `{${U},"x":-Infinity}`,
    'leading-zero': `{${U},"attempts":01}`,
    'plus-sign': `{${U},"attempts":+1}`,
    'bare-point': `{${U},"data":{"a":1.}}`,
    'hex': `{${U},"data":{"a":0x1}}`,
    'raw-newline-in-a-string': '{"job":"urn:\nx"}',
    'raw-tab-in-a-string': '{"job":"urn:\tx"}',
    'bad-escape': '{"job":"urn:\\x41"}',
    'short-unicode-escape': '{"job":"urn:\\u12"}',
    'vertical-tab-before': `\u000b{${U}}`,
    'no-break-space-before': `\u00a0{${U}}`,
    'nul-after': `{${U}}\0`,
    'undefined': `{${U},"data":{"a":undefined}}`,
    'upper-case-true': `{${U},"x":TRUE}`,
  }],
  [UTF8, {
    'byte-order-mark': `\ufeff{${U}}`,
    'latin-1': bytes('{"job":"urn:caf', [0xe9], '"}'),
    'lone-continuation': bytes('{"job":"urn:x","data":{"a":"', [0x80], '"}}'),
    'overlong': bytes('{"job":"urn:x","data":{"a":"', [0xc0, 0xaf], '"}}'),
    'surrogate-as-utf8': bytes('{"job":"urn:x","data":{"a":"', [0xed, 0xa0, 0x80], '"}}'),
    'truncated-sequence': bytes('{"job":"urn:x","data":{"a":"', [0xe2, 0x82], '"}}'),
    'invalid-in-a-key': bytes(`{${U},"`, [0xff], '":1}'),
    'invalid-after': bytes(`{${U}}`, [0xff]),
    'utf-16': Buffer.from(`\ufeff{${U}}`, 'utf16le'),
  }],
  [
    'canonical/surrogates',
    { 'lone-high-surrogate': '{"job":"urn:\\ud800"}', 'lone-low-surrogate-in-data': `{${U},"data":{"a":"\\udc00"}}`, 'surrogates-apart': `{${U},"data":{"a":"\\ud83d-\\ude00"}}`, 'lone-surrogate-in-a-key': `{${U},"\\ud800":1}` },
  ],
  [
    FINITE,
    { '1e400-in-data': `{${U},"data":{"a":1e400}}`, 'minus-1e400-in-data': `{${U},"data":{"a":[-1e400]}}`, '1e309-deep': `{${U},"data":{"a":{"b":[{"c":1e309}]}}}`, '400-digits-in-data': `{${U},"data":{"a":1${'0'.repeat(400)}}}`, '1e400-and-no-identity': '{"data":{"a":1e400}}', '400-digits-and-no-identity': `{"data":{"a":1${'0'.repeat(400)}}}`, '1e400-in-an-earlier-data': `{${U},"data":{"a":1e400},"data":{}}` },
  ],
  [
    'canonical/depth',
    { 'too-deep-in-data': `{${U},"data":{"a":${'['.repeat(1000)}${']'.repeat(1000)}}}`, 'too-deep-by-one': `{${U},"data":{"a":${'['.repeat(999)}${']'.repeat(999)}}}`, 'too-deep-in-an-extension': `{${U},"x":${'['.repeat(1001)}${']'.repeat(1001)}}` },
  ],
  [TYPED, Object.fromEntries([
    ...[['trace_id', ['5', 'true', '{}', '[]']], ['data', ['[]', '"x"', '0', 'true']], ['meta', ['[]', '"x"', '1', 'false']], ['dead_letter', ['[]', '"x"', '1', 'true']], ['attempts', ['"1"', '1.0', '1e0', 'true', '{}', '9223372036854775808']]].flatMap(
      ([name, values]) => values.map((value) => [`${name.replace('_', '-')}-${label(value)}`, `{${U},"${name}":${value}}`])),
    ...[['id', ['1', '{}']], ['queue', ['1', '[]']], ['lang', ['1', 'true']], ['schema_version', ['"1"', '1.0', 'true', '1e0']], ['created_at', ['"0"', '0.5', '-9223372036854775809']]].flatMap(
      ([name, values]) => values.map((value) => [`meta-${name.replace('_', '-')}-${label(value)}`, `{${U},"meta":{"${name}":${value}}}`])),
    ...[['reason', '1'], ['error', '{}'], ['exception', '[]'], ['failed_at', '"0"'], ['failed_at', '1.5'], ['original_queue', '1'], ['attempts', 'true'], ['attempts', '3.0'], ['lang', '1']].map(
      ([name, value]) => [`dead-letter-${name.replace('_', '-')}-${label(value)}`, `{${U},"dead_letter":{"${name}":${value}}}`]),
    ['earlier-duplicate-attempts', `{"attempts":"x",${U},"attempts":1}`],
    ['earlier-duplicate-meta', `{"meta":5,${U},"meta":{}}`],
    ['inside-an-earlier-meta', `{"meta":{"id":5},${U},"meta":{}}`],
    ['typed-and-no-identity', '{"attempts":"x"}'],
  ])],
];

function label(value) {
  return { '{}': 'object', '[]': 'array', '"x"': 'text', '"1"': 'text', '"0"': 'text', '1.0': 'one-point-zero', '1e0': 'exponent', '3.0': 'three-point-zero', '0.5': 'half', '1.5': 'fraction', '9223372036854775808': 'beyond-64-bits', '-9223372036854775809': 'below-64-bits' }[value] ?? value;
}

const NO_IDENTITY = {
  'null': 'null',
  'null-with-spaces': ' null\n',
  'empty-object': '{}',
  'object-with-spaces': ' { } ',
  'no-job': '{"data":{},"attempts":0}',
  'null-job': '{"job":null}',
  'number-job': '{"job":5}',
  'true-job': '{"job":true}',
  'object-job': '{"job":{"job":"urn:x"}}',
  'array-job': '{"job":["urn:x"]}',
  'empty-job': '{"job":""}',
  'blank-job': '{"job":" \\t\\r\\n"}',
  'form-feed-job': '{"job":"\\f\\u000b"}',
  'empty-job-and-urn': '{"job":"","urn":""}',
  'blank-job-and-null-urn': '{"job":" ","urn":null}',
  'number-urn': '{"urn":5}',
  'object-urn': '{"urn":{}}',
  'upper-case-job': '{"JOB":"urn:x"}',
  'title-case-urn': '{"Urn":"urn:x"}',
  'padded-name': '{" job":"urn:x"}',
  'text-then-number-job': '{"job":"urn:x","job":5}',
  'text-then-null-job': '{"job":"urn:x","job":null}',
  'text-then-blank-job': '{"job":"urn:x","job":" "}',
  'job-inside-data': '{"data":{"job":"urn:x"}}',
  'null-data': '{"data":null,"meta":null}',
};

const OK = [
  [
    WHO,
    { 'job-alone': `{${U}}`, 'urn-alone': '{"urn":"urn:x"}', 'padded-urn': '{"urn":"  urn:x  "}', 'number-then-text-job': `{"job":5,${U}}`, 'no-break-space-job': '{"job":"\\u00a0"}', 'ideographic-space-job': '{"job":"\u3000"}', 'one-letter-job': '{"job":"x"}', 'escaped-job': '{"\\u006aob":"urn:\\u0078"}', 'spaces-around': ` \r\n\t{${U}} \n` },
  ],
  [
    'envelope/job-type',
    { 'null-job-and-urn': '{"job":null,"urn":"urn:x"}', 'number-job-and-urn': '{"job":5,"urn":"urn:x"}', 'object-job-and-urn': '{"job":{},"urn":"urn:x"}', 'array-job-and-urn': '{"job":[],"urn":"urn:x"}' },
  ],
  ['envelope/blank', {
    'empty-job-and-urn-given': '{"job":"","urn":"urn:x"}',
    'blank-job-and-urn-given': '{"job":" \\t","urn":"urn:x"}',
  }],
  [TYPED, {
    'null-members': `{${U},"trace_id":null,"data":null,"meta":null,"attempts":null,"dead_letter":null}`,
    'null-meta-members': `{${U},"meta":{"id":null,"queue":null,"lang":null,"schema_version":null,"created_at":null}}`,
    'null-dead-letter-members': `{${U},"dead_letter":{"reason":null,"error":null,"failed_at":null,"attempts":null}}`,
    'minus-zero-attempts': `{${U},"attempts":-0}`,
    'negative-attempts': `{${U},"attempts":-3}`,
    'greatest-attempts': `{${U},"attempts":9223372036854775807}`,
    'least-created-at': `{${U},"meta":{"created_at":-9223372036854775808}}`,
    'version-two': `{${U},"meta":{"schema_version":2}}`,
    'empty-texts': `{${U},"trace_id":"","meta":{"id":"","queue":"","lang":""}}`,
    'unknown-lang': `{${U},"meta":{"lang":"cobol"}}`,
  }],
  [
    'envelope/case-sensitive',
    { 'wrong-case-of-wrong-type': `{${U},"Attempts":"x","META":5,"Data":[]}`, 'wrong-case-inside-meta': `{${U},"meta":{"ID":5,"Queue":[]}}` },
  ],
  ['envelope/forbidden-read', {
    'forbidden-of-any-type': `{${U},"timestamp":[],"meta":{"ts":{},"source":1,"attempts":"x","max_retries":null}}`,
  }],
  [
    'envelope/unknown-survive',
    { 'unknown-members': `{${U},"x":{"y":[1,null,"z"]},"meta":{"ext":{"a":5}}}`, 'typed-names-inside-data': `{${U},"data":{"attempts":"x","meta":5,"dead_letter":[]}}`, 'typed-names-inside-an-extension': `{${U},"x":{"attempts":"x","trace_id":5}}` },
  ],
  [
    'envelope/duplicates',
    { 'duplicate-data-keys': `{${U},"data":{"a":1,"a":2}}`, 'duplicate-meta-of-good-types': `{"meta":{"id":"a"},${U},"meta":{"id":"b"}}` },
  ],
  [
    FINITE,
    { 'greatest-double': `{${U},"data":{"a":1.7976931348623157e308}}`, 'least-double': `{${U},"data":{"a":5e-324}}`, 'underflow-is-zero': `{${U},"data":{"a":1e-400}}`, 'thirty-digits': `{${U},"data":{"a":123456789012345678901234567890}}`, '1e400-in-an-extension': `{${U},"x":1e400}`, '1e400-in-a-meta-extension': `{${U},"meta":{"x":1e400}}` },
  ],
  [
    ONE,
    { 'surrogate-pair': `{${U},"data":{"a":"\\ud83d\\ude00"}}`, 'as-deep-as-allowed': `{${U},"data":{"a":${'['.repeat(998)}${']'.repeat(998)}}}`, 'deep-but-allowed': `{${U},"data":{"a":${'['.repeat(900)}${']'.repeat(900)}}}`, 'astral-and-separators': `{${U},"data":{"a":"😀\u2028\u2029"}}`, 'every-escape': `{${U},"data":{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000"}}` },
  ],
];

const held = (body) => (typeof body === 'string' ? { body } : { body_base64: body.toString('base64') });
const rows = [
  ...POISON.flatMap(([clause, bodies]) => Object.entries(bodies).map(([name, body]) => ({ name: `poison-${name}`, clause, ...held(body), expect: 'poison' }))),
  ...Object.entries(NO_IDENTITY).map(([name, body]) => ({ name: `none-${name}`, clause: WHO, ...held(body), expect: 'no_identity' })),
  ...OK.flatMap(([clause, bodies]) => Object.entries(bodies).map(([name, body]) => ({ name: `ok-${name}`, clause, ...held(body), expect: 'ok' }))),
];

export const identity_verdict = {
  description: 'Two verdicts on every broker: an envelope with an identity, or poison.',
  cases: rows.map((row) => ({ ...row, expect: row.expect === 'ok' ? 'ok' : 'poison' })),
};

export const kafka_poison = {
  description: 'Three verdicts of a Kafka consumer: a body without an identity is not poison, but it is settled like poison.',
  cases: rows,
};
