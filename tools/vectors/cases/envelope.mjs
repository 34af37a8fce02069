// The sections about the message itself: what survives a hop, what may not be written, trimming.
import { DEAD_LETTER, ID, Literal, message, meta, TRACE, URN } from '../text.mjs';

const kept = (name, clause, source, preserved, more = {}) => ({ name, clause, ...source, expect_attempts: more.attempts ?? 1, expect_preserved: preserved, ...more.fields });
const file = (name) => ({ file: `fixtures/${name}.json` });
const body = (text) => ({ body: text });
const SURVIVE = 'envelope/unknown-survive';
const moved = { apply_dead_letter: { reason: 'failed', original_queue: 'ledger' }, expect_dead_letter: { reason: 'failed', original_queue: 'ledger', error: null, exception: null } };

export const roundtrip = {
  description: 'Decode without a warning, add one attempt, encode: every member is kept, with its JSON type.',
  cases: [
    kept('plain', 'envelope/shape', file('ledger-entry-posted'), { '/job': URN, '/trace_id': TRACE, '/meta/id': ID, '/data/entry': 9001, '/meta/created_at': 1767225600000 }),
    kept('unknown-top-level', SURVIVE, file('unknown-top-level'), { '/tenant': 'acme', '/priority': 7, '/tags': ['a', { b: null }], '/flags': {} }),
    kept('unknown-with-a-colon', SURVIVE, file('unknown-with-a-colon'), { '/tallystick:body': 'mine', '/kept_body': [0] }),
    kept('unknown-meta', SURVIVE, file('unknown-meta'), { '/meta/region': 'eu-central-1', '/meta/hops': [1, 2, 3], '/meta/canary': false, '/meta/lang': 'go' }),
    kept('meta-ext-vendor', SURVIVE, file('meta-ext-vendor'), { '/meta/ext': { acme: { build: '7f3', shard: 12, opts: {}, list: [] } } }),
    kept('dead-letter-stays', SURVIVE, file('dead-lettered-with-more'), { '/dead_letter/host': 'worker-7', '/dead_letter/tries': [1, 2], '/dead_letter/reason': 'failed' }, { attempts: 4 }),
    kept('empty-data-stays-an-object', 'envelope/data-object', file('empty-data'), { '/data': {} }),
    kept('unknown-lang', 'envelope/lang-open', file('unknown-lang'), { '/meta/lang': 'cobol' }),
    kept('alias-becomes-job', 'envelope/alias', file('urn-alias'), { '/job': 'urn:babel:alias:used' }, { fields: { expect_absent_after_reencode: ['/urn'] } }),
    kept('alias-first-becomes-job', 'envelope/alias', file('urn-alias-first'), { '/job': 'urn:babel:alias:first' }, { fields: { expect_absent_after_reencode: ['/urn'] } }),
    kept('blank-job-takes-the-alias', 'envelope/blank', file('blank-job-and-urn'), { '/job': 'urn:babel:b:c' }, { fields: { expect_absent_after_reencode: ['/urn'] } }),
    kept('wrong-case-members-stay', 'envelope/case-sensitive', file('wrong-case-beside'), { '/JOB': 'urn:x', '/ATTEMPTS': 7, '/Data': [] }),
    kept('padded-job-stays', 'envelope/trim', file('padded-job'), { '/job': '  urn:babel:x\t' }),
    kept('not-a-uuid-stays', 'envelope/not-checked', file('id-not-a-uuid'), { '/meta/id': '42' }),
    kept('unicode-stays', SURVIVE, file('user-renamed'), { '/data/from': 'Ağca Çelik', '/data/to': '山田 太郎 ☕' }),
    kept('null-members-stay', 'canonical/absent-is-not-null', body(message({ block: 'null', more: '"x":null', data: '{"a":null}' })), { '/dead_letter': null, '/x': null, '/data': { a: null } }),
    kept('absent-members-stay-absent', 'canonical/absent-is-not-null', file('id-absent'), { '/meta/queue': 'ledger' }, { fields: { expect_absent_after_reencode: ['/meta/id', '/dead_letter'] } }),
    kept('duplicates-collapse-to-the-last', 'envelope/duplicates', file('duplicate-members'), { '/data': { last: 2 } }, { attempts: 6, fields: { expect_absent_after_reencode: ['/data/first'] } }),
    kept('duplicate-meta-is-not-merged', 'envelope/duplicates', file('duplicate-meta'), { '/meta/lang': 'go' }, { fields: { expect_absent_after_reencode: ['/meta/extra'] } }),
    kept('pointer-names-with-slash-and-tilde', SURVIVE, body(message({ more: '"a/b":1,"m~n":2' })), { '/a~1b': 1, '/m~0n': 2 }),
    kept('exact-integers', 'canonical/integers-exact', body(message({ data: '{"n":9007199254740993}', more: '"big":18446744073709551617' })), { '/data': { n: new Literal('9007199254740993') }, '/big': new Literal('18446744073709551617') }),
    kept('moved-plain', 'dead-letter/block', file('ledger-entry-posted'), { '/data/entry': 9001, '/meta/id': ID }, { attempts: 3, fields: { ...moved, expect_dead_letter: { ...moved.expect_dead_letter, attempts: 3 } } }),
    kept('moved-with-unknown-top-level', SURVIVE, file('unknown-top-level'), { '/tenant': 'acme', '/flags': {} }, { attempts: 3, fields: moved }),
    kept('moved-with-unknown-meta', SURVIVE, file('unknown-meta'), { '/meta/region': 'eu-central-1', '/meta/hops': [1, 2, 3] }, { attempts: 3, fields: moved }),
    kept('moved-with-vendor-extension', SURVIVE, file('meta-ext-vendor'), { '/meta/ext/acme/shard': 12 }, { attempts: 1, fields: moved }),
    kept('moved-again-has-one-block', 'dead-letter/block', file('dead-lettered-unknown-urn'), { '/job': URN }, { attempts: 4, fields: moved }),
    kept('moved-for-an-unknown-urn', 'dead-letter/block', file('parcel-shipped'), { '/data/parcel': 'PX-0042' }, { attempts: 1, fields: { apply_dead_letter: { reason: 'unknown_urn', original_queue: 'parcels' }, expect_dead_letter: { reason: 'unknown_urn', original_queue: 'parcels', attempts: 1 } } }),
  ],
};

const made = (name, data, text) => ({ name, clause: 'envelope/data-object', mode: 'encode', urn: 'urn:acme:x', queue: 'q', data, expect_encoded_data_json: text });

export const data_shape = {
  description: 'The payload is a JSON object, both when reading and when writing.',
  cases: [
    made('empty-object', {}, '{}'),
    made('empty-containers', { a: {}, b: [] }, '{"a":{},"b":[]}'),
    made('null-inside', { a: null }, '{"a":null}'),
    made('numeric-keys', { 0: 'a', 1: 'b' }, '{"0":"a","1":"b"}'),
    made('nested', { a: [{ b: [1, 'x', true] }] }, '{"a":[{"b":[1,"x",true]}]}'),
    ...[['array', '[]'], ['array-of-objects', '[{}]'], ['null', 'null'], ['text', '""'], ['number', '0'], ['true', 'true']].map(([what, data]) => ({ name: `data-${what}-is-not-accepted`, clause: 'envelope/data-object', mode: 'decode', body: message({ data }), valid: false })),
    { name: 'data-absent-is-not-accepted', clause: 'envelope/data-object', mode: 'decode', body: message({ data: null }), valid: false },
    { name: 'data-object-is-accepted', clause: 'envelope/data-object', mode: 'decode', body: message({ data: '{"a":[]}' }), valid: true },
  ],
};

const warn = (name, pointer, text, preserved = {}) => ({ name, clause: 'envelope/forbidden-read', body: text, forbidden_key: pointer, expect: 'warn', expect_absent_after_reencode: [pointer], expect_preserved: preserved });
const FORBIDDEN_META = ['max_retries', 'attempts', 'source', 'ts'];
const dash = (name) => name.replaceAll('_', '-');

export const forbidden_keys = {
  description: 'A forbidden member gives a warning with its name on reading, is dropped, and is never written.',
  cases: [
    warn('timestamp', '/timestamp', message({ more: '"timestamp":1767225600' })),
    warn('timestamp-object', '/timestamp', message({ more: '"timestamp":{"s":1}' })),
    warn('timestamp-null', '/timestamp', message({ more: '"timestamp":null' })),
    warn('timestamp-first', '/timestamp', `{"timestamp":"now",${message().slice(1)}`, { '/job': URN }),
    ...FORBIDDEN_META.map((name) => warn(`meta-${dash(name)}`, `/meta/${name}`, message({ meta: meta({}, `"${name}":3,"kept":"yes"`) }), { '/meta/kept': 'yes', '/meta/queue': 'ledger' })),
    ...FORBIDDEN_META.map((name) => warn(`meta-${dash(name)}-null`, `/meta/${name}`, message({ meta: meta({}, `"${name}":null`) }))),
    warn('job-and-urn', '/urn', message({ more: '"urn":"urn:babel:other:one"' }), { '/job': URN }),
    warn('job-and-null-urn', '/urn', message({ more: '"urn":null' }), { '/job': URN }),
    warn('no-break-space-job-and-urn', '/urn', message({ job: '"\\u3000"', more: '"urn":"urn:x"' }), { '/job': '\u3000' }),
    warn('beside-unknown-members', '/meta/source', message({ meta: meta({}, '"source":"x","ext":{"acme":{"source":"y"}}'), more: '"source":"z"' }), { '/meta/ext': { acme: { source: 'y' } }, '/source': 'z' }),
    warn('meta-attempts-does-not-touch-attempts', '/meta/attempts', message({ attempts: '2', meta: meta({}, '"attempts":9') }), { '/attempts': 2 }),
  ],
};

const no = (name, clause, fields, key) => ({ name, clause, urn: 'urn:acme:orders:made', queue: 'orders', data: { n: 1 }, ...fields, offending_key: key, expect: 'reject' });
const CORE_META = ['id', 'queue', 'lang', 'schema_version', 'created_at'];
const CORE_TOP = ['job', 'trace_id', 'data', 'meta', 'attempts', 'dead_letter'];

export const encode_reject = {
  description: 'Writing one of these members is an error: nothing is written, and the member is not dropped silently.',
  cases: [
    no('top-timestamp', 'envelope/forbidden-write', { extras_top: { timestamp: 1 } }, '/timestamp'),
    no('top-timestamp-null', 'envelope/forbidden-write', { extras_top: { timestamp: null } }, '/timestamp'),
    no('top-urn', 'envelope/forbidden-write', { extras_top: { urn: 'urn:x' } }, '/urn'),
    no('top-urn-beside-a-good-one', 'envelope/forbidden-write', { extras_top: { tenant: 'acme', urn: 'urn:x' } }, '/urn'),
    ...FORBIDDEN_META.map((name) => no(`meta-api-${dash(name)}`, 'envelope/forbidden-write', { meta: { [name]: 1 } }, `/meta/${name}`)),
    ...FORBIDDEN_META.map((name) => no(`extras-meta-${dash(name)}`, 'envelope/forbidden-write', { extras_meta: { [name]: 1 } }, `/meta/${name}`)),
    ...CORE_META.map((name) => no(`meta-api-core-${dash(name)}`, 'envelope/meta-write', { meta: { [name]: 'x' } }, `/meta/${name}`)),
    ...CORE_TOP.map((name) => no(`extras-top-core-${dash(name)}`, 'envelope/meta-write', { extras_top: { [name]: {} } }, `/${name}`)),
    no('meta-api-good-and-bad', 'envelope/meta-write', { meta: { region: 'eu', queue: 'x' } }, '/meta/queue'),
    no('meta-entry-twice', 'envelope/meta-write', { meta_entries: [['region', 'eu'], ['region', 'us']] }, '/meta/region'),
    no('meta-entry-core', 'envelope/meta-write', { meta_entries: [['id', 'x']] }, '/meta/id'),
    no('blank-urn', 'envelope/trim', { urn: ' \t\n\u000b\f\r' }, '/job'),
    no('empty-urn', 'envelope/trim', { urn: '' }, '/job'),
  ],
};

const ext = (name, meta_, expected, more = {}) => ({ name, clause: 'envelope/meta-write', urn: 'urn:acme:orders:made', queue: 'orders', data: { n: 1 }, meta: meta_, expect_envelope: { '/job': 'urn:acme:orders:made', '/meta/queue': 'orders', '/meta/schema_version': 1, '/attempts': 0, '/data': { n: 1 }, ...expected }, ...more });

export const extension_write = {
  description: 'Extra entries of `meta` are written beside the core members and are kept on the next retry.',
  cases: [
    ext('flag', { canary: true }, { '/meta/canary': true }),
    ext('vendor', { ext: { acme: { shard: 3, opts: {} } } }, { '/meta/ext': { acme: { shard: 3, opts: {} } } }),
    ext('two-vendors', { ext: { acme: { a: 1 }, zeta: { b: [] } } }, { '/meta/ext/acme/a': 1, '/meta/ext/zeta/b': [] }),
    ext('every-kind', { a: null, b: false, c: 0, d: '', e: [], f: {} }, { '/meta/a': null, '/meta/b': false, '/meta/c': 0, '/meta/d': '', '/meta/e': [], '/meta/f': {} }),
    ext('names-like-core-in-other-case', { ID: 1, Queue: 2 }, { '/meta/ID': 1, '/meta/Queue': 2 }),
    ext('forbidden-names-below-ext', { ext: { acme: { ts: 1, source: 2 } } }, { '/meta/ext/acme': { ts: 1, source: 2 } }),
    ext('unicode', { note: 'Grüße ☕' }, { '/meta/note': 'Grüße ☕' }),
    ext('nothing', {}, {}),
    ext('top-level-extension', {}, { '/tenant': 'acme', '/flags': { a: [] } }, { extras_top: { tenant: 'acme', flags: { a: [] } } }),
    ext('top-level-names-of-meta', {}, { '/id': 'x', '/source': 'y' }, { extras_top: { id: 'x', source: 'y' } }),
  ],
};

const UUID4 = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const pattern = ({ trace = UUID4, data = '{"n":1}', queue = 'q', metaMore = '', more = '' } = {}) =>
  `\\{"job":"urn:acme:a","trace_id":"${trace}","data":${literal(data)},"meta":\\{"id":"${UUID4}","queue":"${queue}","lang":"[a-z]+","schema_version":1,"created_at":[0-9]{13}${literal(metaMore)}\\},"attempts":0${literal(more)}\\}`;
const writes = (name, clause, given, parts) => ({ name, clause, given: { urn: 'urn:acme:a', queue: 'q', data_text: '{"n":1}', ...given }, expect: { matches: { bytes_base64: pattern(parts) } } });
const refuses = (name, clause, given, code, pointer) => ({ name, clause, given: { urn: 'urn:acme:a', queue: 'q', data_text: '{"n":1}', ...given }, expect: { rejected: { code, pointer } } });

export const make = {
  description: 'A new message is canonical, has 0 attempts, a new UUID and a trace_id (the given one, else a new one). A message that could not be read again is rejected.',
  operation: 'make',
  cases: [
    writes('plain', 'envelope/shape', {}),
    writes('other-queue', 'envelope/shape', { queue: 'other' }, { queue: 'other' }),
    writes('trace-given', 'envelope/trace', { trace_id: 't-1' }, { trace: 't-1' }),
    writes('trace-empty', 'envelope/trace', { trace_id: '' }),
    writes('trace-blank', 'envelope/trace', { trace_id: ' \t\n\u000b\f\r' }),
    writes('trace-no-break-space', 'envelope/trace', { trace_id: '\u00a0' }, { trace: '\u00a0' }),
    writes('data-empty', 'envelope/data-object', { data_text: '{}' }, { data: '{}' }),
    writes('data-sorted', 'canonical/key-order', { data_text: '{"b":1,"a":{"z":1,"😀":2,"ﬁ":3}}' }, { data: '{"a":{"z":1,"😀":2,"ﬁ":3},"b":1}' }),
    writes('data-numbers', 'canonical/numbers-shortest', { data_text: '{"a":1.0,"b":1E2,"c":1e21,"d":1e-7,"e":-0.0}' }, { data: '{"a":1,"b":100,"c":1e+21,"d":1e-7,"e":0}' }),
    writes('data-integers', 'canonical/integers-exact', { data_text: '{"a":9007199254740993,"b":18446744073709551617}' }, { data: '{"a":9007199254740993,"b":18446744073709551617}' }),
    writes('data-strings', 'canonical/strings-minimal', { data_text: '{"s":"\\u00e9\\/\\u001f\\u2028"}' }, { data: '{"s":"é/\\u001f\u2028"}' }),
    writes('data-null', 'canonical/absent-is-not-null', { data_text: '{"a":null}' }, { data: '{"a":null}' }),
    writes('meta-extensions-sorted', 'canonical/member-order', { meta_text: '{"zone":1,"ext":{"b":1,"a":2}}' }, { metaMore: ',"ext":{"a":2,"b":1},"zone":1' }),
    writes('top-extensions-sorted', 'canonical/member-order', { extras_top_text: '{"z":1.50,"a":[]}' }, { more: ',"a":[],"z":1.5' }),
    refuses('data-1e400', 'canonical/finite', { data_text: '{"v":1e400}' }),
    refuses('data-400-digits', 'envelope/data-finite', { data_text: `{"v":1${'0'.repeat(400)}}` }),
    refuses('meta-1e400', 'canonical/finite', { meta_text: '{"v":1e400}' }),
    refuses('top-1e400', 'canonical/finite', { extras_top_text: '{"v":-1e400}' }),
    refuses('data-lone-surrogate', 'canonical/surrogates', { data_text: '{"v":"\\ud800"}' }),
    refuses('data-lone-surrogate-key', 'canonical/surrogates', { data_text: '{"\\udfff":1}' }),
    refuses('meta-lone-surrogate', 'canonical/surrogates', { meta_text: '{"v":"\\ud800"}' }),
    refuses('top-lone-surrogate', 'canonical/surrogates', { extras_top_text: '{"v":"\\ud800"}' }),
  ],
};

const SPACES = { space: ' ', tab: '\t', lf: '\n', vt: '\u000b', ff: '\f', cr: '\r' };
const LETTERS = { nbsp: '\u00a0', 'next-line': '\u0085', emsp: '\u2003', 'line-separator': '\u2028', ideographic: '\u3000', bom: '\ufeff', 'zero-width': '\u200b', 'mongolian-vowel': '\u180e', 'unit-separator': '\u001f' };
const T = 'envelope/trim';
const B = 'envelope/blank';
const each = (table, make) => Object.entries(table).map(([name, char]) => make(name, char));
const q = JSON.stringify;
const reads = (name, clause, text, urn, warning) => ({ name, clause, mode: 'decode', body: text, valid: urn !== null, ...(urn === null ? {} : { expect: { urn }, expect_warning: warning }) });

export const trim = {
  description: 'White space means six ASCII characters, for trimming and for blank texts; a reader never trims.',
  cases: [
    ...each(SPACES, (name, char) => ({ name: `make-trims-${name}`, clause: T, mode: 'make', urn: `${char}urn:acme:a${char}`, expect: { job: 'urn:acme:a' } })),
    ...each(LETTERS, (name, char) => ({ name: `make-keeps-${name}`, clause: T, mode: 'make', urn: `${char}urn:acme:a${char}`, expect: { job: `${char}urn:acme:a${char}` } })),
    ...each(SPACES, (name, char) => ({ name: `make-trims-trace-${name}`, clause: T, mode: 'make', urn: 'urn:acme:a', trace_id: `${char}t-1${char}`, expect: { trace_id: 't-1' } })),
    ...each(LETTERS, (name, char) => ({ name: `make-keeps-trace-${name}`, clause: T, mode: 'make', urn: 'urn:acme:a', trace_id: `${char}t-1`, expect: { trace_id: `${char}t-1` } })),
    { name: 'make-keeps-inner-space', clause: T, mode: 'make', urn: ' urn:acme: a b ', expect: { job: 'urn:acme: a b' } },
    ...each(SPACES, (name, char) => ({ name: `make-rejects-${name}`, clause: T, mode: 'make', urn: char, expect: 'reject' })),
    { name: 'make-rejects-all-six', clause: T, mode: 'make', urn: Object.values(SPACES).join(''), expect: 'reject' },
    ...each(LETTERS, (name, char) => ({ name: `make-takes-only-${name}`, clause: B, mode: 'make', urn: char, expect: { job: char } })),
    ...each(SPACES, (name, char) => reads(`blank-job-${name}`, B, message({ job: q(char), more: '"urn":"urn:acme:b"' }), 'urn:acme:b', false)),
    ...each(LETTERS, (name, char) => reads(`job-of-only-${name}`, B, message({ job: q(char) }), char, false)),
    ...each(LETTERS, (name, char) => reads(`urn-of-only-${name}`, B, message({ job: null, more: `"urn":${q(char)}` }), char, false)),
    reads('both-blank', B, message({ job: '" "', more: '"urn":"\\n"' }), null),
    reads('blank-job-alone', B, message({ job: '"\\t"' }), null),
    reads('blank-urn-alone', B, message({ job: null, more: '"urn":" "' }), null),
    ...each(SPACES, (name, char) => ({ name: `blank-trace-${name}`, clause: 'envelope/accepts-trace', mode: 'accepts', body: message({ trace: q(char) }), expect_accepts: false, expect_decode_ok: true })),
    ...each(LETTERS, (name, char) => ({ name: `trace-of-only-${name}`, clause: 'envelope/accepts-trace', mode: 'accepts', body: message({ trace: q(char) }), expect_accepts: true, expect_decode_ok: true })),
    ...each({ ...SPACES, nbsp: '\u00a0' }, (name, char) => ({ name: `reemit-job-${name}`, clause: T, mode: 'reemit', body: message({ job: q(`${char}urn:x${char}`), trace: q(`${char}t${char}`) }), expect_attempts: 1, expect_preserved: { '/job': `${char}urn:x${char}`, '/trace_id': `${char}t${char}` } })),
  ],
};

const KINDS = [
  ['null', 'null'],
  ['zero', '0'],
  ['number', '5'],
  ['float', '1.5'],
  ['true', 'true'],
  ['false', 'false'],
  ['object', '{}'],
  ['object-with-job', '{"job":"urn:x"}'],
  ['array', '[]'],
  ['array-of-urns', '["urn:x"]'],
];

export const job_type = {
  description: 'A `job` that is not a string is ignored with a warning; a blank one is ignored without a warning; a `urn` that is not a string is ignored.',
  cases: [
    ...KINDS.map(([what, value]) => ({ ...reads(`${what}-job-takes-the-alias`, 'envelope/job-type', message({ job: value, more: '"urn":"urn:acme:b"' }), 'urn:acme:b', true), mode: undefined })),
    ...KINDS.map(([what, value]) => ({ ...reads(`${what}-job-alone`, 'envelope/identity', message({ job: value }), null), mode: undefined })),
    ...KINDS.map(([what, value]) => ({ ...reads(`job-beside-${what}-urn`, 'envelope/alias', message({ more: `"urn":${value}` }), URN, true), mode: undefined })),
    ...KINDS.map(([what, value]) => ({ ...reads(`${what}-urn-alone`, 'envelope/identity', message({ job: null, more: `"urn":${value}` }), null), mode: undefined })),
    { name: 'empty-job-takes-the-alias', clause: B, body: message({ job: '""', more: '"urn":"urn:acme:b"' }), valid: true, expect: { urn: 'urn:acme:b' }, expect_warning: false },
    { name: 'absent-job-takes-the-alias', clause: 'envelope/alias', body: message({ job: null, more: '"urn":"urn:acme:b"' }), valid: true, expect: { urn: 'urn:acme:b' }, expect_warning: false },
    { name: 'number-job-blank-urn', clause: 'envelope/identity', body: message({ job: '5', more: '"urn":" "' }), valid: false },
    { name: 'number-then-text-job', clause: 'envelope/duplicates', body: `{"job":5,${message().slice(1)}`, valid: true, expect: { urn: URN }, expect_warning: false },
    { name: 'text-then-number-job', clause: 'envelope/duplicates', body: message({ more: '"job":5' }), valid: false },
    { name: 'many-containers-no-warning', clause: 'envelope/identity', body: message({ data: `{"v":[${Array(1200).fill('[]').join(',')}]}` }), valid: true, expect: { urn: URN }, expect_warning: false },
    { name: 'odd-extension-no-warning', clause: 'envelope/identity', body: message({ more: '"tallystick:body":"mine"' }), valid: true, expect: { urn: URN }, expect_warning: false },
    { name: 'plain-job-no-warning', clause: 'envelope/identity', body: message({ block: DEAD_LETTER }), valid: true, expect: { urn: URN }, expect_warning: false },
  ],
};
