import { reason } from '../errors.ts';

/** Reads a public name: anybody may have put something of another type there, which counts as nothing. */
export async function unlessWrongType<T>(asked: Promise<T>, instead: T): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!reason(error).includes('WRONGTYPE')) throw error;
    return instead;
  }
}
