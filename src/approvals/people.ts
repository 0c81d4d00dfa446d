/** A reader of policies' roles. Agents and the system are known, too, so that they can be refused by what they are. */
export interface Person {
  readonly id: string;
  readonly name: string;
  readonly kind: 'human' | 'agent' | 'system';
  readonly roles: readonly string[];
  readonly isActive: boolean;
  /** Whether votes of its may count: also of one who has no way in any more, but not of one who left. */
  readonly mayHaveVoted: boolean;
  readonly manager?: string | undefined;
  /** Other names of the same person. */
  readonly aliases?: readonly string[] | undefined;
}

/** Who there is. Asked for every decision: a role that was taken away counts no more. */
export interface People {
  find(id: string): Promise<Person | undefined>;
  all(): Promise<readonly Person[]>;
}

/** Roles of those who may agree where a policy names none. */
const REVIEWERS = ['reviewer', 'admin'];

export const canReview = ({ kind, isActive }: Person): boolean => kind === 'human' && isActive;

export const hasRole = (person: Person, roles: readonly string[]): boolean =>
  (roles.length > 0 ? roles : REVIEWERS).some((role) => person.roles.includes(role));

/** Ids that differ only in case are one person's: no second spelling may be a second vote. */
export const spelt = (id: string): string => id.toLowerCase();

/** Whether an id is that of the person, under any of its names. */
export const goesBy = ({ id, aliases = [] }: Person, name: string): boolean =>
  [id, ...aliases].some((one) => spelt(one) === spelt(name));
