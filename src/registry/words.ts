import type { Asset } from './asset.ts';

/** How much a word tells, by where it stands. One digit each: it is part of an index entry. */
const WEIGHTS = { id: 9, name: 8, tags: 6, author: 4, description: 2 } as const;
const MAX_LETTERS = 40;
const MAX_WORDS = 400;

/** Too common to find anything by. */
const STOP = new Set('a an and are as at be by for from in is it its of on or that the this to with'.split(' '));

/** Most text needs none of what follows it. */
const ASCII = /^\p{ASCII}*$/u;
const PLAIN = /[a-z0-9]+/g;
const RUN = /[\p{L}\p{N}\p{M}]+/gu;
const IDEOGRAPHIC = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー]+/gu;
/** Accents are dropped where people leave them out when they type. */
const ACCENT = /([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])\p{M}+/gu;

/**
 * The words of a text. Scripts without spaces give pairs of neighbouring characters and the last one alone, so that any part
 * of a name of two or more characters is found, and a single one by prefix.
 */
export function wordsOf(text: string): string[] {
  if (ASCII.test(text)) return (text.toLowerCase().match(PLAIN) ?? []).map(cut);
  const folded = text.normalize('NFKD').replace(ACCENT, '$1').normalize('NFKC').toLowerCase();
  return (folded.match(RUN) ?? []).flatMap((run) => {
    const words: string[] = [];
    let rest = '';
    let from = 0;
    for (const { 0: part, index } of run.matchAll(IDEOGRAPHIC)) {
      rest = run.slice(from, index);
      if (rest) words.push(cut(rest));
      words.push(...pairs(part));
      from = index + part.length;
    }
    if (from < run.length) words.push(cut(run.slice(from)));
    return words;
  });
}

/** Each word of an asset with the weight of the best place it stands in. */
export function weightedWords(asset: Asset): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const add = (text: string, weight: number) => {
    for (const word of wordsOf(text)) {
      if (found.size >= MAX_WORDS && !found.has(word)) continue;
      if (!STOP.has(word)) found.set(word, Math.max(weight, found.get(word) ?? 0));
    }
  };
  add(asset.id, WEIGHTS.id);
  add(asset.name, WEIGHTS.name);
  for (const tag of asset.tags) add(tag, WEIGHTS.tags);
  add(asset.author ?? '', WEIGHTS.author);
  add(asset.description, WEIGHTS.description);
  return found;
}

/** The words to look for. A question of stop words only looks for them after all. */
export function queryWords(query: string): string[] {
  const words = [...new Set(wordsOf(query))];
  const telling = words.filter((word) => !STOP.has(word));
  return (telling.length > 0 ? telling : words).slice(0, 12);
}

const cut = (word: string): string =>
  word.length <= MAX_LETTERS ? word : Array.from(word).slice(0, MAX_LETTERS).join('');

function pairs(text: string): string[] {
  const characters = Array.from(text);
  const made = characters.slice(0, -1).map((character, at) => character + characters[at + 1]);
  return [...made, characters.at(-1)!];
}
