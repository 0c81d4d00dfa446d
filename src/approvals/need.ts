/** What one policy asks for, in people. Scripts count by it. */
export interface Need {
  readonly policy_id: string;
  readonly version: number;
  readonly min: number;
  readonly voters: readonly string[];
  readonly roles: readonly { readonly role: string; readonly voters: readonly string[] }[];
  /** In whose place a voter answers, where that is not only its own. The role is looked for there. */
  readonly by: Readonly<Record<string, readonly string[]>>;
  /** Those who were asked because others could not answer: any reviewer's right will do. */
  readonly stand_ins: readonly string[];
}

export const canBeMet = ({ min, voters, roles }: Need): boolean =>
  voters.length >= min && roles.every((role) => role.voters.length > 0);

export const allCanBeMet = (needs: readonly Need[]): boolean => needs.every(canBeMet);

const principalsOf = ({ by }: Need, voter: string): readonly string[] => by[voter] ?? [voter];

/** The same with one person in the place of another, by that one's right; or, as a stand-in, by its own. */
export function inPlaceOf(needs: readonly Need[], of: string, by: string, { asStandIn = false } = {}): Need[] {
  return needs.map((need) => {
    if (!need.voters.includes(of)) return need;
    const rest = without(need, of);
    const isStandIn = asStandIn || need.stand_ins.includes(of);
    const own = need.voters.includes(by) ? principalsOf(need, by) : [];
    const join = (voters: readonly string[], was: readonly string[]) =>
      was.includes(of) ? [...new Set([...voters, by])].sort() : voters;
    return {
      ...rest,
      voters: join(rest.voters, need.voters),
      roles: rest.roles.map((role, at) => ({ ...role, voters: join(role.voters, need.roles[at]!.voters) })),
      by: isStandIn ? rest.by : { ...rest.by, [by]: [...new Set([...own, ...principalsOf(need, of)])] },
      stand_ins: isStandIn ? [...new Set([...rest.stand_ins, by])] : rest.stand_ins,
    };
  });
}

/** The same without those who went along with somebody: they answered, and count for nothing. Oldest question first. */
export function withoutFollowers(needs: readonly Need[], asked: readonly Followed[]): readonly Need[] {
  const newest = new Map(asked.map((one) => [one.reviewer_id, one]));
  const gone = [...newest.values()].filter(({ follows }) => follows !== undefined);
  return needs.map((need) => gone.reduce((rest, { reviewer_id }) => without(rest, reviewer_id), need));
}

interface Followed {
  readonly reviewer_id: string;
  readonly follows?: string | undefined;
}

/** The same without one who is not asked any more. */
export function without(need: Need, person: string): Need {
  const rest = (voters: readonly string[]) => voters.filter((one) => one !== person);
  return {
    ...need,
    voters: rest(need.voters),
    roles: need.roles.map((role) => ({ ...role, voters: rest(role.voters) })),
    by: Object.fromEntries(Object.entries(need.by).filter(([voter]) => voter !== person)),
    stand_ins: rest(need.stand_ins),
  };
}
