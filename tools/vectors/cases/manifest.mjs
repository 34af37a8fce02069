// The manifest: every section with its scope, in the grammar of conformance suite 1.8.0.
import { brokers } from './brokers.mjs';
import { clauses } from './clauses.mjs';
import * as envelope from './envelope.mjs';
import { cases } from './fixtures.mjs';
import * as records from './records.mjs';
import * as rules from './rules.mjs';
import { identity_verdict, kafka_poison } from './verdicts.mjs';
import { backoff, delay, redis_delay, redis_element, redis_layout, version_gates } from './waits.mjs';

const VERSION = '1.1.0';
const SCOPES = { rabbitmq: 'amqp', servicebus: 'asb' };
const scope = (broker) => SCOPES[broker] ?? broker;

const vectors = (bytes) => Object.fromEntries(Object.entries(bytes).map(([theme, { description, vectors: all }]) => [
  theme, { description, file: `bytes/${theme}.json`, cases: all.map(({ name, clause }) => ({ name, clause })) },
]));

export function manifest(bytes) {
  const core = {
    bytes: { description: 'The canonical bytes of a message, or its rejection. Each theme has a file with its vectors.', ...vectors(bytes) },
    cases,
    roundtrip: envelope.roundtrip,
    data_shape: envelope.data_shape,
    forbidden_keys: envelope.forbidden_keys,
    encode_reject: envelope.encode_reject,
    extension_write: envelope.extension_write,
    trim: envelope.trim,
    job_type: envelope.job_type,
    make: envelope.make,
    identity_verdict,
    poison_dlq: records.poison_dlq,
    retry_bytes: records.retry_bytes,
    dead_letter_bytes: records.dead_letter_bytes,
    redrive_bytes: records.redrive_bytes,
    idempotency: rules.idempotency,
    payload_schema: rules.payload_schema,
    payload_schema_unicode: rules.payload_schema_unicode,
    payload_violation: rules.payload_violation,
    retry_backoff: rules.retry_backoff,
  };
  const scoped = {
    traceparent: ['otel', rules.traceparent],
    ...Object.fromEntries(Object.entries(brokers).map(([broker, block]) => [broker, [scope(broker), block]])),
    redis_delay: ['redis', redis_delay], redis_layout: ['redis', redis_layout], redis_element: ['redis', redis_element],
    delay: ['sqs', delay], backoff: ['kafka', backoff], kafka_poison: ['kafka', kafka_poison],
    ...Object.fromEntries(Object.entries(version_gates).map(([name, block]) => [name, [scope(name.replace('version_gate_', '')), block]])),
  };
  const sections = {
    ...Object.fromEntries(Object.keys(core).map((name) => [name, { scope: 'core' }])),
    ...Object.fromEntries(Object.entries(scoped).map(([name, [where]]) => [name, { scope: where }])),
  };
  return {
    schema_version: 1,
    conformance_version: VERSION,
    suite: 'tallystick',
    description: 'The message contract as test cases. A text means its UTF-8 bytes; a member that ends in _text is sent as base64.',
    sections, clauses, ...core,
    ...Object.fromEntries(Object.entries(scoped).map(([name, [, block]]) => [name, block])),
  };
}
