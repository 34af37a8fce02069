// Splicing: bytes are sacred. A retry, a redrive and a dead letter change the members they must
// and leave every other byte as it came; what is not an object travels inside a wrapper.
// The body is valid UTF-8 here, so a splice of its text is a splice of its bytes.
import { read, utf8Text } from './read.mjs';
import { canonicalDeadLetter } from './write.mjs';

const replace = (source, start, end, text) => source.slice(0, start) + text + source.slice(end);
const trim = (source) => source.replace(/^[ \t\r\n]+/, '').replace(/[ \t\r\n]+$/, '');

function addMember(source, text, comma) {
  const end = source.lastIndexOf('}');
  return replace(source, end, end, comma ? `,${text}` : text);
}

export function spliceAttempts(source, attempts) {
  const last = read(source).members.findLast(({ key }) => key === 'attempts');
  return last ? replace(source, last.value, last.end, attempts) : addMember(source, `"attempts":${attempts}`, true);
}

// Cuts every top-level `dead_letter` with one comma: from the comma before it, or up to the next
// member when nothing that stays stands before.
function withoutDeadLetter(source) {
  const { members } = read(source);
  let out = '';
  let from = 0;
  let kept = false;
  members.forEach(({ key, start, end }, index) => {
    if (key !== 'dead_letter') {
      kept = true;
      return;
    }
    out += source.slice(from, kept ? source.indexOf(',', members[index - 1].end) : start);
    from = kept ? end : (members[index + 1]?.start ?? end);
  });
  return out + source.slice(from);
}

export const redrive = (source) => spliceAttempts(withoutDeadLetter(source), '0');

export const deadLetter = (source, block, attempts) =>
  addMember(
    spliceAttempts(trim(withoutDeadLetter(source)), attempts),
    `"dead_letter":${canonicalDeadLetter(block)}`,
    true,
  );

export function poisonRecord(body, block) {
  const letter = `"dead_letter":${canonicalDeadLetter(block)}`;
  let source;
  try {
    source = utf8Text(body);
  } catch {
    return `{"raw":"${body.toString('base64')}","raw_encoding":"base64",${letter}}`;
  }
  let value;
  try {
    ({ value } = read(source));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const plain = value instanceof Map && !value.has('dead_letter');
  return plain ? addMember(trim(source), letter, value.size > 0) : `{"raw":${JSON.stringify(source)},${letter}}`;
}
