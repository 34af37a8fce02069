// The envelope: verdict, identity (`job`, or its alias `urn`), what is dropped with a warning,
// the consumer's five checks, and making a new message.
import { randomUUID } from 'node:crypto';
import { DATA, ENVELOPE, Num, read, utf8Text } from './read.mjs';
import { ENVELOPE_ORDER, overflows } from './write.mjs';

const FORBIDDEN_TOP = ['timestamp'];
const FORBIDDEN_META = ['max_retries', 'attempts', 'source', 'ts'];
// How many containers stand around each part of a new message.
const PART_LEVELS = { data: 1, meta: 1, extras_meta: 1, extras_top: 0, meta_entries: 0 };

export class Rejected extends Error {
  constructor(reason, pointer = '') {
    super(reason);
    this.pointer = pointer;
  }
}

const trim = (text) => text.replace(/^[ \t\n\v\f\r]+/, '').replace(/[ \t\n\v\f\r]+$/, '');
const isIdentity = (value) => typeof value === 'string' && /[^ \t\n\v\f\r]/.test(value);

// Gives {verdict, reason, pointer} and, when ok, {document, envelope, warnings}.
export function decode(body) {
  let document;
  try {
    document = read(utf8Text(body), ENVELOPE);
  } catch (error) {
    if (!(error instanceof SyntaxError) && error.code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error;
    return { verdict: 'poison', reason: error.message };
  }
  const envelope = document.value;
  if (envelope === null) return { verdict: 'no_identity', reason: 'null has no identity' };
  if (!(envelope instanceof Map)) return { verdict: 'poison', reason: 'not a JSON object' };
  if (document.problem) {
    const { reason, pointer } = document.problem;
    return { verdict: 'poison', reason: `${pointer} ${reason}`.trim(), pointer };
  }
  const warnings = [];
  const job = envelope.get('job');
  if (isIdentity(job)) {
    if (envelope.has('urn')) warnings.push('/urn');
  } else if (isIdentity(envelope.get('urn'))) {
    if (envelope.has('job') && typeof job !== 'string') warnings.push('/job');
    envelope.set('job', envelope.get('urn'));
  } else return { verdict: 'no_identity', reason: 'neither `job` nor `urn` is a non-blank string' };
  envelope.delete('urn');
  for (const key of FORBIDDEN_TOP) if (envelope.delete(key)) warnings.push(`/${key}`);
  const meta = envelope.get('meta');
  for (const key of FORBIDDEN_META) if (meta?.delete(key)) warnings.push(`/meta/${key}`);
  return { verdict: 'ok', reason: '', document, envelope, warnings };
}

export function mustDecode(body) {
  const found = decode(body);
  if (found.verdict !== 'ok') throw new Rejected(`${found.verdict}: ${found.reason}`, found.pointer);
  return found;
}

export const accepts = (envelope) =>
  envelope.get('meta')?.get('schema_version')?.text === '1' &&
  envelope.get('data') instanceof Map &&
  envelope.get('attempts') instanceof Num &&
  isIdentity(envelope.get('trace_id'));

// Builds a new message, or throws `Rejected` when it may not be written.
export function make(given, bytesOf) {
  if (!isIdentity(given.get('urn'))) throw new Rejected('the URN is blank', '/job');
  const parts = {};
  for (const [name, level] of Object.entries(PART_LEVELS)) {
    if (given.has(`${name}_base64`)) parts[name] = readPart(name, bytesOf(`${name}_base64`), level);
  }
  if (!(parts.data instanceof Map)) throw new Rejected('`data` must be an object', '/data');
  const meta = new Map([
    ['id', randomUUID()],
    ['queue', given.get('queue') ?? 'default'],
    ['lang', 'node'],
    ['schema_version', new Num('1')],
    ['created_at', new Num(String(Date.now()))],
  ]);
  for (const [key, value] of [...(parts.meta ?? []), ...(parts.meta_entries ?? []), ...(parts.extras_meta ?? [])]) {
    if (meta.has(key) || FORBIDDEN_META.includes(key)) throw new Rejected('this key may not be written', `/meta/${key}`);
    meta.set(key, value);
  }
  for (const key of parts.extras_top?.keys() ?? []) {
    if ([...ENVELOPE_ORDER, ...FORBIDDEN_TOP, 'urn'].includes(key)) {
      throw new Rejected('this key may not be written', `/${key}`);
    }
  }
  const traceId = given.get('trace_id');
  return new Map([
    ['job', trim(given.get('urn'))],
    ['trace_id', isIdentity(traceId) ? trim(traceId) : randomUUID()],
    ['data', parts.data],
    ['meta', meta],
    ['attempts', new Num('0')],
    ...(parts.extras_top ?? []),
  ]);
}

function readPart(name, bytes, level) {
  let document;
  try {
    document = read(utf8Text(bytes), name === 'data' ? DATA : undefined, level);
  } catch (error) {
    throw new Rejected(`${name}: ${error.message}`);
  }
  if (overflows(document.value) || document.problem) throw new Rejected(`${name} holds a number beyond the range of a double`);
  return document.value;
}
