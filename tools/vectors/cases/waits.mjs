// Waiting and settling: SQS delays, Kafka tiers, Redis scores and keys, version-gated deliveries.
import { message } from '../text.mjs';

const wait = (name, queue_type, delay_seconds, expect) => ({ name, clause: 'sqs/delay', queue_type, delay_seconds, expect: expect === 'reject' ? expect : { delay_seconds_attribute: expect } });
const hide = (name, delay_seconds, visibility_timeout) => ({ name, clause: 'sqs/visibility', delay_seconds, expect: { visibility_timeout } });

export const delay = {
  description: 'A delayed publish on SQS: 1 to 900 seconds, rounded up, never shortened, and never on a FIFO queue. A release changes the visibility timeout.',
  cases: [
    wait('one', 'standard', 1, 1),
    wait('thirty', 'standard', 30, 30),
    wait('899', 'standard', 899, 899),
    wait('900', 'standard', 900, 900),
    wait('901', 'standard', 901, 'reject'),
    wait('a-day', 'standard', 86400, 'reject'),
    wait('half-a-second', 'standard', 0.5, 1),
    wait('rounds-up', 'standard', 1.001, 2),
    wait('899-and-a-half', 'standard', 899.5, 900),
    wait('900-and-a-bit', 'standard', 900.001, 'reject'),
    wait('zero', 'standard', 0, 'reject'),
    wait('negative', 'standard', -1, 'reject'),
    wait('fifo-one', 'fifo', 1, 'reject'), wait('fifo-900', 'fifo', 900, 'reject'), wait('fifo-901', 'fifo', 901, 'reject'),
  ],
  release_visibility: { cases: [hide('now', 0, 0), hide('one', 1, 1), hide('thirty', 30, 30), hide('fraction-is-cut', 1.9, 1), hide('below-one-is-cut', 0.9, 0), hide('twelve-hours', 43200, 43200), hide('more-is-clamped', 43201, 43200), hide('a-year-is-clamped', 31536000, 43200), hide('negative-is-clamped', -5, 0)] },
};

const TIERS = [5000, 30000, 300000, 1800000];
const asked = (name, delay_ms, tier_ms, tiers = TIERS, topic = 'orders') => ({ name, clause: 'kafka/requested-delay', work_topic: topic, retry_tiers_ms: tiers, delay_ms, expect: tier_ms === null ? 'reject' : { tier_ms, headers: { 'bq-delay': String(delay_ms), 'bq-original-topic': topic } } });
function again(name, before, tiers = TIERS, topic = 'orders', more = {}) {
  const n = Math.min(before, tiers.length - 1) + 1;
  const expect = { n, topic: `${topic}.retry.${n}`, tier_ms: tiers[n - 1], body_attempts: before + 1, headers: { 'bq-attempts': String(before + 1), 'bq-delay': String(tiers[n - 1]), 'bq-original-topic': topic } };
  return { name, clause: 'kafka/retry', work_topic: topic, retry_tiers_ms: tiers, attempts_before: before, ...more, expect: { ...expect, ...('key' in more ? { key: more.key } : {}) } };
}
const topic = (name, work_topic, n) => ({ name, clause: 'kafka/tier-names', work_topic, n, expect_topic: `${work_topic}.retry.${n}` });

export const backoff = {
  description: 'Kafka delays messages in tier topics: a requested delay uses the shortest tier that is long enough, a retry uses the tier of its attempt number.',
  cases: [
    asked('one-millisecond', 1, 5000),
    asked('below-the-first', 4999, 5000),
    asked('the-first', 5000, 5000),
    asked('above-the-first', 5001, 30000),
    asked('the-second', 30000, 30000),
    asked('between', 60000, 300000),
    asked('the-third', 300000, 300000),
    asked('above-the-third', 300001, 1800000),
    asked('the-last', 1800000, 1800000),
    asked('beyond-the-last', 1800001, null),
    asked('a-day', 86400000, null),
    asked('no-tiers', 1000, null, []),
    asked('one-tier', 10, 60000, [60000]),
    asked('beyond-one-tier', 60001, null, [60000]),
    asked('dotted-topic', 1000, 5000, TIERS, 'mails.urgent'),
  ],
  retry_republish: { cases: [0, 1, 2, 3].map((n) => again(`after-${n}`, n)).concat([again('dotted-topic', 1, TIERS, 'mails.urgent'), again('keeps-its-key', 0, TIERS, 'orders', { key: 'customer-7' }), again('keeps-a-non-ascii-key', 0, TIERS, 'orders', { key: 'kündin-é' }), again('keeps-an-empty-key', 0, TIERS, 'orders', { key: '' })]) },
  retry_attempt_tier: { cases: [
    ...[0, 1, 2, 3, 4, 5, 10, 100].map((n) => again(`four-tiers-after-${n}`, n)),
    ...[0, 1, 7].map((n) => again(`one-tier-after-${n}`, n, [60000])),
    ...[0, 1, 2].map((n) => again(`two-tiers-after-${n}`, n, [1000, 2000])),
    ...[0, 5].map((n) => ({ name: `no-tiers-after-${n}`, clause: 'kafka/retry', work_topic: 'orders', retry_tiers_ms: [], attempts_before: n, expect: 'reject' })),
    again('descending-tiers-by-index', 0, [9000, 1000]), again('equal-tiers-by-index', 1, [1000, 1000, 1000]),
  ] },
  topic_names: { cases: [topic('first', 'orders', 1), topic('second', 'orders', 2), topic('tenth', 'orders', 10), topic('dotted', 'mails.urgent', 3), topic('mixed-case', 'Mail_Out-2', 4), topic('already-a-retry-topic', 'orders.retry.1', 1)] },
  default_tiers: { cases: [{ name: 'recommended', clause: 'kafka/default-tiers', expect: TIERS }] },
  returned: { operation: 'reinject', cases: [
    [
      'drops-two-headers',
      { 'bq-delay': '5000', 'bq-original-topic': 'orders', 'bq-job': 'urn:x', 'bq-attempts': '1' },
      { topic: 'orders', headers: { 'bq-job': 'urn:x', 'bq-attempts': '1' } },
    ],
    [
      'keeps-own-headers',
      { tenant: 'acme', 'bq-original-topic': 'orders', traceparent: 't' },
      { topic: 'orders', headers: { tenant: 'acme', traceparent: 't' } },
    ],
    ['dotted-topic', { 'bq-original-topic': 'mails.urgent' }, { topic: 'mails.urgent', headers: {} }],
  ].map(([name, headers, members]) => ({ name, clause: 'kafka/reinject', given: { headers }, expect: { members } })).concat(
    [['no-topic', {}], ['empty-topic', { 'bq-original-topic': '' }]].map(([name, headers]) => ({ name, clause: 'kafka/reinject', given: { headers }, expect: { rejected: { code: 'no_original_topic' } } }))) },
  due: { operation: 'due', cases: [['on-time', 1000000, 5000, 1001000, 1005000], ['late', 1000000, 5000, 1010000, 1010000], ['exactly-due', 1000000, 5000, 1005000, 1005000], ['clock-ahead', 2000000, 5000, 1000000, 1005000], ['no-timestamp', null, 5000, 1000000, 1005000], ['just-parked', 1000000, 5000, 1000000, 1005000]].map(
    ([name, timestamp_ms, tier_ms, now_ms, due_ms]) => ({ name, clause: 'kafka/reinject', given: { timestamp_ms, tier_ms, now_ms }, expect: { members: { due_ms } } })) },
};

const scored = (now, seconds, expect_score) => ({ name: `${now}-plus-${seconds}`, clause: 'redis/score', now, delay: seconds, expect_score });

export const redis_delay = {
  description: 'The score of a delayed member: floor(now) + ceil(delay).',
  cases: [
    scored(2048.6, 2.5, 2051),
    scored(2048.4, 0.2, 2049),
    scored(2048.99, 3, 2051),
    scored(2048.999, 0.001, 2049),
    scored(2048.5, 4, 2052),
    scored(2048, 7.001, 2056),
    scored(2048, 9, 2057),
    scored(2048, 7200, 9248),
    scored(2048.1, 0, 2048),
    scored(1767225600.25, 0.75, 1767225601),
    scored(0, 1, 1),
    scored(1767225600, 86400, 1767312000),
  ],
};

const keys = (name, queue, key_prefix = 'queues:') => ({ name, clause: 'redis/keys', queue, key_prefix, expect: { ready: `${key_prefix}${queue}`, delayed: `${key_prefix}${queue}:delayed`, reserved: `${key_prefix}${queue}:reserved`, notify: `${key_prefix}${queue}:notify` } });

export const redis_layout = {
  description: 'Key names of the Laravel-compatible layout. The other rules of this layout need a live Redis and are not part of these cases.',
  cases: [
    keys('plain', 'orders'),
    keys('dotted', 'mails.urgent'),
    keys('mixed-case', 'Mail_Out-2'),
    keys('colon', 'a:b'),
    keys('braces', '{orders}'),
    keys('non-ascii', 'bücher'),
    keys('own-prefix', 'orders', 'app_queues:'),
    keys('empty-prefix', 'orders', ''),
    keys('space', 'my orders'),
    keys('like-a-sub-key', 'orders:delayed'),
  ],
};

const framed = (name, given, element) => ({ name, clause: 'redis/element', given, expect: { bytes: { element_text: element } } });
const opened = (name, element, body, headers) => ({ name, clause: 'redis/element', given: { element_text: element }, expect: { bytes: { body_text: body }, members: { headers } } });

export const redis_element = {
  description: 'A list element is the envelope, byte for byte; if there are headers, it is a frame with the headers and the envelope.',
  write: { operation: 'element', cases: [framed('bare', { body_text: message() }, message()), framed('bare-odd-formatting', { body_text: ' {"job" : "x"} \n' }, ' {"job" : "x"} \n'), framed('empty-headers-are-none', { body_text: '{}', headers: {} }, '{}'), framed('headers', { body_text: '{"job":"x"}', headers: { traceparent: 't' } }, '{"__bq_frame":1,"headers":{"traceparent":"t"},"body":"{\\"job\\":\\"x\\"}"}')] },
  read: { operation: 'read_element', cases: [
    opened('bare', message(), message(), {}),
    opened('not-json', 'hello', 'hello', {}),
    opened('frame', '{"__bq_frame":1,"headers":{"a":"1"},"body":"{}"}', '{}', { a: '1' }),
    opened('frame-in-other-order', '{ "body":"x", "headers":{}, "__bq_frame": 1 }', 'x', {}),
    opened('other-frame-version', '{"__bq_frame":2,"headers":{},"body":"x"}', '{"__bq_frame":2,"headers":{},"body":"x"}', {}),
    opened('frame-without-body', '{"__bq_frame":1,"headers":{}}', '{"__bq_frame":1,"headers":{}}', {}),
    opened('frame-with-a-number-as-header', '{"__bq_frame":1,"headers":{"a":1},"body":"x"}', '{"__bq_frame":1,"headers":{"a":1},"body":"x"}', {}),
    opened('mark-inside-data', '{"job":"x","data":{"__bq_frame":1}}', '{"job":"x","data":{"__bq_frame":1}}', {}),
  ] },
};

const BODIES = [
  { name: 'pretty-and-escaped', body: '{\n  "job": "urn:babel:x",\n  "data": { "s": "caf\\u00e9 a\\/b" },\n  "meta": { "schema_version": 2 }\n}\n' },
  { name: 'odd-numbers-and-order', body: '{"meta":{"schema_version":9},"data":{"b":1.50,"a":1E2,"n":12345678901234567890},"attempts":0,"job":"urn:babel:x"}' },
  { name: 'not-json', body: 'version two speaks another tongue \u2028' },
  { name: 'dead-letter-inside', body: '{"job":"urn:babel:x","dead_letter":{"reason":"failed"}}' },
];
const OFF = { sqs: 'native', servicebus: 'native', pulsar: 'ack', kafka: 'ack', artemis: 'ack' };
const STRATEGIES = [null, 'fail', 'release', 'delete', 'dead_letter'];

function settled(broker, strategy, dead_letter, dlq_write) {
  const write = strategy === 'dead_letter' || dead_letter === 'on';
  const outcome = strategy === 'delete' ? 'ack' : write ? { ok: 'dlq_raw', fails: 'unsettled' }[dlq_write] : OFF[broker];
  return {
    name: `${(strategy ?? 'default').replace('_', '-')}-dlq-${dead_letter}-write-${dlq_write}`,
    clause: 'settle/gated',
    ...(strategy ? { on_unknown_urn: strategy } : {}),
    dead_letter,
    dlq_write,
    expect: outcome === 'dlq_raw' ? { outcome, record: 'incoming_body' } : { outcome },
  };
}

// `version_gate_<broker>`: the record is the incoming body, byte for byte.
export const version_gates = Object.fromEntries(Object.keys(OFF).map((broker) => [`version_gate_${broker}`, {
  description: `How ${broker} settles a delivery that failed the version check.`,
  incoming_bodies: BODIES,
  cases: STRATEGIES.flatMap((strategy) => ['on', 'off'].flatMap((dlq) => ['ok', 'fails'].map((write) => settled(broker, strategy, dlq, write)))),
}]));
