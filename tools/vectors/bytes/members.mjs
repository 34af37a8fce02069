// The members of a message: their order, what is folded, what is dropped, absent against null.
import { DEAD_LETTER, message, META, meta, rejected, same, TRACE, turns, unaccepted, URN } from '../text.mjs';

const ORDER = 'canonical/member-order';
const ABSENT = 'canonical/absent-is-not-null';
const DUPLICATE = 'envelope/duplicates';
const parts = { job: JSON.stringify(URN), trace_id: JSON.stringify(TRACE), data: '{}', meta: META, attempts: '0' };
const written = (members) => `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
const top = (names, more = {}) => written(names.map((name) => [name, { ...parts, ...more }[name]]));
const block = (names) => written(names.map((name) => [name, JSON.parse(DEAD_LETTER)[name]]).map(([name, value]) => [name, JSON.stringify(value)]));
const BLOCK = Object.keys(JSON.parse(DEAD_LETTER));
const metaOf = (names) => written(names.map((name) => [name, JSON.stringify(JSON.parse(META)[name])]));

export const order = {
  description: 'Member order. The members of the contract come first, in its order; extensions follow, sorted.',
  vectors: [
    same('already-canonical', ORDER, message({ data: '{"a":1}' })),
    turns('reversed', ORDER, top(['attempts', 'meta', 'data', 'trace_id', 'job']), message()),
    turns('sorted-by-name', ORDER, top(['attempts', 'data', 'job', 'meta', 'trace_id']), message()),
    turns('data-first', ORDER, top(['data', 'job', 'trace_id', 'meta', 'attempts']), message()),
    turns('dead-letter-first', ORDER, top(['dead_letter', 'job', 'trace_id', 'data', 'meta', 'attempts'], { dead_letter: DEAD_LETTER }), message({ block: DEAD_LETTER })),
    turns('dead-letter-before-attempts', ORDER, top(['job', 'trace_id', 'data', 'meta', 'dead_letter', 'attempts'], { dead_letter: DEAD_LETTER }), message({ block: DEAD_LETTER })),
    turns('meta-reversed', ORDER, message({ meta: metaOf(['created_at', 'schema_version', 'lang', 'queue', 'id']) }), message()),
    turns('meta-sorted-by-name', ORDER, message({ meta: metaOf(['created_at', 'id', 'lang', 'queue', 'schema_version']) }), message()),
    same('dead-letter-in-order', ORDER, message({ block: DEAD_LETTER })),
    turns('dead-letter-reversed', ORDER, message({ block: block([...BLOCK].reverse()) }), message({ block: DEAD_LETTER })),
    turns('dead-letter-sorted-by-name', ORDER, message({ block: block([...BLOCK].sort()) }), message({ block: DEAD_LETTER })),
    turns('extensions-after-the-members', ORDER, `{"x":1,${message().slice(1)}`, message({ more: '"x":1' })),
    turns('extensions-sorted', ORDER, message({ more: '"z":1,"a":2,"m":3' }), message({ more: '"a":2,"m":3,"z":1' })),
    turns('extension-after-the-dead-letter', ORDER, message({ more: `"a":2,"dead_letter":${DEAD_LETTER}` }), message({ block: DEAD_LETTER, more: '"a":2' })),
    turns('extensions-sorted-by-utf16', ORDER, message({ more: '"ﬁ":1,"😀":2' }), message({ more: '"😀":2,"ﬁ":1' })),
    turns('meta-extensions-after-the-members', ORDER, message({ meta: `{"region":"eu",${META.slice(1)}` }), message({ meta: meta({}, '"region":"eu"') })),
    turns('meta-extensions-sorted', ORDER, message({ meta: meta({}, '"zone":1,"ext":{},"a":null') }), message({ meta: meta({}, '"a":null,"ext":{},"zone":1') })),
    turns('dead-letter-extensions-sorted', ORDER, message({ block: '{"host":"h","reason":"failed","a":1}' }), message({ block: '{"reason":"failed","a":1,"host":"h"}' })),
    turns('wrong-case-names-are-extensions', 'envelope/case-sensitive', `{"JOB":"x","Meta":{"b":1,"a":2},${message().slice(1)}`, message({ more: '"JOB":"x","Meta":{"a":2,"b":1}' })),
    turns('wrong-case-meta-names-are-extensions', 'envelope/case-sensitive', message({ meta: `{"ID":1,"Queue":2,${META.slice(1)}` }), message({ meta: meta({}, '"ID":1,"Queue":2') })),
    same('names-with-spaces-are-extensions', 'envelope/case-sensitive', message({ more: '" job":1,"job ":2' })),
    same('empty-name-is-an-extension', ORDER, message({ more: '"":0' })),
    same('numbers-as-names', ORDER, message({ more: '"0":1,"10":2,"9":3' })),
    same('extension-of-every-kind', ORDER, message({ more: '"a":null,"b":true,"c":false,"d":"","e":[],"f":{},"g":0' })),
    turns('dead-letter-inside-meta-is-plain', ORDER, message({ meta: meta({}, '"dead_letter":{"reason":1,"lang":2}') }), message({ meta: meta({}, '"dead_letter":{"lang":2,"reason":1}') })),
    turns('meta-inside-the-dead-letter-is-plain', ORDER, message({ block: '{"reason":"failed","meta":{"queue":1,"lang":2,"id":3}}' }), message({ block: '{"reason":"failed","meta":{"id":3,"lang":2,"queue":1}}' })),
    same('nested-dead-letter-in-data', ORDER, message({ data: '{"dead_letter":{"attempts":"x"}}' })),
  ],
};

const ALIAS = 'envelope/alias';
const FORBIDDEN = 'envelope/forbidden-read';
const withUrn = (job, urn) => message({ job, more: `"urn":${urn}` });
const valid = JSON.stringify(URN);
const other = '"urn:babel:ledger:other"';

export const folding = {
  description: 'Folding. `urn` is an alias of `job` and is never written; forbidden members are dropped.',
  vectors: [
    turns('urn-only', ALIAS, message({ job: null, more: `"urn":${valid}` }), message()),
    turns('urn-only-with-a-dead-letter', ALIAS, message({ job: null, attempts: '3', block: DEAD_LETTER, more: `"urn":${valid}` }), message({ attempts: '3', block: DEAD_LETTER })),
    unaccepted('urn-only-with-nulls', 'envelope/shape', message({ job: null, trace: 'null', data: 'null', meta: 'null', attempts: 'null', block: 'null', more: `"urn":${valid}` })),
    turns('urn-only-with-an-escaped-name', ALIAS, message({ job: null, more: `"\\u0075rn":${valid}` }), message()),
    turns('urn-only-with-escapes', ALIAS, message({ job: null, more: '"urn":"urn:\\ud83d\\ude00\\/\\u00e9\\t"' }), message({ job: '"urn:😀/é\\t"' })),
    turns('urn-only-with-64-bit-bounds', ALIAS, message({ job: null, attempts: '9223372036854775807', meta: meta({ created_at: '-9223372036854775808' }), more: `"urn":${valid}` }), message({ attempts: '9223372036854775807', meta: meta({ created_at: '-9223372036854775808' }) })),
    turns('urn-first', ALIAS, `{"urn":${valid},${message({ job: null }).slice(1)}`, message()),
    turns('job-wins', ALIAS, withUrn(valid, other), message()),
    turns('job-wins-over-the-same-urn', ALIAS, withUrn(valid, valid), message()),
    turns('job-wins-over-a-null-urn', ALIAS, withUrn(valid, 'null'), message()),
    turns('job-wins-over-an-object-urn', ALIAS, withUrn(valid, '{"a":1}'), message()),
    ...[['null', 'null'], ['number', '5'], ['float', '1.5'], ['true', 'true'], ['false', 'false'], ['object', '{"a":1}'], ['array', '["urn:x"]']].map(([name, job]) =>
      turns(`${name}-job-falls-back`, 'envelope/job-type', withUrn(job, valid), message())),
    turns('empty-job-falls-back', 'envelope/blank', withUrn('""', valid), message()),
    turns('blank-job-falls-back', 'envelope/blank', withUrn('" \\t\\n\\u000b\\f\\r"', valid), message()),
    turns('last-job-decides', ALIAS, `{"job":5,${message().slice(1)}`, message()),
    turns('last-urn-decides', ALIAS, message({ job: null, more: `"urn":${other},"urn":${valid}` }), message()),
    turns('no-break-space-job-is-an-identity', 'envelope/blank', withUrn('"\\u00a0"', valid), message({ job: '"\u00a0"' })),
    same('padded-job-is-kept', 'envelope/trim', message({ job: '"  urn:babel:x  "' })),
    turns('padded-urn-is-kept', 'envelope/trim', message({ job: null, more: '"urn":" urn:x\\t"' }), message({ job: '" urn:x\\t"' })),
    same('padded-trace-id-is-kept', 'envelope/trim', message({ trace: '" t "' })),
    turns('wrong-case-urn-is-kept', 'envelope/case-sensitive', message({ more: '"URN":1,"Urn":2' }), message({ more: '"URN":1,"Urn":2' })),
    turns('timestamp', FORBIDDEN, message({ more: '"timestamp":1767225600' }), message()),
    turns('timestamp-of-any-type', FORBIDDEN, message({ more: '"timestamp":{"a":[1]}' }), message()),
    turns('timestamp-twice', FORBIDDEN, `{"timestamp":1,${message({ more: '"timestamp":2' }).slice(1)}`, message()),
    ...['max_retries', 'attempts', 'source', 'ts'].map((name) => turns(`meta-${name.replace('_', '-')}`, FORBIDDEN, message({ meta: meta({}, `"${name}":7`) }), message())),
    turns('every-forbidden-member', FORBIDDEN, message({ meta: meta({}, '"max_retries":3,"attempts":"x","source":null,"ts":[]'), more: '"timestamp":0,"urn":"x"' }), message()),
    same('timestamp-in-data-stays', FORBIDDEN, message({ data: '{"attempts":1,"max_retries":2,"source":3,"timestamp":4,"ts":5,"urn":6}' })),
    same('meta-names-at-the-top-stay', FORBIDDEN, message({ more: '"max_retries":1,"source":2,"ts":3' })),
    same('timestamp-in-meta-stays', FORBIDDEN, message({ meta: meta({}, '"timestamp":1,"urn":"x"') })),
    same('forbidden-in-an-extension-stays', FORBIDDEN, message({ meta: meta({}, '"ext":{"attempts":1,"source":2,"ts":3}') })),
    same('forbidden-in-the-dead-letter-stays', FORBIDDEN, message({ block: '{"reason":"failed","source":"x","timestamp":1,"ts":2}' })),
    same('wrong-case-forbidden-stays', 'envelope/case-sensitive', message({ meta: meta({}, '"TS":1,"Source":2').replace('"TS":1,"Source":2', '"Source":2,"TS":1'), more: '"Timestamp":1' })),
    ...[['neither', null, ''], ['both-blank', '" "', '"urn":"\\t"'], ['null-and-nothing', 'null', ''], ['number-and-number', '1', '"urn":2'], ['wrong-case-only', null, '"Job":"urn:x"'], ['urn-object', null, '"urn":{}'], ['valid-then-number', null, '"job":"urn:x","job":5']].map(
      ([name, job, more]) => rejected(`no-identity-${name}`, 'envelope/identity', message({ job, more }), 'no_identity', '/job')),
  ],
};

export const absent = {
  description: 'Absent is not null. A member that was null is written as null; one that was absent is not written.',
  vectors: [
    unaccepted('job-alone', 'envelope/shape', `{"job":${valid}}`),
    ...Object.entries({ trace: ['trace-id', 'envelope/accepts-trace'], data: ['data', 'envelope/shape'], meta: ['meta', 'envelope/shape'], attempts: ['attempts', 'envelope/accepts-attempts'] }).flatMap(([part, [name, clause]]) => [
      unaccepted(`null-${name}`, clause, message({ [part]: 'null' })),
      unaccepted(`absent-${part}`, clause, message({ [part]: null })),
    ]),
    same('null-dead-letter', ABSENT, message({ block: 'null' })),
    unaccepted('everything-null', 'envelope/shape', message({ trace: 'null', data: 'null', meta: 'null', attempts: 'null', block: 'null' })),
    ...['id', 'queue', 'lang', 'created_at'].flatMap((name) => [
      same(`null-meta-${name.replace('_', '-')}`, ABSENT, message({ meta: meta({ [name]: 'null' }) })),
      same(`absent-meta-${name.replace('_', '-')}`, ABSENT, message({ meta: meta({ [name]: null }) })),
    ]),
    unaccepted('null-meta-schema-version', 'envelope/accepts-version', message({ meta: meta({ schema_version: 'null' }) })),
    unaccepted('absent-meta-schema-version', 'envelope/accepts-version', message({ meta: meta({ schema_version: null }) })),
    unaccepted('empty-meta', 'envelope/accepts-version', message({ meta: '{}' })),
    same('empty-dead-letter', ABSENT, message({ block: '{}' })),
    same('dead-letter-of-nulls', ABSENT, message({ block: `{${BLOCK.map((name) => `"${name}":null`).join(',')}}` })),
    same('dead-letter-with-two-members', ABSENT, message({ block: '{"reason":"failed","attempts":3}' })),
    same('null-extension', ABSENT, message({ more: '"x":null' })),
    same('null-in-data', ABSENT, message({ data: '{"a":null,"b":[null]}' })),
    same('empty-object-is-not-an-array', ABSENT, message({ data: '{"a":{},"b":[]}' })),
    unaccepted('empty-strings', 'envelope/accepts-trace', message({ trace: '""', meta: meta({ id: '""', queue: '""', lang: '""' }) })),
    unaccepted('version-two', 'envelope/accepts-version', message({ meta: meta({ schema_version: '2' }) })),
    same('unknown-lang', 'envelope/lang-open', message({ meta: meta({ lang: '"cobol"' }) })),
    same('unknown-reason', ABSENT, message({ block: '{"reason":"bored"}' })),
    same('not-uuids', ABSENT, message({ trace: '"t"', meta: meta({ id: '"1"' }) })),
  ],
};

export const duplicates = {
  description: 'Duplicates. Of several members with the same name the last one wins, at every level; objects are never merged.',
  vectors: [
    turns('job', DUPLICATE, `{"job":"urn:first",${message().slice(1)}`, message()),
    turns('trace-id', DUPLICATE, message({ more: `"trace_id":"t2"` }), message({ trace: '"t2"' })),
    turns('data-not-merged', DUPLICATE, `{"data":{"a":1},${message({ data: '{"b":2}' }).slice(1)}`, message({ data: '{"b":2}' })),
    turns('data-last-at-the-end', DUPLICATE, message({ data: '{"a":1}', more: '"data":{"b":2}' }), message({ data: '{"b":2}' })),
    turns('meta-not-merged', DUPLICATE, `{"meta":{"vendor":1,"id":"x"},${message({ meta: '{"schema_version":1}' }).slice(1)}`, message({ meta: '{"schema_version":1}' })),
    unaccepted('meta-then-null', DUPLICATE, message({ more: '"meta":null' })),
    unaccepted('data-then-null', DUPLICATE, message({ data: '{"a":1}', more: '"data":null' })),
    turns('dead-letter-not-merged', DUPLICATE, message({ block: '{"reason":"failed","attempts":1}', more: '"dead_letter":{"attempts":2}' }), message({ block: '{"attempts":2}' })),
    turns('attempts', DUPLICATE, message({ attempts: '1', more: '"attempts":2' }), message({ attempts: '2' })),
    turns('attempts-thrice', DUPLICATE, message({ attempts: '3', more: '"attempts":1,"attempts":2' }), message({ attempts: '2' })),
    turns('inside-meta', DUPLICATE, message({ meta: meta({}, '"queue":"last"') }), message({ meta: meta({ queue: '"last"' }) })),
    turns('inside-the-dead-letter', DUPLICATE, message({ block: '{"reason":"failed","reason":"poison"}' }), message({ block: '{"reason":"poison"}' })),
    turns('inside-data', DUPLICATE, message({ data: '{"a":1,"b":2,"a":3}' }), message({ data: '{"a":3,"b":2}' })),
    turns('inside-data-deep', DUPLICATE, message({ data: '{"a":{"b":{"c":1},"b":{"d":2}}}' }), message({ data: '{"a":{"b":{"d":2}}}' })),
    turns('inside-an-array-item', DUPLICATE, message({ data: '{"a":[{"b":1,"b":2}]}' }), message({ data: '{"a":[{"b":2}]}' })),
    turns('object-then-scalar', DUPLICATE, message({ data: '{"a":{"b":1},"a":2}' }), message({ data: '{"a":2}' })),
    turns('scalar-then-object', DUPLICATE, message({ data: '{"a":2,"a":{"b":1}}' }), message({ data: '{"a":{"b":1}}' })),
    turns('extension', DUPLICATE, message({ more: '"x":1,"x":2' }), message({ more: '"x":2' })),
    turns('meta-extension', DUPLICATE, message({ meta: meta({}, '"x":{"a":1},"x":{"b":2}') }), message({ meta: meta({}, '"x":{"b":2}') })),
    turns('escaped-name-is-the-same-name', DUPLICATE, message({ data: '{"a":1,"\\u0061":2}' }), message({ data: '{"a":2}' })),
    turns('escaped-attempts-is-attempts', DUPLICATE, message({ more: '"\\u0061ttempts":4' }), message({ attempts: '4' })),
    same('composed-and-decomposed-are-two-names', DUPLICATE, message({ data: '{"e\u0301":1,"\u00e9":2}' })),
    turns('empty-name-twice', DUPLICATE, message({ data: '{"":1,"":2}' }), message({ data: '{"":2}' })),
    turns('forbidden-in-an-earlier-meta', DUPLICATE, `{"meta":{"ts":1},${message().slice(1)}`, message()),
    rejected('wrong-type-in-an-earlier-duplicate', 'envelope/typed-members', `{"attempts":"x",${message().slice(1)}`, 'wrong_type', '/attempts'),
    rejected('wrong-type-in-an-earlier-meta', 'envelope/typed-members', `{"meta":{"queue":5},${message().slice(1)}`, 'wrong_type', '/meta/queue'),
    rejected('wrong-type-meta-first', 'envelope/typed-members', `{"meta":[],${message().slice(1)}`, 'wrong_type', '/meta'),
  ],
};

