/** Measures a text by what people call a character, a word and a sentence, in any language. */
export function run({ text, top = 5 }, { words_per_minute = 220 } = {}) {
  const pieces = (granularity) => [...new Intl.Segmenter(undefined, { granularity }).segment(text)];
  const words = pieces('word').filter(({ isWordLike }) => isWordLike);
  const counts = Map.groupBy(words, ({ segment }) => segment.toLocaleLowerCase());
  const frequent = [...counts].map(([word, uses]) => ({ word, count: uses.length }));
  frequent.sort((a, b) => b.count - a.count || a.word.localeCompare(b.word));
  return {
    characters: pieces('grapheme').length,
    words: words.length,
    sentences: pieces('sentence').filter(({ segment }) => segment.trim() !== '').length,
    lines: text === '' ? 0 : text.split(/\r\n|\r|\n/).length,
    reading_seconds: Math.round((words.length / words_per_minute) * 60),
    frequent: frequent.slice(0, top),
  };
}
