#!/usr/bin/env node
// Print docs/reference/standard.md: `node tools/vectors/reference.mjs > docs/reference/standard.md`.
import bytes from './bytes/index.mjs';
import { manifest } from './cases/manifest.mjs';

const whole = manifest(bytes);
const isCase = (value) => value !== null && typeof value === 'object' && 'clause' in value;

// Every case below a block, wherever it stands.
function* casesOf(block) {
  if (isCase(block)) yield block;
  else if (block !== null && typeof block === 'object') for (const inner of Object.values(block)) yield* casesOf(inner);
}

const all = Object.keys(whole.sections).map((name) => [name, [...casesOf(whole[name])]]);
const counted = new Map();
for (const [, cases] of all) for (const { clause } of cases) counted.set(clause, (counted.get(clause) ?? 0) + 1);
const total = all.reduce((sum, [, cases]) => sum + cases.length, 0);
const cell = (text) => text.replaceAll('|', '\\|');
const table = (head, rows) => [`| ${head.join(' | ')} |`, `|${head.map(() => '---').join('|')}|`, ...rows.map((row) => `| ${row.map(String).map(cell).join(' | ')} |`)].join('\n');

console.log(`<!-- written by tools/vectors/reference.mjs; do not edit -->
# The standard

Version ${whole.conformance_version}: ${total} cases in ${all.length} sections, of which ${Object.values(bytes).reduce((sum, theme) => sum + theme.vectors.length, 0)} are byte vectors. Every case names the clause that it
checks, and every clause has a case that fails without it.

| path | what |
|---|---|
| \`manifest.json\` | the cases by section, in the grammar of conformance suite 1.8.0; the clauses |
| \`fixtures/*.json\` | pure envelopes, one per file |
| \`bytes/*.json\` | byte vectors by theme: a body and its canonical bytes, or its rejection |
| \`schema/message-envelope.schema.json\` | what a producer writes (JSON Schema, draft-07) |

## How to read a case

A section is a list of cases, or an object with \`cases\` and sub-blocks that have \`cases\` of their
own. A case's full name is \`standard/<section>/<name>\`, or \`standard/<section>/<sub-block>/<name>\`.
The sections of suite 1.8.0 use the fields of that suite. A block with an \`operation\` uses the
words of [the protocol](protocol.md): \`given\` is sent, the answer is compared with \`expect\`.

| in \`given\` and \`expect\` | means |
|---|---|
| \`<name>_text\` | \`<name>_base64\` of the UTF-8 bytes of that text |
| \`<name>_file\`, \`file\` | \`<name>_base64\` (\`body_base64\`) of a fixture |
| \`members\`, \`contains\` | these members of the result, exactly, or at least these |
| \`bytes\` | these bytes |
| \`matches\` | the whole text matches this pattern |
| \`nowhere\` | the result has no member at these pointers |
| \`types\` | native types; compared if the implementation reports any |
| \`rejected\` | a rejection; its \`code\` and \`pointer\` are compared if the implementation reports them |

A byte vector has \`name\`, \`clause\`, \`input\` or \`input_base64\`, and either \`expect\` (the canonical
text) or \`rejected\` with our \`code\` and, where there is one, the \`pointer\`. If an implementation reports no
code, only the rejection itself is checked.

\`producer_schema_valid: false\` marks a fixture that is invalid by the schema on purpose.

## Sections

${table(['section', 'scope', 'cases', 'about'], all.map(([name, cases]) => [`\`${name}\``, whole.sections[name].scope, cases.length, whole[name].description ?? 'Whole envelopes: whether they are accepted, and their values.']))}

## Byte vectors

${table(['theme', 'vectors', 'about'], Object.entries(bytes).map(([name, { description, vectors }]) => [`\`bytes/${name}.json\``, vectors.length, description]))}

## Clauses

${table(['clause', 'cases', 'rule'], Object.entries(whole.clauses).map(([clause, rule]) => [`\`${clause}\``, counted.get(clause) ?? 0, rule]))}`);
