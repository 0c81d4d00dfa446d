import { z } from 'zod';

/**
 * The form in which names are compared, so that nobody is two people: case, width and the prefix that some tools put before an
 * id do not make another name. Names are ASCII, so none can look like another.
 */
export const canonicalName = (name: string): string => name.normalize('NFKC').trim().toLowerCase().replace(/^0x/, '');

/** What else a person is called: an address, a login elsewhere. */
export const aliasSchema = z
  .string()
  .regex(/^[!-~]{1,254}$/, 'letters, digits and signs without spaces, ASCII only, at most 254')
  .refine((name) => canonicalName(name) !== '', 'it is nothing but a prefix');

export const emailSchema = z.string().regex(/^[!-?A-~]+@[!-?A-~]+$/, 'an address like ann@example.com');
