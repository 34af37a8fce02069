// The Node subject: it speaks the stdio protocol (docs/reference/protocol.md), one JSON object per
// line. It reports what it does and never judges.
import { accepts, decode, make, mustDecode, Rejected } from './envelope.mjs';
import { Num, read, utf8Text } from './read.mjs';
import { deadLetter, poisonRecord, redrive, spliceAttempts } from './splice.mjs';
import { canonicalEnvelope, canonicalValue, overflows } from './write.mjs';

const base64 = (text) => Buffer.from(text, 'utf8').toString('base64');
const bytes = (text) => ({ bytes_base64: base64(text) });
const map = (plain) => new Map(Object.entries(plain));

function block(given, reason, attempts) {
  return map({
    reason,
    error: given.get('error') ?? null,
    exception: given.get('exception') ?? null,
    failed_at: given.get('failed_at') ?? new Num('0'),
    original_queue: given.get('original_queue') ?? null,
    attempts,
    lang: given.get('lang') ?? 'node',
  });
}

function written(body, changes = {}) {
  const { envelope, warnings } = mustDecode(body);
  const changed = new Map([...envelope, ...map(changes)]);
  if (overflows(changed)) throw new Rejected('a number is beyond the range of a double');
  return { source: canonicalEnvelope(changed), warnings };
}

const splice = (body, change) => bytes(change(mustDecode(body).document.source));

const operations = {
  canonical: (body) => {
    if (!accepts(mustDecode(body).envelope)) throw new Rejected('a consumer does not accept this envelope');
    return bytes(written(body).source);
  },
  reencode: (body, given) => {
    const attempts = given.get('attempts');
    const letter = given.get('dead_letter');
    const { source, warnings } = written(body, { attempts });
    if (!letter) return { ...bytes(source), warnings };
    return { ...bytes(deadLetter(source, block(letter, letter.get('reason'), attempts), attempts.text)), warnings };
  },
  decode: (body) => {
    const { verdict, reason, envelope, warnings } = decode(body);
    if (verdict !== 'ok') return { verdict, reason };
    const meta = envelope.get('meta');
    const result = {
      verdict, reason, warnings, accepted: accepts(envelope), urn: envelope.get('job'),
      attempts: envelope.get('attempts') ?? null,
      lang: meta?.get('lang') ?? null,
      schema_version: meta?.get('schema_version') ?? null,
    };
    for (const key of ['data', 'dead_letter']) {
      if (envelope.has(key)) result[`${key}_base64`] = base64(canonicalValue(envelope.get(key)));
    }
    return result;
  },
  make: (_, given) => bytes(canonicalEnvelope(make(given, (name) => bytesOf(given, name)))),
  retry: (body, given) => splice(body, (source) => spliceAttempts(source, given.get('attempts').text)),
  redrive: (body) => splice(body, redrive),
  dead_letter: (body, given) => {
    const letter = block(given, given.get('reason'), given.get('attempts'));
    return splice(body, (source) => deadLetter(source, letter, given.get('attempts').text));
  },
  poison_record: (body, given) => bytes(poisonRecord(body, block(given, 'poison', new Num('0')))),
};

function bytesOf(given, name) {
  const text = given.get(name) ?? '';
  const decoded = Buffer.from(text, 'base64');
  if (decoded.toString('base64') !== text) throw new Error(`${name} is not standard padded base64`);
  return decoded;
}

function run(request) {
  const id = request.get('id');
  const name = request.get('operation');
  if (!Object.hasOwn(operations, name)) return { id, unsupported: `this subject does not offer \`${name}\`` };
  try {
    const given = request.get('given');
    return { id, result: map(operations[name](bytesOf(given, 'body_base64'), given)) };
  } catch (error) {
    if (!(error instanceof Rejected)) return { id, error: String(error) };
    const place = error.pointer ? { pointer: error.pointer } : {};
    return { id, result: map({ rejected: error.message, ...place }) };
  }
}

const start = () => ({
  protocol: new Num('1'),
  name: 'tallystick-node',
  version: process.version,
  language: 'node',
  library: 'JSON.parse (grammar, strings) with an own walk for big integers, duplicates and order',
  operations: Object.keys(operations),
});

// One request per line; lines are cut at LF only, for U+2028 may stand inside a string.
let rest = [];
for await (const chunk of process.stdin) {
  let from = 0;
  for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
    const request = read(utf8Text(Buffer.concat([...rest, chunk.subarray(from, end)]))).value;
    rest = [];
    from = end + 1;
    if (request.get('op') === 'stop') process.exit(0);
    const answer = request.get('op') === 'run' ? run(request) : start();
    process.stdout.write(`${canonicalValue(map(answer))}\n`);
  }
  rest.push(chunk.subarray(from));
}
