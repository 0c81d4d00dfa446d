import { type Action, type Explanation, type Hold, spell } from '../../hold.ts';
import { type Blocked, formatLock, type Holder, type LockRef, type LockView } from './lock.ts';

/** Who asks, so that the sentence can speak of its own place and the commands can be run as they are. */
export interface Asker {
  readonly agent?: string | undefined;
  readonly position?: number | undefined;
  readonly expectedWaitMs?: number | undefined;
}

const UNKNOWN_AGENT = 'AGENT';

/** Why a lock was not granted, from what the acquire script saw in the same step. */
export function holdOfBlocked({ lock, holders, freeInMs, waiting }: Blocked, now: number, asker: Asker): Hold {
  const subject = formatLock(lock);
  const [first] = holders;
  const { position, expectedWaitMs } = asker;
  const estimate = expectedWaitMs ?? (first ? freeInMs : undefined);
  return {
    kind: lock.kind === 'agent' ? 'capacity' : 'lock',
    subject,
    ...(first && { holder: first.agent, since: first.acquiredAt }),
    clears_at: estimate === undefined ? null : new Date(now + estimate).toISOString(),
    ...(estimate !== undefined && {
      clears_by: expectedWaitMs === undefined ? 'end of the lease, unless renewed' : 'how long it is usually held',
    }),
    ...(position !== undefined && { position }),
    because: sentence(subject, { holders, freeInMs, waiting, kind: lock.kind, position }),
    actions: waitActions(subject, asker),
  };
}

/** The same from a look at the lock. */
export function holdOfView(view: LockView, asker: Asker = {}): Hold | undefined {
  const holders = view.holders.filter(({ state }) => state !== 'expired');
  const isFull = view.capacity !== undefined && view.capacity.activeTasks >= view.capacity.maxTasks;
  const isClosed = view.capacity !== undefined && view.capacity.status !== 'active';
  if (view.lock.kind === 'agent' ? !(isFull || isClosed) : holders.length === 0) return undefined;
  const now = Date.parse(view.at);
  const freeInMs = Math.max(0, ...holders.map(({ expiresAt }) => Date.parse(expiresAt) - now));
  const blocked = { lock: view.lock, holders, waiting: view.waiters.length, freeInMs };
  const hold = holdOfBlocked(blocked, now, asker);
  if (!view.capacity)
    return { ...hold, actions: [...hold.actions, ...holders.map((one) => freeAction(view.lock, one))] };
  const { activeTasks, maxTasks, status } = view.capacity;
  const because = isClosed
    ? `${hold.subject} is ${status} and takes nothing new.`
    : `${hold.subject} does ${activeTasks} of at most ${maxTasks} tasks; the next place is free when one of them ends.`;
  return { ...hold, because };
}

/** What `reeve why LOCK` answers. `waitsFor`: the locks that its holders wait for themselves. */
export function explainView(view: LockView, waitsFor: readonly string[]): Explanation {
  const subject = formatLock(view.lock);
  const hold = holdOfView(view);
  const waiting = view.waiters.filter(({ alive }) => alive).length;
  return {
    subject,
    state: hold ? 'held' : 'free',
    says:
      hold?.because ??
      (waiting > 0 ? `${subject} is free; the first of ${waiting} in line takes it.` : `${subject} is free.`),
    holds: hold ? [hold] : [],
    upstream: waitsFor.filter((name) => name !== subject),
  };
}

interface Told extends Pick<Blocked, 'holders' | 'freeInMs' | 'waiting'> {
  readonly kind: LockRef['kind'];
  readonly position: number | undefined;
}

function sentence(subject: string, { holders, freeInMs, waiting, kind, position }: Told): string {
  const [first, ...others] = holders;
  const place = position === undefined ? '' : `You are ${ordinal(position)} in line for ${subject}; `;
  if (!first) {
    if (kind === 'agent') return `${place}${subject} has no place free.`;
    return `${place}${waiting} ${waiting === 1 ? 'stands' : 'stand'} in line for ${subject} before you.`;
  }
  const also = others.length === 0 ? '' : ` and ${others.length} more`;
  const purpose = first.purpose === '' ? '' : ` for "${first.purpose}"`;
  const what = position === undefined ? subject : 'it';
  const line = position === undefined && waiting > 0 ? ` ${waiting} in line.` : '';
  const verb = others.length === 0 ? 'holds' : 'hold';
  return `${place}${first.agent}${also} ${verb} ${what}${purpose}, lease ends in ${spell(freeInMs)} unless renewed.${line}`;
}

const ordinal = (n: number): string => {
  const ending = n % 100 >= 11 && n % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th');
  return n === 1 ? 'next' : `${n}${ending}`;
};

const waitActions = (subject: string, { agent = UNKNOWN_AGENT }: Asker): Action[] => [
  {
    label: 'Wait for it',
    command: `reeve lock acquire ${subject} --agent ${agent} --wait 60`,
    method: 'POST',
    url: '/api/v1/locks',
    allowed: true,
  },
];

const freeAction = (lock: LockRef, { agent, lockId }: Holder): Action => ({
  label: `Take it from ${agent}`,
  command: `reeve lock release ${formatLock(lock)} --agent ${agent} --lock-id ${lockId}`,
  method: 'DELETE',
  url: `/api/v1/locks/${encodeURIComponent(formatLock(lock))}`,
  allowed: true,
});
