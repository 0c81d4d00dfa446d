import { z } from 'zod';
import { idSchema } from '../redis/ids.ts';
import type { UserRow } from '../store/schema.ts';
import { ROLE_NAMES, type Role } from './permissions.ts';

export interface User {
  readonly id: string;
  readonly name: string;
  readonly email?: string;
  /** Who answers when this user cannot. */
  readonly manager?: string;
  readonly roles: readonly Role[];
  readonly state: 'active' | 'removed';
  readonly aliases: readonly string[];
  readonly created_at: string;
  readonly removed_at?: string;
}

export const userIdSchema = idSchema('user');
const rolesSchema = z.array(z.enum(ROLE_NAMES));

export function toUser(row: UserRow, aliases: readonly string[]): User {
  const { id, name, email, manager, state, created_at, removed_at } = row;
  return {
    id,
    name,
    ...(email !== null && { email }),
    ...(manager !== null && { manager }),
    roles: parseRoles(row.roles),
    state,
    aliases,
    created_at,
    ...(removed_at !== null && { removed_at }),
  };
}

export const parseRoles = (text: string): Role[] => rolesSchema.parse(JSON.parse(text));
