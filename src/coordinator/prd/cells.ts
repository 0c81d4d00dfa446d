/** A value as SQLite gives it: columns have no fixed types there, so any may hold anything. */
export type Cell = string | number | bigint | Buffer | null | undefined;
export type Cells = Readonly<Record<string, Cell>>;

export function textOf(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  return Buffer.isBuffer(cell) ? cell.toString('utf8') : String(cell);
}

/** A finite number, also one written as text; undefined for everything else. */
export function numberOf(cell: Cell): number | undefined {
  const text = textOf(cell).trim();
  const number = text === '' ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : undefined;
}

export const isEmpty = (cell: Cell): boolean => textOf(cell).trim() === '';

/** A JSON list, or words parted by commas or line ends. Undefined: it begins like JSON and is none, or no list. */
export function listOf(cell: Cell): unknown[] | undefined {
  const text = textOf(cell).trim();
  if (text === '') return [];
  if (/^[[{"]/.test(text)) return jsonList(text);
  return text.split(/[,\n]/).flatMap((part) => part.trim() || []);
}

/** Like listOf(), but of texts only. */
export function textsOf(cell: Cell): string[] | undefined {
  const list = listOf(cell);
  return list?.every((item) => typeof item === 'string') ? list : undefined;
}

/** Ids of other tasks: a JSON list of texts and nothing else, for a wrong guess would start a task too early. */
export function idsOf(cell: Cell): string[] | undefined {
  if (isEmpty(cell)) return [];
  const list = jsonList(textOf(cell));
  const isSound = list?.every((item) => typeof item === 'string' && item.trim() !== '');
  return isSound ? [...new Set(list as string[])].map((id) => id.trim()) : undefined;
}

function jsonList(text: string): unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}
