const STEP = /([^.[\]]+)|\[(\d+|\*)\]/g;

const REDUCE = {
  list: (values) => values,
  count: (values) => values.length,
  sum: (values) => values.reduce((sum, value) => sum + (typeof value === 'number' ? value : 0), 0),
  unique: (values) => [...new Map(values.map((value) => [JSON.stringify(value), value])).values()],
};

/** Follows the path from the root, one step at a time, over all values reached so far. */
export function run({ json, path, reduce = 'list' }) {
  let values = [JSON.parse(json)];
  for (const [, name, index] of path.matchAll(STEP)) {
    values = values.flatMap((value) => step(value, name, index));
  }
  return { matches: values.length, result: REDUCE[reduce](values) };
}

function step(value, name, index) {
  if (value === null || typeof value !== 'object') return [];
  if (index === '*') return Object.values(value);
  const key = name ?? Number(index);
  return Object.hasOwn(value, key) ? [value[key]] : [];
}
