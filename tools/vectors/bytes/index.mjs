// Every theme of byte vectors, by the name of its file.
import keys from './keys.mjs';
import { absent, duplicates, folding, order } from './members.mjs';
import numbers from './numbers.mjs';
import strings from './strings.mjs';
import { depth, grammar, types, whitespace } from './text_level.mjs';

export default { numbers, strings, keys, order, folding, absent, duplicates, whitespace, depth, grammar, types };
