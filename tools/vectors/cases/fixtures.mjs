// The fixtures: pure envelopes, each with what a consumer must read from it.
import { DEAD_LETTER, ID, message, META, meta, TRACE, URN } from '../text.mjs';

const spread = (text, space = 2) => `${JSON.stringify(JSON.parse(text), null, space)}\n`;
const from = (lang, queue, n) =>
  `{"id":"${n}a7d0c3e-5b1f-4c8e-9a64-7d20f1b3c5e${n}","queue":"${queue}","lang":"${lang}","schema_version":1,"created_at":${1767225600000 + n * 86400000}}`;
const good = (name, clause, text, expect, more = {}) => [name, { clause, text, valid: true, expect, ...more }];
const bad = (name, clause, text, more = {}) => [name, { clause, text, valid: false, producer_schema_valid: false, ...more }];
const says = (urn, data, attempts, lang, more = {}) => ({ urn, data, attempts, lang, schema_version: 1, ...more });
const LEDGER = { urn: URN, data: {}, attempts: 0, lang: 'go', schema_version: 1 };
const loose = { producer_schema_valid: false };
const block = JSON.parse(DEAD_LETTER);
const shape = 'envelope/shape';

const parcel = { parcel: 'PX-0042', weight_g: 1250, to: { city: 'Zürich', zip: '8001' }, tags: ['fragile', 'signed'] };
const reading = { sensor: 'roof-3', celsius: -12.5, humidity: 0.405, ok: true, note: null };
const rename = { user: 77, from: 'Ağca Çelik', to: '山田 太郎 ☕' };
const html = { body: '<p class="x">a & b</p>', path: 'https://example.org/a/b?c=d', quote: 'say "hi"', back: 'C:\\dir' };
const numbers = '{"rate":1.50,"count":1E2,"account":12345678901234567890,"half":5e-1}';
const large = { rows: Array.from({ length: 60 }, (_, n) => ({ n, code: `R-${String(n).padStart(3, '0')}`, text: `row ${n} of the large payload` })) };

export const fixtures = Object.fromEntries([
  good('ledger-entry-posted', shape, message({ data: '{"entry":9001,"amount":1299,"currency":"CHF"}' }), { ...LEDGER, data: { entry: 9001, amount: 1299, currency: 'CHF' } }),
  good('parcel-shipped', shape, message({ job: '"urn:babel:parcels:shipped"', meta: from('python', 'parcels', 1), data: JSON.stringify(parcel) }), says('urn:babel:parcels:shipped', parcel, 0, 'python')),
  good('sensor-reading', shape, message({ job: '"urn:babel:sensors:reading.taken"', meta: from('node', 'sensors', 2), data: JSON.stringify(reading) }), says('urn:babel:sensors:reading.taken', reading, 0, 'node')),
  good('booking-confirm', shape, message({ job: '"urn:babel:bookings:confirm"', meta: from('php', 'bookings', 3), data: '{"booking":"B7"}' }), says('urn:babel:bookings:confirm', { booking: 'B7' }, 0, 'php')),
  good('invoice-issued-v2', shape, message({ job: '"urn:babel:invoices:issued.v2"', meta: from('java', 'invoices', 4), data: '{"lines":[{"sku":"a","qty":2},{"sku":"b","qty":0}],"total":9007199254740991}' }), says('urn:babel:invoices:issued.v2', { lines: [{ sku: 'a', qty: 2 }, { sku: 'b', qty: 0 }], total: 9007199254740991 }, 0, 'java')),
  good('user-renamed', shape, message({ job: '"urn:babel:users:renamed"', meta: from('dotnet', 'users', 5), data: JSON.stringify(rename) }), says('urn:babel:users:renamed', rename, 0, 'dotnet')),
  good('empty-data', 'envelope/data-object', message(), LEDGER),
  good('retried-twice', shape, message({ attempts: '2' }), { ...LEDGER, attempts: 2 }),
  good('html-and-slashes', shape, message({ data: JSON.stringify(html) }), { ...LEDGER, data: html }),
  good('large-payload', shape, message({ data: JSON.stringify(large) }), { ...LEDGER, data: large }),
  good('created-at-zero', shape, message({ meta: meta({ created_at: '0' }) }), LEDGER),
  good('pretty-printed', 'canonical/no-white-space', spread(message({ data: '{"b":1,"a":[1,2]}' })), { ...LEDGER, data: { b: 1, a: [1, 2] } }),
  good('pretty-with-tabs', 'canonical/no-white-space', spread(message({ data: '{"a":{}}' }), '\t'), { ...LEDGER, data: { a: {} } }),
  good('reordered', 'canonical/member-order', `{"attempts":4,"meta":{"created_at":1767225600000,"schema_version":1,"lang":"go","queue":"ledger","id":"${ID}"},"data":{"z":1,"a":2},"trace_id":"${TRACE}","job":"${URN}"}`, { ...LEDGER, attempts: 4, data: { z: 1, a: 2 } }),
  good('escaped-text', 'canonical/strings-minimal', message({ data: '{"name":"caf\\u00e9","path":"a\\/b","pair":"\\ud83d\\ude00","ctl":"\\u0001\\b"}' }), { ...LEDGER, data: { name: 'café', path: 'a/b', pair: '😀', ctl: '\u0001\b' } }),
  good('odd-numbers', 'canonical/numbers-shortest', message({ data: numbers }), { ...LEDGER, data: undefined }),
  good('line-separators', 'canonical/strings-minimal', message({ data: '{"t":"a\u2028b\u2029c\u007f"}' }), { ...LEDGER, data: { t: 'a\u2028b\u2029c\u007f' } }),
  good('astral-keys', 'canonical/key-order', message({ data: '{"ﬁ":1,"😀":2,"a":3}' }), { ...LEDGER, data: { ﬁ: 1, '😀': 2, a: 3 } }),
  good('integer-like-keys', 'canonical/key-order', message({ data: '{"10":"ten","2":"two","a":"letter"}' }), { ...LEDGER, data: { 10: 'ten', 2: 'two', a: 'letter' } }),
  good('deep-data', 'canonical/depth', message({ data: `{"v":${'['.repeat(60)}1${']'.repeat(60)}}` }), { ...LEDGER, data: JSON.parse(`{"v":${'['.repeat(60)}1${']'.repeat(60)}}`) }),
  good('dead-lettered-failed', 'dead-letter/block', message({ attempts: '3', block: DEAD_LETTER }), { ...LEDGER, attempts: 3, dead_letter: block }),
  good('dead-lettered-unknown-urn', 'dead-letter/block', message({ attempts: '1', block: JSON.stringify({ ...block, reason: 'unknown_urn', error: null, attempts: 1 }) }), { ...LEDGER, attempts: 1, dead_letter: { reason: 'unknown_urn', error: null, exception: null, attempts: 1 } }),
  good('dead-lettered-with-more', 'envelope/unknown-survive', message({ attempts: '3', block: JSON.stringify({ ...block, host: 'worker-7', tries: [1, 2] }) }), { ...LEDGER, attempts: 3, dead_letter: { host: 'worker-7', tries: [1, 2] } }),
  good('dead-letter-null', 'dead-letter/block', message({ block: 'null' }), LEDGER, loose),
  good('unknown-top-level', 'envelope/unknown-survive', message({ more: '"tenant":"acme","priority":7,"tags":["a",{"b":null}],"flags":{}' }), LEDGER),
  good('unknown-with-a-colon', 'envelope/unknown-survive', message({ more: '"tallystick:body":"mine","kept_body":[0]' }), LEDGER),
  good('unknown-meta', 'envelope/unknown-survive', message({ meta: meta({}, '"region":"eu-central-1","hops":[1,2,3],"canary":false') }), LEDGER),
  good('meta-ext-vendor', 'envelope/unknown-survive', message({ meta: meta({}, '"ext":{"acme":{"build":"7f3","shard":12,"opts":{},"list":[]}}') }), LEDGER),
  good('unknown-lang', 'envelope/lang-open', message({ meta: meta({ lang: '"cobol"' }) }), { ...LEDGER, lang: 'cobol' }, loose),
  good('lang-absent', 'envelope/not-checked', message({ meta: meta({ lang: null }) }), { ...LEDGER, lang: null }, loose),
  good('short-trace-id', 'envelope/not-checked', message({ trace: '"t"' }), LEDGER, loose),
  good('no-break-space-trace-id', 'envelope/blank', message({ trace: '"\u00a0"' }), LEDGER, loose),
  good('id-not-a-uuid', 'envelope/not-checked', message({ meta: meta({ id: '"42"' }) }), LEDGER, loose),
  good('id-absent', 'envelope/not-checked', message({ meta: meta({ id: null }) }), LEDGER, loose),
  good('created-at-absent', 'envelope/not-checked', message({ meta: meta({ created_at: null }) }), LEDGER, loose),
  good('created-at-negative', 'envelope/not-checked', message({ meta: meta({ created_at: '-1' }) }), LEDGER, loose),
  good('attempts-negative', 'envelope/not-checked', message({ attempts: '-1' }), { ...LEDGER, attempts: -1 }, loose),
  good('queue-empty', 'envelope/not-checked', message({ meta: meta({ queue: '""' }) }), LEDGER, loose),
  good('urn-without-scheme', 'envelope/not-checked', message({ job: '"EntryPosted"' }), { ...LEDGER, urn: 'EntryPosted' }),
  good('upper-case-urn', 'envelope/not-checked', message({ job: '"URN:Babel:Ledger"' }), { ...LEDGER, urn: 'URN:Babel:Ledger' }),
  good('padded-job', 'envelope/trim', message({ job: '"  urn:babel:x\\t"' }), { ...LEDGER, urn: '  urn:babel:x\t' }),
  good('urn-alias', 'envelope/alias', message({ job: null, more: '"urn":"urn:babel:alias:used"' }), { ...LEDGER, urn: 'urn:babel:alias:used' }, loose),
  good('urn-alias-first', 'envelope/alias', `{"urn":"urn:babel:alias:first",${message({ job: null }).slice(1)}`, { ...LEDGER, urn: 'urn:babel:alias:first' }, loose),
  good('job-and-urn', 'envelope/alias', message({ more: '"urn":"urn:babel:other:one"' }), LEDGER),
  good('blank-job-and-urn', 'envelope/blank', message({ job: '" \\t"', more: '"urn":"urn:babel:b:c"' }), { ...LEDGER, urn: 'urn:babel:b:c' }),
  good('null-job-and-urn', 'envelope/job-type', message({ job: 'null', more: '"urn":"urn:babel:b:c"' }), { ...LEDGER, urn: 'urn:babel:b:c' }, loose),
  good('duplicate-members', 'envelope/duplicates', `{"data":{"first":1},"attempts":9,${message({ data: '{"last":1,"last":2}', more: '"attempts":5' }).slice(1)}`, { ...LEDGER, data: { last: 2 }, attempts: 5 }),
  good('duplicate-meta', 'envelope/duplicates', `{"meta":{"schema_version":2,"lang":"php","extra":1},${message().slice(1)}`, LEDGER),
  good('wrong-case-beside', 'envelope/case-sensitive', `{"JOB":"urn:x","ATTEMPTS":7,"Data":[],${message().slice(1)}`, LEDGER),
  good('attempts-beyond-2-53', 'canonical/integers-exact', message({ attempts: '9007199254740992' }), { ...LEDGER, attempts: 9007199254740992 }),
  good('forbidden-timestamp', 'envelope/forbidden-read', message({ more: '"timestamp":1767225600' }), LEDGER),
  good('forbidden-meta', 'envelope/forbidden-read', message({ meta: meta({}, '"max_retries":5,"attempts":1,"source":"api","ts":1767225600,"kept":1') }), LEDGER),
  bad('version-two', 'envelope/accepts-version', message({ meta: meta({ schema_version: '2' }) })),
  bad('version-zero', 'envelope/accepts-version', message({ meta: meta({ schema_version: '0' }) })),
  bad('version-absent', 'envelope/accepts-version', message({ meta: meta({ schema_version: null }) })),
  bad('version-in-an-earlier-meta', 'envelope/duplicates', `{"meta":{"schema_version":1,"lang":"php"},${message({ job: null, meta: '{"lang":"go"}', more: '"urn":"urn:babel:x"' }).slice(1)}`),
  bad('version-null', 'envelope/accepts-version', message({ meta: meta({ schema_version: 'null' }) })),
  bad('version-true', 'envelope/accepts-version', message({ meta: meta({ schema_version: 'true' }) })),
  bad('version-text', 'envelope/accepts-version', message({ meta: meta({ schema_version: '"1"' }) })),
  bad('meta-absent', 'envelope/accepts-version', message({ meta: null })),
  bad('meta-null', 'envelope/accepts-version', message({ meta: 'null' })),
  bad('data-absent', 'envelope/data-object', message({ data: null })),
  bad('data-null', 'envelope/data-object', message({ data: 'null' })),
  bad('data-array', 'envelope/data-object', message({ data: '[]' })),
  bad('data-text', 'envelope/data-object', message({ data: '"{}"' })),
  bad('attempts-absent', 'envelope/accepts-attempts', message({ attempts: null })),
  bad('attempts-null', 'envelope/accepts-attempts', message({ attempts: 'null' })),
  bad('attempts-true', 'envelope/accepts-attempts', message({ attempts: 'true' })),
  bad('attempts-text', 'envelope/accepts-attempts', message({ attempts: '"3"' })),
  bad('attempts-fraction', 'envelope/accepts-attempts', message({ attempts: '1.5' })),
  bad('trace-id-absent', 'envelope/accepts-trace', message({ trace: null })),
  bad('trace-id-null', 'envelope/accepts-trace', message({ trace: 'null' })),
  bad('trace-id-empty', 'envelope/accepts-trace', message({ trace: '""' })),
  bad('trace-id-blank', 'envelope/accepts-trace', message({ trace: '" \\t\\n\\u000b\\f\\r"' })),
  bad('no-identity', 'envelope/identity', message({ job: null })),
  bad('wrong-case-job', 'envelope/case-sensitive', message({ job: null, more: '"JOB":"urn:babel:x"' })),
  bad('wrong-case-meta', 'envelope/case-sensitive', message({ meta: null, more: `"Meta":${META}` })),
]);

// One case per fixture.
export const cases = Object.entries(fixtures).map(([name, { clause, valid, expect, producer_schema_valid }]) => ({
  name, clause, file: `fixtures/${name}.json`, valid, producer_schema_valid, ...(expect ? { expect } : {}),
}));
