import { type Access, type Rights, type Role, rightsOf } from './permissions.ts';

/** Who calls, as found out at the door, anew for each call. */
export interface Caller {
  readonly id: string;
  readonly roles?: readonly Role[];
  readonly access: ReadonlySet<Access>;
  /** What it may do only as the agent of its own id. */
  readonly own?: ReadonlySet<Access>;
  /** The browser session, if it came by one. */
  readonly session?: string;
  readonly door?: 'http' | 'mcp';
  readonly ip?: string;
  readonly userAgent?: string;
}

/** What a door knows of a call before it knows who it is. */
export interface Knock {
  /** The value of the Authorization header. */
  readonly authorization?: string | undefined;
  /** The secret of a session, from the cookie. */
  readonly session?: string | undefined;
  /** The address of the connection itself: headers that claim another are not believed. */
  readonly ip: string;
  readonly userAgent?: string | undefined;
}

export const LOCAL_USER = 'local';
export const ANONYMOUS: Caller = { id: 'anonymous', roles: [], access: new Set(['open']) };
export const LOCAL: Caller = { id: LOCAL_USER, roles: ['admin'], ...rightsOf(['admin']) };

export const rightsOfCaller = ({ access, own = new Set() }: Caller): Rights => ({ access, own });

/** The machine's own addresses, in all the forms in which a socket tells them. */
export const isLoopback = (ip: string): boolean => /^(127\.|::1$|::ffff:127\.)/.test(ip);
