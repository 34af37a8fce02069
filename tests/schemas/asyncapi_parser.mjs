// Ask the official AsyncAPI parser about the documents named on the command line, one JSON line each.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(process.argv[2] + '/');
const { Parser } = require('@asyncapi/parser');
for (const file of process.argv.slice(3)) {
  const { document, diagnostics } = await new Parser().parse(readFileSync(file, 'utf8'));
  const errors = diagnostics.filter((one) => one.severity === 0).map((one) => `${one.path.join('/')}: ${one.message}`);
  const channels = document ? document.channels().all().map((one) => one.id()) : [];
  const operations = document ? document.operations().all().map((one) => one.id()) : [];
  const messages = document ? document.messages().all().map((one) => one.name()) : [];
  console.log(JSON.stringify({ valid: document !== undefined && errors.length === 0, errors, channels, operations, messages }));
}
