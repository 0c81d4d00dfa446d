import { stationOf } from '../../../src/coordinator/tasks/station.ts';
import {
  type ExecutionResult,
  TASK_STATES,
  type TaskState,
  type WorkStatus,
} from '../../../src/coordinator/tasks/task.ts';
import type { TaskRoom } from './room.ts';

type Found = Pick<TaskRoom, 'client' | 'keys' | 'tasks' | 'limits'>;

interface Row {
  readonly id: string;
  readonly status: WorkStatus;
  readonly lane: string;
  readonly agent: string;
  readonly lockId: string;
  readonly claims: readonly (readonly [type: string, id: string, mode: string, mark: string])[];
  readonly parked: string;
  readonly parent: string;
  readonly held: string;
  readonly paused: string;
  readonly state: TaskState;
  readonly result: ExecutionResult | undefined;
  readonly open: number;
}

/** Whatever of the queue contradicts itself, in words; nothing, if all is well. Costs as much as there are tasks. */
export async function contradictions(room: Found): Promise<string[]> {
  const rows = await readAll(room);
  const found = await Promise.all([
    axes(room, rows),
    readiness(room, rows),
    publicList(room, rows),
    leases(room, rows),
    resources(room, rows),
    parking(room, rows),
  ]);
  return found.flat();
}

async function readAll({ client, keys, tasks }: Found): Promise<Row[]> {
  const ids = await tasks.store.ids();
  const fields = [
    'status',
    'lane',
    'agent',
    'lock_id',
    'claims',
    'parked',
    'quarantine',
    'aside',
    'parent',
    'paused',
    'undo',
  ];
  const records = await tasks.store.records(ids, fields);
  return Promise.all(
    ids.map(async (id, at) => {
      const [status, lane, agent, lockId, claims, parked, quarantine, aside, parent, paused, undo] = records[at] as (
        | string
        | null
      )[];
      const ade = tasks.store.adeId(id);
      return {
        id,
        status: status as WorkStatus,
        lane: lane ?? '',
        agent: agent ?? '',
        lockId: lockId ?? '',
        claims: claims ? JSON.parse(claims) : [],
        parked: parked ?? '',
        parent: parent ?? '',
        paused: paused ?? '',
        held: `${quarantine ?? ''}${aside ?? ''}${undo ?? ''}${(await client.zscore(keys.delayedTasks(), id)) ?? ''}`,
        state: (await client.get(keys.taskState(ade))) as TaskState,
        result: ((await client.hget(keys.taskExecution(ade), 'result')) ?? undefined) as ExecutionResult | undefined,
        open: await client.scard(keys.openDependencies(id)),
      };
    }),
  );
}

const isRunning = ({ status }: Row) => status === 'assigned' || status === 'in_progress';
const same = (what: string, found: readonly string[], expected: readonly string[]): string[] => {
  const [one, other] = [[...found].sort().join(' '), [...expected].sort().join(' ')];
  return one === other ? [] : [`${what}: found [${one}], expected [${other}]`];
};

/** The word of the queue goes with the state of approval, and the index of states is the states. */
async function axes({ client, keys, tasks }: Found, rows: readonly Row[]): Promise<string[]> {
  const wrong = rows
    .filter((row) => stationOf(row) === 'inconsistent')
    .map(({ id, state, status }) => `${id} is ${status} and ${state}`);
  for (const state of TASK_STATES) {
    const expected = rows.filter((row) => row.state === state).map(({ id }) => tasks.store.adeId(id));
    wrong.push(...same(`tasks that are ${state}`, await client.zrange(keys.tasksByState(state), '0', '-1'), expected));
  }
  return wrong;
}

/** Ready is exactly what nothing keeps from being so; the lanes together are the order. */
async function readiness({ client, keys }: Found, rows: readonly Row[]): Promise<string[]> {
  const ready = rows.filter(({ status, parked }) => status === 'pending' && parked === '');
  const lanes = await Promise.all(
    [...new Set(rows.map(({ lane }) => lane))].map((lane) => client.zrange(keys.readyTasks(lane), '0', '-1')),
  );
  const ids = ready.map(({ id }) => id);
  return [
    ...same('the ready order', await client.zrange(keys.readyOrder(), '0', '-1'), ids),
    ...same('the lanes', lanes.flat(), ids),
    ...rows
      .filter(({ status, held, open }) => status === 'pending' && (held !== '' || open > 0))
      .map(({ id }) => `${id} is ready, and something keeps it`),
    ...rows
      .filter(
        ({ status, held, paused, open, state }) =>
          status === 'blocked' && `${held}${paused}` === '' && open === 0 && state === 'APPROVED',
      )
      .map(({ id }) => `${id} is blocked by nothing`),
    ...same(
      'those that a pause keeps',
      await client.zrange(keys.pausedTasks(), '0', '-1'),
      rows.filter(({ status, paused }) => status === 'blocked' && paused !== '').map(({ id }) => id),
    ),
    ...rows
      .filter(({ status, paused }) => status !== 'blocked' && paused !== '')
      .map(({ id }) => `${id} is kept by no pause`),
  ];
}

/** The list shows each task once, the best of those that are ready first; what is offered and not there was taken. */
async function publicList({ client, keys, limits }: Found, rows: readonly Row[]): Promise<string[]> {
  const listed = (await client.lrange(keys.taskQueue(), 0, -1)).reverse();
  const offered = new Set(await client.zrange(keys.offeredTasks(), '0', '-1'));
  const order = await client.zrange(keys.readyOrder(), '0', '-1');
  const taken = new Set([...offered].filter((id) => !listed.includes(id)));
  const wrong = listed.filter((id) => !offered.has(id)).map((id) => `${id} is listed, but was not offered`);
  if (new Set(listed).size !== listed.length) wrong.push(`listed twice: ${listed.join(' ')}`);
  // Its parent's holder gets a child first; and a list that must be free of collisions leaves more out.
  const reserved = (id: string) =>
    rows.some((row) => row.id === id && rows.some((p) => p.id === row.parent && isRunning(p)));
  if (limits.isExclusive) {
    const marked = rows.filter((row) => listed.includes(row.id) || isRunning(row));
    return [...wrong, ...clashes(marked.filter((row) => !row.agent.startsWith('raw.') || !isRunning(row)))];
  }
  const best = order.slice(0, limits.window).filter((id) => !reserved(id) && !taken.has(id));
  if (listed.join(' ') !== best.join(' ')) wrong.push(`listed ${listed.join(' ')}, the best are ${best.join(' ')}`);
  return wrong;
}

/** Who runs has its lock, and only who runs: one holder each, one claim each, one place each. */
async function leases({ client, keys, tasks }: Found, rows: readonly Row[]): Promise<string[]> {
  const running = rows.filter(isRunning);
  const wrong = same(
    'running',
    await client.zrange(keys.runningTasks(), '0', '-1'),
    running.map(({ id }) => id),
  );
  for (const row of rows) {
    const holder = await client.hmget(keys.taskLock(tasks.store.adeId(row.id)), 'holder_agent_id', 'lock_id');
    const expected = isRunning(row) ? `${row.agent} ${row.lockId}` : ' ';
    if (holder.map((text) => text ?? '').join(' ') !== expected)
      wrong.push(`the lock of ${row.id} (${row.status}) is held by "${holder.join(' ')}", not by "${expected}"`);
  }
  for (const agent of new Set(rows.map((row) => row.agent).filter(Boolean))) {
    const own = running.filter((row) => row.agent === agent);
    wrong.push(
      ...same(
        `claims of ${agent}`,
        await client.hkeys(keys.agentClaims(agent)),
        own.map(({ id }) => id),
      ),
    );
    const taken = await client.zrange(keys.agentCapacityLeases(agent), '0', '-1');
    // A child may have come in through its parent, and then has no place of its own.
    const places = own.filter(
      ({ lockId, parent }) => !agent.startsWith('raw.') && (parent === '' || taken.includes(lockId)),
    );
    wrong.push(
      ...same(
        `places of ${agent}`,
        taken,
        places.map(({ lockId }) => lockId),
      ),
    );
  }
  return wrong;
}

/** The marks of what is held are those of running tasks, and no two of them exclude each other. */
async function resources({ client, keys }: Found, rows: readonly Row[]): Promise<string[]> {
  const running = rows.filter(isRunning);
  const marks = (mode: string) =>
    running.flatMap(({ id, claims }) =>
      claims.filter((claim) => claim[2] === mode).map((claim) => `${claim[3]}\0${id}`),
    );
  const wrong = [
    ...same('marks', await client.zrange(keys.heldExclusive(), '0', '-1'), marks('x')),
    ...same('shared marks', await client.zrange(keys.heldShared(), '0', '-1'), marks('s')),
  ];
  // Plain clients ask nobody; and a child goes through the locks of its parent.
  return [...wrong, ...clashes(running.filter((row) => !row.agent.startsWith('raw.')))];
}

function clashes(rows: readonly Row[]): string[] {
  const wrong: string[] = [];
  for (const one of rows) {
    for (const other of rows) {
      const isFamily = one.agent === other.agent && (one.parent === other.id || other.parent === one.id);
      if (one.id >= other.id || isFamily) continue;
      const clash = one.claims.some(([, , mode, mark]) =>
        other.claims.some(
          ([, , theirs, mark2]) =>
            (mode === 'x' || theirs === 'x') && (mark.startsWith(mark2) || mark2.startsWith(mark)),
        ),
      );
      if (clash) wrong.push(`${one.id} and ${other.id} run or are listed at once and exclude each other`);
    }
  }
  return wrong;
}

/** Whoever is parked waits for one that runs, and is in its list and no other. */
async function parking({ client, keys }: Found, rows: readonly Row[]): Promise<string[]> {
  const wrong = rows
    .filter(({ parked }) => parked !== '' && !rows.some((row) => row.id === parked && isRunning(row)))
    .map(({ id, parked }) => `${id} is parked on ${parked}, which does not run`);
  for (const { id } of rows) {
    const waiting = rows.filter(({ parked, status }) => parked === id && status === 'pending').map((row) => row.id);
    wrong.push(...same(`parked on ${id}`, await client.smembers(keys.parkedTasks(id)), waiting));
  }
  return wrong;
}
