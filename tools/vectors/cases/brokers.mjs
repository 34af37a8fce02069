// One block per broker: projection, headers, attempts, gate, names, delays, how deliveries end.
import { Literal, message } from '../text.mjs';
import { headers, projection } from './projections.mjs';

const count = (name, clause, body_attempts, native, attempts) => ({ name, clause, given: { body_attempts, native }, expect: { members: { attempts } } });
const at = (section, key) => (value) => ({ [section]: { [key]: value } });
const ODD = [
  ['text', 'many'],
  ['empty', ''],
  ['blank', ' '],
  ['padded', ' 3'],
  ['plus', '+3'],
  ['minus', '-3'],
  ['fraction', '3.0'],
  ['exponent', '3e0'],
  ['hex', '0x3'],
  ['underscore', '3_0'],
  ['other-digits', '٣'],
  ['superscript', '³'],
  ['beyond-2-31', '2147483648'],
  ['forty-digits', '9'.repeat(40)],
];
const NOT_COUNTS = [
  ['null', null],
  ['true', true],
  ['false', false],
  ['half', 3.5],
  ['negative', -3],
  ['beyond-2-31', 2147483648],
  ['list', [3]],
  ['object', { n: 3 }],
];
const ignored = (broker, native, body) => [
  ...ODD.map(([name, value]) => count(`text-${name}-is-ignored`, `${broker}/attempts`, body, native(value), body)),
  ...NOT_COUNTS.map(([name, value]) => count(`${name}-is-ignored`, `${broker}/attempts`, body, native(value), body)),
  count('absent', `${broker}/attempts`, body, {}, body), count('absent-everywhere', `${broker}/attempts`, null, {}, 0),
];

// floor: raise to count - offset, never lower.
const floors = (broker, native, offset) => [
  count('first-delivery', `${broker}/attempts`, 0, native(offset), 0),
  count('second-delivery', `${broker}/attempts`, 0, native(offset + 1), 1),
  count('fifth-delivery', `${broker}/attempts`, 0, native(offset + 4), 4),
  count('never-lowers', `${broker}/attempts`, 7, native(offset + 1), 7),
  count('equal', `${broker}/attempts`, 2, native(offset + 2), 2),
  count('raises', `${broker}/attempts`, 2, native(offset + 3), 3),
  count('count-zero', `${broker}/attempts`, 3, native(0), 3),
  count('as-text', `${broker}/attempts`, 0, native(String(offset + 2)), 2),
  count('leading-zeros', `${broker}/attempts`, 0, native(`00${offset + 2}`), 2),
  count('greatest', `${broker}/attempts`, 0, native(2147483647), 2147483647 - offset),
  count('body-absent', `${broker}/attempts`, null, native(offset + 2), 2),
  ...ignored(broker, native, 4),
];
const overrides = (broker, native) => [
  count('same', `${broker}/attempts`, 0, native('0'), 0),
  count('higher', `${broker}/attempts`, 1, native('3'), 3),
  count('lower-wins-too', `${broker}/attempts`, 5, native('2'), 2),
  count('zero-wins-too', `${broker}/attempts`, 5, native('0'), 0),
  count('leading-zeros', `${broker}/attempts`, 5, native('007'), 7),
  count('greatest', `${broker}/attempts`, 5, native('2147483647'), 2147483647),
  count('body-absent', `${broker}/attempts`, null, native('2'), 2),
  ...ignored(broker, native, 4),
];
const bodies = (broker, native) => [count('body-decides', `${broker}/attempts`, 3, {}, 3), count('body-absent', `${broker}/attempts`, null, {}, 0), count('native-is-not-read', `${broker}/attempts`, 1, native, 1), count('native-does-not-raise', `${broker}/attempts`, 0, native, 0)];
const pulsarCount = (attempts, redelivery) => ({ properties: { 'bq-attempts': attempts }, message: { redelivery_count: redelivery } });

const COUNTS = {
  redis: bodies('redis', { headers: { 'bq-attempts': '9' } }),
  rabbitmq: bodies('rabbitmq', { headers: { 'x-attempts': 9 } }),
  sqs: floors('sqs', at('attributes', 'ApproximateReceiveCount'), 1),
  servicebus: floors('servicebus', at('message', 'delivery_count'), 1),
  kafka: overrides('kafka', at('headers', 'bq-attempts')),
  pulsar: [
    ...overrides('pulsar', at('properties', 'bq-attempts')),
    ...floors('pulsar', at('message', 'redelivery_count'), 0).map((entry) => ({ ...entry, name: `redelivery-${entry.name}` })),
    count('property-then-redelivery', 'pulsar/attempts', 0, pulsarCount('2', 1), 2),
    count('redelivery-above-the-property', 'pulsar/attempts', 0, pulsarCount('1', 4), 4),
    count('lower-property-then-redelivery', 'pulsar/attempts', 9, pulsarCount('1', 2), 2),
    count('bad-property-then-redelivery', 'pulsar/attempts', 1, pulsarCount('x', 3), 3),
    count('bad-redelivery-then-property', 'pulsar/attempts', 9, pulsarCount('2', -1), 2),
  ],
  artemis: [
    ...floors('artemis', at('header', 'delivery-count'), 0),
    count('jms-first-delivery', 'artemis/attempts', 0, { application_properties: { JMSXDeliveryCount: 1 } }, 0),
    count('jms-third-delivery', 'artemis/attempts', 0, { application_properties: { JMSXDeliveryCount: 3 } }, 2),
    count('jms-never-lowers', 'artemis/attempts', 5, { application_properties: { JMSXDeliveryCount: 2 } }, 5),
  ],
};

const gated = (value, expect, name) => ({ name, clause: 'bindings/version-gate', value, expect });
const TEXT_GATE = [
  ['one', '1', 'decode'], ['empty', '', 'decode'], ['space', ' ', 'decode'], ['tabs-and-newlines', '\t\r\n\u000b\f', 'decode'],
  ['two', '2', 'reject'],
  ['zero', '0', 'reject'],
  ['leading-zero', '01', 'reject'],
  ['space-before', ' 1', 'reject'],
  ['space-after', '1 ', 'reject'],
  ['tab-and-newline', '\t1\n', 'reject'],
  ['plus', '+1', 'reject'],
  ['minus', '-1', 'reject'],
  ['point-zero', '1.0', 'reject'],
  ['exponent', '1e0', 'reject'],
  ['word', 'one', 'reject'],
  ['true', 'true', 'reject'],
  ['null-word', 'null', 'reject'],
  ['v1', 'v1', 'reject'],
  ['eleven', '11', 'reject'],
  ['no-break-space', '\u00a0', 'reject'],
  ['next-line', '\u0085', 'reject'],
  ['em-space', '\u2003', 'reject'],
  ['ideographic-space', '\u3000', 'reject'],
  ['byte-order-mark', '\ufeff', 'reject'],
  ['zero-width-space', '\u200b', 'reject'],
  ['no-break-space-one', '\u00a01', 'reject'],
  ['fullwidth-one', '１', 'reject'],
  ['arabic-one', '١', 'reject'],
  ['superscript-one', '¹', 'reject'],
  ['nul', '\0', 'reject'],
  ['unit-separator', '\u001f', 'reject'],
  ['quoted', '"1"', 'reject'],
  ['long', '1'.repeat(100), 'reject'],
].map(([name, value, expect]) => gated(value, expect, `text-${name}`));
const ABSENT = [{ name: 'absent', clause: 'bindings/version-gate', absent: true, expect: 'decode' }, gated(null, 'decode', 'null')];
const TYPED = [['one', 1, 'decode'], ['two', 2, 'reject'], ['zero', 0, 'reject'], ['minus-one', -1, 'reject'], ['eleven', 11, 'reject'], ['true', true, 'reject'], ['false', false, 'reject'], ['one-point-zero', new Literal('1.0'), 'reject'], ['half', 1.5, 'reject']].map(([name, value, expect]) => gated(value, expect, `native-${name}`));
const gateOf = (broker) => (['servicebus', 'artemis'].includes(broker) ? [...ABSENT, ...TEXT_GATE, ...TYPED] : [...ABSENT, ...TEXT_GATE]);
const binary = (name, value, decode) => ({ name, clause: 'bindings/version-gate', given: { value, value_type: 'bytes' }, expect: { members: { decode } } });
const BINARY = [
  binary('one', '1', true),
  binary('blank', ' \t', true),
  binary('empty', '', true),
  binary('two', '2', false),
  binary('padded', ' 1', false),
  binary('no-break-space', '\u00a0', false),
];
const GATED = ['sqs', 'servicebus', 'pulsar', 'kafka', 'artemis'];

const named = (name, given, keys) => ({ name, clause: 'bindings/names', given, expect: { contains: { keys } } });
const dotted = (extra = {}) => ['orders', 'mails.urgent', 'Mail_Out-2', 'a', 'bücher'].map((queue) => named(queue === 'bücher' ? 'non-ascii' : queue.toLowerCase().replace('_', '-').replace('.', '-'), { queue }, { work: queue, dead_letter: `${queue}.dlq`, ...Object.fromEntries(Object.entries(extra).map(([role, template]) => [role, template.replace('*', queue)])) }));
const suffixed = [
  named('own-suffix', { queue: 'orders', suffix: '-failed' }, { dead_letter: 'orders-failed' }),
  named('empty-suffix', { queue: 'orders', suffix: '' }, { dead_letter: 'orders' }),
];

const NAMES = {
  redis: [
    ...dotted({ processing: '*:processing', deadlines: '*:processing:deadlines' }),
    ...suffixed,
    named('laravel-dead-letter', { queue: 'orders', layout: 'laravel' }, { work: 'queues:orders', dead_letter: 'queues:orders.dlq' }),
  ],
  rabbitmq: [...dotted(), ...suffixed],
  sqs: [
    named('standard', { queue: 'orders' }, { work: 'orders', dead_letter: 'orders-dlq' }),
    named('fifo-by-name', { queue: 'orders.fifo' }, { work: 'orders.fifo', dead_letter: 'orders-dlq.fifo' }),
    named('fifo-by-option', { queue: 'orders', fifo: true }, { work: 'orders.fifo', dead_letter: 'orders-dlq.fifo' }),
    named('fifo-by-both', { queue: 'orders.fifo', fifo: true }, { work: 'orders.fifo', dead_letter: 'orders-dlq.fifo' }),
    named('own-suffix', { queue: 'orders', suffix: '-x' }, { dead_letter: 'orders-x' }),
    named('own-suffix-fifo', { queue: 'orders.fifo', suffix: '-x' }, { dead_letter: 'orders-x.fifo' }),
    named('own-suffix-that-ends-in-fifo', { queue: 'orders.fifo', suffix: '-x.fifo' }, { dead_letter: 'orders-x.fifo' }),
    named('fifo-inside-the-name', { queue: 'fifo.orders' }, { work: 'fifo.orders', dead_letter: 'fifo.orders-dlq' }),
  ],
  servicebus: [...dotted({ native_dead_letter: '*/$DeadLetterQueue' }), ...suffixed],
  pulsar: [...dotted({ topic: 'persistent://public/default/*', subscription: 'babelqueue' }), ...suffixed],
  kafka: [...dotted({ group: 'babelqueue', reinject_group: 'babelqueue-retry-reinject' }), ...suffixed],
  artemis: [...dotted(), ...suffixed],
};

const NOW = 1767225600.5;
const waits = (name, given, fields, clause) => ({ name, clause, given, expect: { members: { fields } } });
const refuses = (name, given, clause) => ({ name, clause, given, expect: { rejected: {} } });
const never = (clause, given = {}) => [['zero', 0], ['negative', -1], ['negative-fraction', -0.5]].map(([name, delay_seconds]) => refuses(`${name}-is-refused`, { delay_seconds, now: NOW, ...given }, clause));
const due = (milliseconds) => 1767225600500 + milliseconds;
const longest = (broker, given, fields) => [waits('longest', { delay_seconds: 2147483647, ...given }, fields(2147483647000), `${broker}/delay`), refuses('too-long', { delay_seconds: 2147483648, ...given }, `${broker}/delay`)];
const DELAYS = {
  redis: [
    ...longest('redis', { now: 0, layout: 'laravel' }, (ms) => ({ score: ms / 1000 })),
    refuses('app-layout-cannot-wait', { delay_seconds: 1, now: NOW }, 'redis/delay'),
    refuses('app-layout-by-name', { delay_seconds: 1, layout: 'legacy', now: NOW }, 'redis/delay'),
    waits('laravel', { delay_seconds: 5, layout: 'laravel', now: 1000.7 }, { score: 1005 }, 'redis/delay'),
    waits('laravel-fraction', { delay_seconds: 1.5, layout: 'laravel', now: 1000.7 }, { score: 1002 }, 'redis/delay'),
    ...never('redis/delay', { layout: 'laravel' }),
  ],
  rabbitmq: [
    refuses('needs-the-exchange', { delay_seconds: 1 }, 'rabbitmq/delay'),
    refuses('exchange-false', { delay_seconds: 1, delayed_exchange: false }, 'rabbitmq/delay'),
    waits('one-second', { delay_seconds: 1, delayed_exchange: true }, { 'x-delay': 1000 }, 'rabbitmq/delay'),
    waits('fraction', { delay_seconds: 1.5, delayed_exchange: true }, { 'x-delay': 1500 }, 'rabbitmq/delay'),
    waits('noise-above', { delay_seconds: 16.1, delayed_exchange: true }, { 'x-delay': 16100 }, 'rabbitmq/delay'),
    waits('noise-below', { delay_seconds: 1.001, delayed_exchange: true }, { 'x-delay': 1001 }, 'rabbitmq/delay'),
    waits('rounds-up', { delay_seconds: 0.0004, delayed_exchange: true }, { 'x-delay': 1 }, 'rabbitmq/delay'),
    waits('longest', { delay_seconds: 4294967, delayed_exchange: true }, { 'x-delay': 4294967000 }, 'rabbitmq/delay'),
    refuses('too-long', { delay_seconds: 4294968, delayed_exchange: true }, 'rabbitmq/delay'),
    ...never('rabbitmq/delay', { delayed_exchange: true }),
  ],
  servicebus: [
    ...longest('servicebus', { now: 0 }, (ms) => ({ scheduled_enqueue_time: ms, 'bq-delay': ms })),
    waits('ten-seconds', { delay_seconds: 10, now: NOW }, { scheduled_enqueue_time: due(10000), 'bq-delay': 10000 }, 'servicebus/delay'),
    waits('fraction', { delay_seconds: 0.25, now: NOW }, { scheduled_enqueue_time: due(250), 'bq-delay': 250 }, 'servicebus/delay'),
    ...never('servicebus/delay'),
  ],
  pulsar: [
    ...longest('pulsar', {}, (ms) => ({ deliver_after: ms, 'bq-delay': String(ms) })),
    waits('ten-seconds', { delay_seconds: 10 }, { deliver_after: 10000, 'bq-delay': '10000' }, 'pulsar/delay'),
    waits('fraction', { delay_seconds: 0.25 }, { deliver_after: 250, 'bq-delay': '250' }, 'pulsar/delay'),
    ...never('pulsar/delay'),
  ],
  artemis: [
    ...longest('artemis', { now: 0 }, (ms) => ({ 'x-opt-delivery-time': ms, bq_delay: String(ms) })),
    waits('ten-seconds', { delay_seconds: 10, now: NOW }, { 'x-opt-delivery-time': due(10000), bq_delay: '10000' }, 'artemis/delay'),
    waits('fraction', { delay_seconds: 0.25, now: NOW }, { 'x-opt-delivery-time': due(250), bq_delay: '250' }, 'artemis/delay'),
    ...never('artemis/delay'),
  ],
};

const STRATEGIES = [undefined, 'fail', 'delete', 'release', 'dead_letter'];
const POISON_OFF = { redis: 'dlq', sqs: 'native', servicebus: 'native' };
const ends = (broker, kind, on_unknown_urn, dead_letter, body_attempts, expect, max_attempts) => ({
  name: `${kind.replace('_', '-')}-${(on_unknown_urn ?? 'default').replace('_', '-')}-dlq-${dead_letter ? 'on' : 'off'}-after-${body_attempts}${max_attempts ? `-of-${max_attempts}` : ''}`,
  clause: kind === 'poison' ? 'settle/poison' : 'settle/exhausted',
  given: { kind, dead_letter, body_attempts, native: {}, ...(on_unknown_urn ? { on_unknown_urn } : {}), ...(max_attempts ? { max_attempts } : {}) },
  expect: { members: expect },
});
function outcome(broker, kind, strategy = 'fail', dlq, before, max = 3) {
  const counted = before + 1;
  const letter = { outcome: 'dlq', reason: kind, attempts: counted };
  const bounded = counted < max ? { outcome: 'retry' } : dlq ? letter : { outcome: 'drop' };
  if (kind === 'failed' || (kind === 'unknown_urn' && strategy === 'fail')) return bounded;
  if (strategy === 'dead_letter') return letter;
  if (kind === 'unknown_urn') return { outcome: { delete: 'drop', release: 'release' }[strategy] };
  if (strategy === 'delete') return broker === 'redis' ? letter : { outcome: 'drop' };
  if (dlq || POISON_OFF[broker] === 'dlq') return letter;
  return POISON_OFF[broker] ? { outcome: POISON_OFF[broker] } : bounded;
}
const end = (broker, kind, strategy, dlq, before, max) => ends(broker, kind, strategy, dlq, before, outcome(broker, kind, strategy, dlq, before, max), max);
const every = (broker, kinds, strategies, attempts) => kinds.flatMap((kind) => strategies.flatMap((strategy) => [true, false].flatMap((dlq) => attempts.map((before) => end(broker, kind, strategy, dlq, before)))));
const exhaustion = (broker) => [
  ...(broker === 'pulsar' ? every(broker, ['failed', 'unknown_urn'], STRATEGIES, [0, 2]) : every(broker, ['failed'], [undefined], [0, 1, 2, 5])), ...(broker === 'pulsar' ? [] : every(broker, ['unknown_urn'], STRATEGIES, [0, 2])), ...every(broker, ['poison'], STRATEGIES, [0, 2]),
  end(broker, 'failed', undefined, true, 0, 1),
  end(broker, 'failed', undefined, true, 3, 5),
  end(broker, 'failed', undefined, true, 4, 5),
  end(broker, 'failed', undefined, false, 4, 5),
];

const unable = (name, given, expect, clause = 'settle/poison') => ({ name, clause, given: { body_attempts: 0, dead_letter: false, ...given }, expect: { members: expect } });
const POISON = (broker) => [
  unable('write-fails', { dead_letter: true, dlq_write: 'fails' }, { outcome: 'unsettled' }),
  unable('write-fails-by-strategy', { on_unknown_urn: 'dead_letter', dlq_write: 'fails' }, { outcome: 'unsettled' }),
  unable('write-ok', { dead_letter: true }, { outcome: 'dlq', reason: 'poison', attempts: 1 }),
  unable('delete-needs-no-write', { on_unknown_urn: 'delete', dead_letter: true, dlq_write: 'fails' }, { outcome: broker === 'redis' ? 'unsettled' : 'drop' }),
  ...(broker === 'redis' ? [] : [unable('no-writer', { on_unknown_urn: 'dead_letter', writer: false }, { outcome: 'drop' })]),
  ...(['rabbitmq', 'pulsar', 'artemis'].includes(broker) ? [unable('tiers-do-not-matter', { tiers: false }, { outcome: 'retry' })] : []),
  ...(broker === 'kafka' ? [unable('without-tiers', { tiers: false }, { outcome: 'drop' }), unable('with-tiers', { tiers: true }, { outcome: 'retry' }), unable('with-tiers-exhausted', { tiers: true, body_attempts: 2 }, { outcome: 'drop' }), unable('without-tiers-dlq-on', { tiers: false, dead_letter: true }, { outcome: 'dlq', reason: 'poison', attempts: 1 })] : []),
];

const source = (name, given, original_queue, clause = 'dead-letter/original-queue') => ({ name, clause, given, expect: { members: { original_queue } } });
const ORIGINAL = (broker) => (broker === 'kafka'
  ? [source('header', { meta_queue: 'ledger', consumed: 'ledger.retry.1', native: { headers: { 'bq-original-topic': 'ledger' } } }, 'ledger'), source('no-header', { meta_queue: 'other', consumed: 'ledger', native: {} }, 'ledger'), source('empty-header', { meta_queue: 'other', consumed: 'ledger', native: { headers: { 'bq-original-topic': '' } } }, 'ledger'), source('header-before-meta', { meta_queue: 'm', consumed: 'c', native: { headers: { 'bq-original-topic': 'h' } } }, 'h')]
  : [source('meta-queue', { meta_queue: 'ledger', consumed: 'prefix-ledger', native: {} }, 'ledger'), source('no-meta-queue', { meta_queue: null, consumed: 'consumed', native: {} }, 'consumed'), source('empty-meta-queue', { meta_queue: '', consumed: 'consumed', native: {} }, 'consumed'), source('header-is-not-read', { meta_queue: 'ledger', consumed: 'c', native: { headers: { 'bq-original-topic': 'h' } } }, 'ledger')]);

const routed = (name, given, urn, clause) => ({ name, clause, given, expect: { members: { urn } } });
const ROUTES = {
  pulsar: [
    routed('property', { body_text: message(), native: { properties: { 'bq-job': 'urn:other' } } }, 'urn:other', 'pulsar/route'),
    routed('absent', { body_text: message(), native: {} }, 'urn:babel:ledger:entry.posted', 'pulsar/route'),
    routed('blank', { body_text: message(), native: { properties: { 'bq-job': ' \t' } } }, 'urn:babel:ledger:entry.posted', 'pulsar/route'),
    routed('empty', { body_text: message(), native: { properties: { 'bq-job': '' } } }, 'urn:babel:ledger:entry.posted', 'pulsar/route'),
    routed('no-break-space', { body_text: message(), native: { properties: { 'bq-job': '\u00a0' } } }, '\u00a0', 'pulsar/route'),
    routed('padded', { body_text: message(), native: { properties: { 'bq-job': ' urn:x ' } } }, ' urn:x ', 'pulsar/route'),
    routed('body-alias', { body_text: message({ job: null, more: '"urn":"urn:alias"' }), native: {} }, 'urn:alias', 'pulsar/route'),
  ],
  kafka: [routed('body-decides', { body_text: message(), native: { headers: { 'bq-job': 'urn:other' } } }, 'urn:babel:ledger:entry.posted', 'kafka/route')],
  rabbitmq: [routed('body-decides', { body_text: message(), native: { properties: { type: 'urn:other' } } }, 'urn:babel:ledger:entry.posted', 'rabbitmq/route')],
};

const file = 'fixtures/ledger-entry-posted.json';
const carried = (name, clause, options, expect, given = { file }) => ({ name, clause, given: { ...given, options }, expect });
const fifo = { MessageGroupId: 'ledger', MessageDeduplicationId: '3d9a7c54-1b2e-4f60-8a71-5c6d7e8f9012' };
const group = (name, options, parameters, nowhere = []) => carried(name, 'sqs/fifo', options, { contains: { sections: { parameters } }, types: Object.fromEntries(Object.keys(parameters).map((key) => [`/parameters/${key}`, 'text'])), ...(nowhere.length ? { nowhere } : {}) });
const OPTIONS = {
  sqs: [
    group('by-option', { fifo: true }, fifo),
    group('by-queue-name', { queue: 'orders.fifo' }, { ...fifo, MessageGroupId: 'orders.fifo' }),
    group('own-group', { fifo: true, group: 'tenant-7' }, { ...fifo, MessageGroupId: 'tenant-7' }),
    group('content-based', { fifo: true, content_based: true }, { MessageGroupId: 'ledger' }, ['/sections/parameters/MessageDeduplicationId']),
    group('queue-given', { fifo: true, queue: 'orders' }, { ...fifo, MessageGroupId: 'orders' }),
    carried('standard-has-neither', 'sqs/fifo', {}, { contains: { sections: {} }, nowhere: ['/sections/parameters/MessageGroupId', '/sections/parameters/MessageDeduplicationId'] }),
    carried('fifo-false-overrides-the-name', 'sqs/fifo', { queue: 'orders.fifo', fifo: false }, { contains: { sections: {} }, nowhere: ['/sections/parameters/MessageGroupId'] }),
    carried('without-id', 'sqs/fifo', { fifo: true }, { rejected: { code: 'no_deduplication_id', pointer: '/meta/id' } }, { file: 'fixtures/id-absent.json' }),
    carried('without-id-content-based', 'sqs/fifo', { fifo: true, content_based: true }, { contains: { sections: { parameters: { MessageGroupId: 'ledger' } } } }, { file: 'fixtures/id-absent.json' }),
    carried('delay-on-fifo', 'sqs/delay', { fifo: true, delay: 5 }, { rejected: { code: 'delay_on_fifo' } }),
    carried('delay-beside', 'sqs/delay', { delay: 5 }, { contains: { sections: { parameters: { DelaySeconds: 5 } } }, types: { '/parameters/DelaySeconds': 'integer' } }),
    carried('ten-attributes', 'bindings/out-of-band', { headers: { a: '1', b: '2', c: '3', d: '4', e: '5' } }, { contains: { sections: { message_attributes: { a: { DataType: 'String', StringValue: '1' }, d: { DataType: 'String', StringValue: '4' } } } }, nowhere: ['/sections/message_attributes/e'] }),
    carried('empty-header', 'bindings/out-of-band', { headers: { a: '' } }, { contains: { sections: {} }, nowhere: ['/sections/message_attributes/a'] }),
  ],
  kafka: [
    carried('no-key', 'kafka/key', {}, { contains: { sections: {} }, nowhere: ['/sections/record/key'] }),
    carried('key', 'kafka/key', { key: 'customer-7' }, { contains: { sections: { record: { key: 'customer-7' } } }, types: { '/record/key': 'bytes' } }),
    carried('empty-key-is-a-key', 'kafka/key', { key: '' }, { contains: { sections: { record: { key: '' } } } }),
    carried('delay-goes-to-a-tier', 'kafka/requested-delay', { queue: 'orders', delay: 6, tiers_ms: [5000, 30000] }, { contains: { sections: { record: { topic: 'orders.retry.2' }, headers: { 'bq-delay': '6000', 'bq-original-topic': 'orders' } } }, types: { '/record/topic': 'text', '/headers/bq-delay': 'bytes', '/headers/bq-original-topic': 'bytes' } }),
    carried('delay-without-tiers', 'kafka/requested-delay', { delay: 6 }, { rejected: { code: 'no_tier' } }),
    carried('retry-goes-to-a-tier', 'kafka/retry', { queue: 'orders', attempts_before: 0, tiers_ms: [5000, 30000] }, { contains: { sections: { record: { topic: 'orders.retry.1' }, headers: { 'bq-attempts': '1', 'bq-delay': '5000', 'bq-original-topic': 'orders' } } }, types: { '/record/topic': 'text', '/headers/bq-attempts': 'bytes', '/headers/bq-delay': 'bytes', '/headers/bq-original-topic': 'bytes' } }),
    carried('plain-has-no-topic', 'kafka/projection', {}, { contains: { sections: {} }, nowhere: ['/sections/record/topic', '/sections/headers/bq-delay', '/sections/headers/bq-original-topic'] }),
  ],
  pulsar: [
    carried('routed-as-is-kept', 'pulsar/route', { routed_as: 'urn:routed' }, { contains: { sections: { properties: { 'bq-job': 'urn:routed' } } } }),
    carried('delay-beside', 'pulsar/delay', { delay: 2 }, { contains: { sections: { message: { deliver_after: 2000 }, properties: { 'bq-delay': '2000' } } }, types: { '/message/deliver_after': 'long', '/properties/bq-delay': 'text' } }),
  ],
  servicebus: [
    carried('no-session', 'servicebus/session', {}, { contains: { sections: {} }, nowhere: ['/sections/message/session_id'] }),
    carried('session', 'servicebus/session', { key: 'customer-7' }, { contains: { sections: { message: { session_id: 'customer-7' } } }, types: { '/message/session_id': 'text' } }),
    carried('delay-beside', 'servicebus/delay', { delay: 2, now: 1000 }, { contains: { sections: { message: { scheduled_enqueue_time: 1002000 }, application_properties: { 'bq-delay': 2000 } } }, types: { '/message/scheduled_enqueue_time': 'long', '/application_properties/bq-delay': 'long' } }),
  ],
  artemis: [carried('delay-beside', 'artemis/delay', { delay: 2, now: 1000 }, { contains: { sections: { annotations: { 'x-opt-delivery-time': 1002000 }, application_properties: { bq_delay: '2000' } } }, types: { '/annotations/x-opt-delivery-time': 'long', '/application_properties/bq_delay': 'text' } })],
  rabbitmq: [
    carried('delay-beside', 'rabbitmq/delay', { delay: 2, delayed_exchange: true }, { contains: { sections: { headers: { 'x-delay': 2000 } } }, types: { '/headers/x-delay': 'integer' } }),
    carried('routed-as-is-not-for-rabbitmq', 'rabbitmq/route', { routed_as: 'urn:routed' }, { contains: { sections: { properties: { type: 'urn:babel:ledger:entry.posted' } } } }),
  ],
};

const block = (broker) => ({
  description: `The native fields of ${broker}, and its rules for attempts, delays, names and settlement.`,
  projection: projection(broker),
  headers: headers(broker),
  ...(OPTIONS[broker] ? { options: { operation: 'project', cases: OPTIONS[broker] } } : {}),
  counts: { operation: 'reconcile', cases: COUNTS[broker] },
  ...(GATED.includes(broker) ? { schema_version_gate: { cases: gateOf(broker) } } : {}),
  ...(broker === 'artemis' ? { gate_of_bytes: { operation: 'gate', cases: BINARY } } : {}),
  ...(ROUTES[broker] ? { route: { operation: 'route', cases: ROUTES[broker] } } : {}),
  names: { operation: 'names', cases: NAMES[broker] },
  ...(DELAYS[broker] ? { delays: { operation: 'delay', cases: DELAYS[broker] } } : {}),
  exhaustion: { operation: 'exhaustion', cases: exhaustion(broker) },
  poison: { operation: 'settle_poison', cases: POISON(broker) },
  original_queue: { operation: 'original_queue', cases: ORIGINAL(broker) },
});

export const brokers = Object.fromEntries(['redis', 'rabbitmq', 'sqs', 'servicebus', 'pulsar', 'kafka', 'artemis'].map((broker) => [broker, block(broker)]));
