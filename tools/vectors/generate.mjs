#!/usr/bin/env node
// Write the data of the standard: `node tools/vectors/generate.mjs DIR`.
// The files are a function of these scripts alone; a test writes them again and compares.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import bytes from './bytes/index.mjs';
import { fixtures } from './cases/fixtures.mjs';
import { manifest } from './cases/manifest.mjs';
import { pretty } from './text.mjs';

const [folder] = process.argv.slice(2);
if (!folder) {
  console.error('usage: node tools/vectors/generate.mjs DIR');
  process.exit(2);
}

function write(path, text) {
  const place = join(folder, path);
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(place, text);
}

for (const [theme, { description, vectors }] of Object.entries(bytes)) {
  write(`bytes/${theme}.json`, `${pretty({ theme, description, vectors })}\n`);
}
for (const [name, { text }] of Object.entries(fixtures)) write(`fixtures/${name}.json`, text);
write('manifest.json', `${pretty(manifest(bytes))}\n`);
