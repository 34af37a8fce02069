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

Version ${whole.conformance_version}: ${total} cases in ${all.length} sections, of which ${Object.values(bytes).reduce((sum, theme) => sum + theme.vectors.length, 0)} are byte vectors. Every case names the clause it holds
somebody to, and every clause has a case that fails without it.

| path | what |
|---|---|
| \`manifest.json\` | the cases by section, in the grammar of conformance suite 1.8.0; the clauses |
| \`fixtures/*.json\` | pure envelopes, one per file |
| \`bytes/*.json\` | byte vectors by theme: a body and its canonical bytes, or its rejection |
| \`schema/message-envelope.schema.json\` | what a producer writes (JSON Schema, draft-07) |

## How to read a case

A section is a list of cases, or an object with \`cases\` and sub-blocks that have \`cases\` of their
own. A case's full name is \`standard/<section>/<name>\`, or \`standard/<section>/<sub-block>/<name>\`.
The sections that suite 1.8.0 has are written with its fields. A block that names an \`operation\`
is written in the words of [the subject protocol](protocol.md): \`given\` is sent, \`expect\` is judged.

| in \`given\` and \`expect\` | stands for |
|---|---|
| \`<name>_text\` | \`<name>_base64\` of the UTF-8 bytes of that text |
| \`<name>_file\`, \`file\` | \`<name>_base64\` (\`body_base64\`) of a fixture |
| \`members\`, \`contains\` | these members of the result, exactly, or at least these |
| \`bytes\` | these bytes |
| \`matches\` | a text that matches this pattern as a whole |
| \`nowhere\` | pointers at which the result has nothing |
| \`types\` | native types, judged where the subject says any |
| \`rejected\` | a rejection; its \`code\` and \`pointer\` are judged where the subject gives them |

A byte vector has \`name\`, \`clause\`, \`input\` or \`input_base64\`, and either \`expect\` (the canonical
text) or \`rejected\` with our \`code\` and, where there is one, the \`pointer\`. A subject that gives no
code is judged by the rejection alone.

\`producer_schema_valid: false\` marks a fixture that does not fit the schema on purpose.

## Sections

${table(['section', 'scope', 'cases', 'about'], all.map(([name, cases]) => [`\`${name}\``, whole.sections[name].scope, cases.length, whole[name].description ?? 'Whole envelopes: accepted or not, and what they say.']))}

## Byte vectors

${table(['theme', 'vectors', 'about'], Object.entries(bytes).map(([name, { description, vectors }]) => [`\`bytes/${name}.json\``, vectors.length, description]))}

## Clauses

${table(['clause', 'cases', 'rule'], Object.entries(whole.clauses).map(([clause, rule]) => [`\`${clause}\``, counted.get(clause) ?? 0, rule]))}`);
