import type { Asset } from './asset.ts';
import { CATEGORIES, type Category } from './category.ts';
import { weightedWords } from './words.ts';

/**
 * The search words of all assets are one sorted set in alphabetical order: WORD, a NUL, the weight (one digit), the category
 * (one letter), the id. So a prefix is a range, one command finds it, and no server-side module is needed.
 */
export interface Entry {
  readonly word: string;
  readonly weight: number;
  readonly category: Category;
  readonly id: string;
}

const LETTERS: Readonly<Record<Category, string>> = { tool: 't', prompt: 'p', skill: 's' };
const CATEGORY_OF = Object.fromEntries(CATEGORIES.map((category) => [LETTERS[category], category]));

export const encodeEntry = ({ word, weight, category, id }: Entry): string =>
  `${word}\0${weight}${LETTERS[category]}${id}`;

export function decodeEntry(member: string): Entry | undefined {
  const end = member.indexOf('\0');
  const category = CATEGORY_OF[member[end + 2] ?? ''];
  if (end < 0 || !category) return undefined;
  return { word: member.slice(0, end), weight: Number(member[end + 1]), category, id: member.slice(end + 3) };
}

/** The words of one asset on one line, as asset:search:docs keeps them: the category's letter, then weight and word. */
export const docOf = (asset: Asset): string =>
  [LETTERS[asset.category], ...[...weightedWords(asset)].map(([word, weight]) => `${weight}${word}`)].join(' ');

export function entriesOf(id: string, doc: string): Entry[] {
  const [letter, ...words] = doc.split(' ');
  const category = CATEGORY_OF[letter ?? ''] ?? 'tool';
  return words.map((word) => ({ word: word.slice(1), weight: Number(word[0]), category, id }));
}

/** The range of all entries whose word begins so. 0xFF comes after every byte of UTF-8. */
export const prefixRange = (prefix: string): readonly [Buffer, Buffer] => [
  Buffer.from(`[${prefix}`),
  Buffer.concat([Buffer.from(`(${prefix}`), Buffer.from([0xff])]),
];
