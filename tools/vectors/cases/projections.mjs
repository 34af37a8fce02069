// What each broker carries beside the body: the tables again, written by hand and apart from ours.
import { CREATED, ID, message, meta, TRACE, URN } from '../text.mjs';

// Field -> [native value of a fact, native type]. A fact that is absent or null leaves its field out.
const text = (fact) => [fact, (value) => String(value), 'text'];
const raw = (fact) => [fact, (value) => String(value), 'bytes'];
const integer = (fact) => [fact, Number, 'integer'];
const long = (fact) => [fact, Number, 'long'];
const always = (value, type = 'text') => [null, () => value, type];
const attribute = (fact, kind) => [fact, (value) => (kind === 'String' && value === '' ? undefined : { DataType: kind, StringValue: String(value) }), kind];

export const TABLES = {
  redis: {},
  rabbitmq: {
    properties: { type: text('urn'), correlation_id: text('trace'), message_id: text('id'), app_id: always('babelqueue'), content_type: always('application/json'), content_encoding: always('utf-8'), delivery_mode: always(2, 'integer') },
    headers: { 'x-schema-version': integer('version'), 'x-source-lang': text('lang'), 'x-attempts': integer('attempts') },
  },
  sqs: {
    message_attributes: { 'bq-job': attribute('urn', 'String'), 'bq-trace-id': attribute('trace', 'String'), 'bq-message-id': attribute('id', 'String'), 'bq-schema-version': attribute('version', 'Number'), 'bq-source-lang': attribute('lang', 'String'), 'bq-created-at': attribute('created', 'Number') },
  },
  servicebus: {
    message: { subject: text('urn'), correlation_id: text('trace'), message_id: text('id'), content_type: always('application/json') },
    application_properties: { 'bq-schema-version': integer('version'), 'bq-source-lang': text('lang'), 'bq-created-at': long('created') },
  },
  pulsar: {
    properties: { 'bq-job': text('urn'), 'bq-trace-id': text('trace'), 'bq-message-id': text('id'), 'bq-schema-version': text('version'), 'bq-source-lang': text('lang'), 'bq-attempts': text('attempts') },
  },
  kafka: {
    headers: { 'bq-job': raw('urn'), 'bq-trace-id': raw('trace'), 'bq-message-id': raw('id'), 'bq-schema-version': raw('version'), 'bq-source-lang': raw('lang'), 'bq-attempts': raw('attempts') },
    record: { timestamp: long('created') },
  },
  artemis: {
    annotations: { 'x-opt-jms-type': text('urn') },
    properties: { 'correlation-id': text('trace'), 'creation-time': long('created') },
    application_properties: { bq_schema_version: text('version'), bq_source_lang: text('lang'), bq_attempts: text('attempts'), bq_app_id: always('babelqueue') },
  },
};

const FACTS = { urn: URN, trace: TRACE, id: ID, version: 1, lang: 'go', created: CREATED, attempts: 0 };
const pretty = JSON.stringify(JSON.parse(message({ data: '{"z":1,"a":2}' })), null, 2);
const odd = `{"attempts":5,"data":{"b":1.50,"a":1E2,"n":12345678901234567890},"job":"${URN}","trace_id":"${TRACE}","meta":${meta()}}\n`;

// [name, clause, where the message comes from, what differs from the plain facts]
const SAMPLES = [
  ['plain', { file: 'fixtures/ledger-entry-posted.json' }, {}],
  [
    'other-language',
    { file: 'fixtures/user-renamed.json' },
    { urn: 'urn:babel:users:renamed', id: '5a7d0c3e-5b1f-4c8e-9a64-7d20f1b3c5e5', lang: 'dotnet', created: CREATED + 5 * 86400000 },
  ],
  ['retried', { file: 'fixtures/retried-twice.json' }, { attempts: 2 }],
  ['dead-lettered', { file: 'fixtures/dead-lettered-failed.json' }, { attempts: 3 }],
  ['unknown-language', { file: 'fixtures/unknown-lang.json' }, { lang: 'cobol' }],
  ['alias', { file: 'fixtures/urn-alias.json' }, { urn: 'urn:babel:alias:used' }],
  ['padded-job', { file: 'fixtures/padded-job.json' }, { urn: '  urn:babel:x\t' }],
  ['version-two', { file: 'fixtures/version-two.json' }, { version: 2 }],
  ['pretty-printed', { body_text: pretty }, {}],
  ['odd-formatting', { body_text: odd }, { attempts: 5 }],
  [
    'non-ascii',
    { body_text: message({ job: '"urn:bücher:verkauft"', trace: '"spur-é"', meta: meta({ id: '"nr-☕"', lang: '"日本"' }) }) },
    { urn: 'urn:bücher:verkauft', trace: 'spur-é', id: 'nr-☕', lang: '日本' },
  ],
  ['duplicates', { body_text: `{"attempts":9,"trace_id":"first",${message({ attempts: '4' }).slice(1)}` }, { attempts: 4 }],
  ['forbidden-beside', { file: 'fixtures/forbidden-meta.json' }, {}],
  ['without-id', { file: 'fixtures/id-absent.json' }, { id: null }],
  ['without-language', { file: 'fixtures/lang-absent.json' }, { lang: null }],
  ['without-time', { file: 'fixtures/created-at-absent.json' }, { created: null }],
  ['without-trace', { file: 'fixtures/trace-id-absent.json' }, { trace: null }],
  ['without-attempts', { file: 'fixtures/attempts-absent.json' }, { attempts: null }],
  ['without-version', { file: 'fixtures/version-absent.json' }, { version: null }],
  ['without-meta', { file: 'fixtures/meta-absent.json' }, { id: null, version: null, lang: null, created: null }],
  [
    'nulls',
    { body_text: message({ trace: 'null', attempts: 'null', meta: meta({ id: 'null', lang: 'null', created_at: 'null' }) }) },
    { trace: null, attempts: null, id: null, lang: null, created: null },
  ],
  ['job-alone', { body_text: `{"job":"${URN}"}` }, { trace: null, id: null, version: null, lang: null, created: null, attempts: null }],
  ['time-zero', { file: 'fixtures/created-at-zero.json' }, { created: 0 }],
  ['negative-numbers', { body_text: message({ attempts: '-1', meta: meta({ created_at: '-5' }) }) }, { attempts: -1, created: -5 }],
  ['small-time-is-still-a-long', { body_text: message({ meta: meta({ created_at: '7' }) }) }, { created: 7 }],
  ['empty-texts', { body_text: message({ trace: '""', meta: meta({ id: '""', lang: '""' }) }) }, { trace: '', id: '', lang: '' }],
];

export function project(broker, facts) {
  const sections = {};
  const types = {};
  const nowhere = [];
  for (const [section, fields] of Object.entries(TABLES[broker])) {
    for (const [key, [fact, native, type]] of Object.entries(fields)) {
      const value = fact !== null && facts[fact] === null ? undefined : native(facts[fact]);
      if (value === undefined) nowhere.push(`/sections/${section}/${key}`);
      else {
        (sections[section] ??= {})[key] = value;
        types[`/${section}/${key}`] = type;
      }
    }
  }
  return { sections, types, nowhere };
}

// A message that needs an ordered queue's id is no sample of SQS; there is no FIFO here.
export const projection = (broker) => ({
  operation: 'project',
  cases: SAMPLES.map(([name, given, changes]) => {
    const { sections, types, nowhere } = project(broker, { ...FACTS, ...changes });
    const kept = given.file ? { body_file: given.file } : { body_text: given.body_text };
    const expect = { contains: { sections }, bytes: kept, ...(nowhere.length ? { nowhere } : {}), ...(Object.keys(types).length ? { types } : {}) };
    return { name, clause: nowhere.length ? 'bindings/absent-facts' : `${broker}/projection`, given, expect };
  }),
});

const TRACEPARENT = '00-4e1c0b7a9d2f46538c7e1a2b3c4d5e6f-b7ad6b7169203331-01';
const BESIDE = {
  redis: ['headers', String, 'text'],
  rabbitmq: ['headers', String, 'text'],
  sqs: ['message_attributes', (value) => ({ DataType: 'String', StringValue: value }), 'String'],
  servicebus: ['application_properties', String, 'text'],
  pulsar: ['properties', String, 'text'], kafka: ['headers', String, 'bytes'], artemis: ['application_properties', String, 'text'],
};

// Out-of-band headers ride beside the view; a name of the contract wins.
export function headers(broker) {
  const [section, native, type] = BESIDE[broker];
  const named = (key) => (broker === 'artemis' ? key.replaceAll('-', '_') : key);
  const file = 'fixtures/ledger-entry-posted.json';
  const ride = (name, sent) => ({
    name, clause: 'bindings/out-of-band', given: { file, options: { headers: sent } },
    expect: { contains: { sections: { [section]: Object.fromEntries(Object.entries(sent).map(([key, value]) => [named(key), native(value)])) } }, bytes: { body_file: file }, types: Object.fromEntries(Object.keys(sent).map((key) => [`/${section}/${named(key)}`, type])) },
  });
  const contract = Object.entries(TABLES[broker][section] ?? {});
  const plain = project(broker, FACTS).sections[section] ?? {};
  return {
    operation: 'project',
    cases: [
      ride('traceparent', { traceparent: TRACEPARENT }),
      ride('tracestate', { traceparent: TRACEPARENT, tracestate: 'a=1,b=2' }),
      ride('replay-bypass', { 'bq-replay-bypass': '1' }),
      ride('own-header', { tenant: 'acme-é' }),
      ...contract.map(([key]) => ({
        name: `contract-wins-${key.replaceAll('_', '-')}`,
        clause: 'bindings/out-of-band',
        given: { file, options: { headers: { [key]: 'evil', tenant: 'x' } } },
        expect: { contains: { sections: { [section]: { ...plain, tenant: native('x') } } }, bytes: { body_file: file } },
      })),
      ...contract.filter(([, [fact]]) => fact === 'id' || fact === 'lang').slice(0, 1).map(([key]) => ({
        name: 'contract-name-is-not-free-when-absent', clause: 'bindings/out-of-band',
        given: { body_text: message({ meta: meta({ id: null, lang: null }) }), options: { headers: { [key]: 'evil' } } },
        expect: { contains: { sections: {} }, nowhere: [`/sections/${section}/${key}`] },
      })),
    ],
  };
}
