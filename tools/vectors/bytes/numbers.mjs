// Numbers: an integer literal is exact, every other number is the shortest ECMAScript form.
import { meta, message, rejected, same, turns } from '../text.mjs';

const ten = (power) => (10n ** BigInt(power)).toString();
const data = (literal) => message({ data: `{"v":${literal}}` });
const INTEGER = /^-?\d+$/;
const shown = (literal) => (INTEGER.test(literal) ? BigInt(literal).toString() : String(Number(literal)));
const vector = ([name, literal, clause]) =>
  turns(name, clause ?? (INTEGER.test(literal) ? 'canonical/integers-exact' : 'canonical/numbers-shortest'), data(literal), data(shown(literal)));

const INTEGERS = [
  ['zero', '0'], ['minus-zero', '-0', 'canonical/minus-zero'], ['one', '1'], ['minus-one', '-1'],
  ['2-31', '2147483648'], ['2-32', '4294967296'],
  ['2-53-minus-1', '9007199254740991'], ['2-53', '9007199254740992'], ['2-53-plus-1', '9007199254740993'],
  ['minus-2-53-minus-1', '-9007199254740993'], ['2-53-plus-3', '9007199254740995'],
  ['2-63-minus-1', '9223372036854775807'], ['2-63', '9223372036854775808'], ['minus-2-63', '-9223372036854775808'],
  ['minus-2-63-minus-1', '-9223372036854775809'],
  ['2-64-minus-1', '18446744073709551615'], ['2-64', '18446744073709551616'], ['2-64-plus-1', '18446744073709551617'],
  ['10-15', ten(15)], ['10-16', ten(16)], ['10-17', ten(17)], ['10-18', ten(18)], ['10-19', ten(19)],
  ['10-20', ten(20)], ['10-20-plus-1', `${ten(20).slice(0, -1)}1`], ['10-21-as-digits', ten(21)], ['10-21-plus-1', `${ten(21).slice(0, -1)}1`],
  ['10-22-as-digits', ten(22)], ['10-40', ten(40)], ['minus-10-40', `-${ten(40)}`], ['10-100', ten(100)], ['10-308', ten(308)],
  ['forty-digits', '1234567890123456789012345678901234567890'],
  ['largest-that-a-double-can-hold', (2n ** 1024n - 2n ** 970n - 1n).toString()],
];

const FLOATS = [
  ['one-point-zero', '1.0'], ['minus-one-point-zero', '-1.0'], ['hundred-point-zero', '100.0'], ['trailing-zero', '99.90'],
  ['trailing-zeros', '1.5000'],
  ['half', '0.5'],
  ['tenth', '0.1'],
  ['sum-of-tenths', '0.30000000000000004'],
  ['long-third', '0.333333333333333333333'],
  ['more-digits-than-a-double', '3.14159265358979323846264338'], ['nearest-is-shorter', '0.299999999999999988898'],
  ['exponent-zero', '1e0'], ['upper-case-exponent', '1E2'], ['plus-exponent', '1e+2'], ['exponent-leading-zero', '1e02'],
  ['fraction-and-exponent', '1.25e3'], ['exponent-makes-a-fraction', '125e-2'], ['exponent-cancels', '1000e-3'],
  ['zero-point-zero', '0.0', 'canonical/minus-zero'], ['minus-zero-point-zero', '-0.0', 'canonical/minus-zero'],
  ['minus-zero-exponent', '-0e5', 'canonical/minus-zero'], ['zero-with-a-huge-exponent', '0e400', 'canonical/minus-zero'],
  ['1e7', '1e7'], ['1e15', '1e15'], ['1e16', '1e16'], ['1e17', '1e17'], ['1e20', '1e20'], ['1e20-point-zero', `${ten(20)}.0`],
  ['1e21', '1e21'], ['minus-1e21', '-1e21'], ['1e21-point-zero', `${ten(21)}.0`], ['1e22', '1e22'], ['1e23', '1e23'], ['2e23', '2e23'],
  ['just-below-1e21', '999999999999999868928.0'], ['just-above-1e21', '1000000000000000131072.0'], ['1.5e21', '1.5e21'], ['1.5e300', '1.5e300'],
  ['twenty-digits-point-zero', '12345678901234567890.0'],
  ['2-53-plus-1-point-zero', '9007199254740993.0'],
  ['2-63-point-zero', '9223372036854775808.0'],
  ['2-64-point-zero', '18446744073709551616.0'],
  ['1e-3', '1e-3'], ['1e-4', '1e-4'], ['1e-5', '1e-5'], ['1e-6', '1e-6'], ['0.000001', '0.000001'], ['1.5e-6', '1.5e-6'], ['9.99e-6', '9.99e-6'],
  ['1e-7', '1e-7'],
  ['0.0000001', '0.0000001'],
  ['9.5e-7', '9.5e-7'],
  ['1.5e-7', '1.5e-7'],
  ['minus-1e-7', '-1e-7'],
  ['1e-10', '1e-10'],
  ['1.25e-9', '1.25e-9'],
  ['0.000123', '0.000123'], ['123456.789', '123456.789'], ['seventeen-digits', '0.12345678901234568'], ['12345.678901234567', '12345.678901234567'],
  ['least-subnormal', '5e-324'], ['least-subnormal-in-full', '4.9406564584124654e-324'], ['rounds-up-to-the-least', '2.5e-324'],
  ['rounds-down-to-zero', '2e-324', 'canonical/minus-zero'],
  ['minus-rounds-down-to-zero', '-2e-324', 'canonical/minus-zero'],
  ['far-below-the-least', '1e-400', 'canonical/minus-zero'],
  ['greatest-subnormal', '2.225073858507201e-308'], ['least-normal', '2.2250738585072014e-308'],
  ['greatest-double', '1.7976931348623157e308'],
  ['minus-greatest-double', '-1.7976931348623157e308'],
  ['rounds-down-to-the-greatest', '1.7976931348623158e308'],
  ['ulp-above-one', '1.0000000000000002'], ['ulp-below-one', '0.9999999999999999'], ['tie-to-even', '9007199254740995.0'],
  ['sixteen-digits-and-a-half', '4503599627370495.5'], ['sixteen-digits-and-a-quarter', '1125899906842623.75'],
];

// Doubles with random bits, read from 21 digits and written in the fewest.
function* doubles(count) {
  const view = new DataView(new ArrayBuffer(8));
  let state = 0x9e3779b97f4a7c15n;
  while (count > 0) {
    state = BigInt.asUintN(64, state ^ (state << 13n));
    state ^= state >> 7n;
    state = BigInt.asUintN(64, state ^ (state << 17n));
    view.setBigUint64(0, state);
    const number = view.getFloat64(0);
    if (!Number.isFinite(number)) continue;
    count -= 1;
    yield number;
  }
}

function random() {
  const numbers = [...doubles(160)];
  return Array.from({ length: 20 }, (_, n) => {
    const group = numbers.slice(n * 8, n * 8 + 8);
    const wrap = (texts) => message({ data: `{"v":[${texts.join(',')}]}` });
    return turns(`random-${String(n + 1).padStart(2, '0')}`, 'canonical/numbers-shortest', wrap(group.map((x) => x.toExponential(20))), wrap(group.map(String)));
  });
}

const plain = (exponents) => exponents.map((power) => {
  const wrap = (text) => message({ data: `{"v":[${text}]}` });
  const literals = [`1e${power}`, `-3.5e${power}`, `1.23456789e${power}`];
  return turns(`power-${power}`, 'canonical/numbers-shortest', wrap(literals.join(',')), wrap(literals.map((x) => String(Number(x))).join(',')));
});

const beyond = (name, literal, pointer = '/data/v', input = data(literal)) =>
  rejected(name, 'envelope/data-finite', input, 'number_out_of_range', pointer);

// A huge integer beside other values: some readers change their way for the whole message.
const HUGE = `"huge":${ten(5000)}`;
const beside = (name, clause, before, after = before) => turns(`beside-a-huge-integer-${name}`, clause, message({ data: before, more: HUGE }), message({ data: after, more: HUGE }));

// Many values: some writers look at few of them one by one, and at many in another way.
const many = (name, literal) => {
  const wrap = (text) => message({ data: `{"v":[${Array.from({ length: 300 }, (_, n) => n).join(',')},${text}]}` });
  return turns(`many-values-and-${name}`, 'canonical/numbers-shortest', wrap(literal), wrap(shown(literal)));
};

const OUTSIDE = [
  same('attempts-beyond-2-53', 'canonical/integers-exact', message({ attempts: '9007199254740993' })),
  same('attempts-2-63-minus-1', 'canonical/integers-exact', message({ attempts: '9223372036854775807' })),
  same('attempts-negative', 'canonical/integers-exact', message({ attempts: '-5' })),
  turns('attempts-minus-zero', 'canonical/minus-zero', message({ attempts: '-0' }), message({ attempts: '0' })),
  same('created-at-beyond-2-53', 'canonical/integers-exact', message({ meta: meta({ created_at: '9007199254740993' }) })),
  same('failed-at-beyond-2-53', 'canonical/integers-exact', message({ block: '{"failed_at":9007199254740993}' })),
  same('extension-10-400', 'canonical/integers-exact', message({ more: `"x":${ten(400)}` })),
  same('extension-10-5000', 'canonical/integers-exact', message({ more: `"x":-${ten(5000)}` })),
  same('meta-extension-2-64', 'canonical/integers-exact', message({ meta: meta({}, '"seen":18446744073709551617') })),
  same('extension-sixteen-digits-and-a-half', 'canonical/numbers-shortest', message({ more: '"x":[4503599627370495.5,1125899906842623.8]' })),
  turns('extension-one-point-zero', 'canonical/numbers-shortest', message({ more: '"x":1.0' }), message({ more: '"x":1' })),
  turns('meta-extension-float', 'canonical/numbers-shortest', message({ meta: meta({}, '"x":[1e21,1E-7]') }), message({ meta: meta({}, '"x":[1e+21,1e-7]') })),
  turns('dead-letter-extension-float', 'canonical/numbers-shortest', message({ block: '{"reason":"failed","x":2.50}' }), message({ block: '{"reason":"failed","x":2.5}' })),
  rejected('extension-1e400', 'canonical/finite', message({ more: '"x":1e400' }), 'not_finite', '/x'),
  rejected('extension-minus-1e400', 'canonical/finite', message({ more: '"x":[0,-1e400]' }), 'not_finite', '/x/1'),
  rejected('meta-extension-1e400', 'canonical/finite', message({ meta: meta({}, '"ext":{"acme":{"n":1e400}}') }), 'not_finite', '/meta/ext/acme/n'),
];

export default {
  description: 'Numbers. An integer literal keeps its digits at any size; any other number is written as ECMAScript writes the nearest double.',
  vectors: [
    ...INTEGERS.map(vector),
    ...FLOATS.map(vector),
    ...plain([-308, -300, -100, -30, -12, -8, -7, -6, -5, -2, 0, 5, 14, 18, 19, 20, 21, 22, 30, 100, 300, 307]),
    ...random(),
    ...OUTSIDE,
    many('one-point-zero', '1.0'), many('1e21', '1e21'), many('1e-6', '1e-6'), many('1e-7', '1e-7'), many('1e16', '1e16'), many('half', '0.5'),
    beside('floats', 'canonical/numbers-shortest', '{"a":1.50,"b":1E2,"c":1e21,"d":0.1}', '{"a":1.5,"b":100,"c":1e+21,"d":0.1}'),
    beside('integers', 'canonical/integers-exact', '{"a":9007199254740993,"b":-1}'),
    beside('strings', 'canonical/strings-minimal', '{"a":"\\ud83d\\ude00\\/\\u00e9\\n\\u0041\\u0042"}', '{"a":"😀/é\\nAB"}'),
    beside('duplicates', 'envelope/duplicates', '{"a":1,"a":{"b":1},"a":{"c":2}}', '{"a":{"c":2}}'),
    beside('keys', 'canonical/key-order', '{"b":[true,false,null],"a":{"ﬁ":{},"😀":[]}}', '{"a":{"😀":[],"ﬁ":{}},"b":[true,false,null]}'),
    beyond('1e309', '1e309'), beyond('1e400', '1e400'), beyond('minus-1e400', '-1e400'), beyond('1.7976931348623159e308', '1.7976931348623159e308'),
    beyond('integer-10-309', ten(309)),
    beyond('integer-10-400', ten(400)),
    beyond('minus-integer-10-400', `-${ten(400)}`),
    beyond('integer-10-5000', ten(5000)),
    beyond('integer-that-rounds-to-infinity', (2n ** 1024n - 2n ** 970n).toString()),
    beyond('1e400-deep-inside', '', '/data/a/1/b~1c', message({ data: '{"a":[0,{"b/c":1e400}]}' })),
    beyond('1e400-in-an-earlier-duplicate', '', '/data/v', message({ data: '{"v":1e400,"v":1}' })),
    beyond('1e400-in-an-earlier-data', '', '/data/v', `{"data":{"v":1e400},${message().slice(1)}`),
  ],
};
