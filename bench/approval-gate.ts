import { type Metric, metric, type Surroundings } from './harness.ts';
import { startDaemon } from './program.ts';

const UNLIMITED = ['--limits-create-per-minute', '0', '--limits-respond-per-minute', '0'];
const CALLS = 200;
const AT_ONCE = 10;
const PAGES = 200;
const [FEW, MANY] = [100, 10_000];

type Send = (method: string, path: string, body?: unknown) => Promise<unknown>;

/** What the human gate costs at the door, beside a POST that hardly does anything on the same server. */
export async function gateMetrics({ rounds, note }: Surroundings): Promise<Metric[]> {
  // The limits on one caller are not what is measured.
  await using daemon = await startDaemon(UNLIMITED);
  const send: Send = async (method, path, body) => {
    const init =
      body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(`${daemon.url}/api/v1${path}`, { method, ...init });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  await send('PUT', '/policies/auto', { task_types: ['auto'], auto_approve_if: { risk_below: 100 } });
  await send('PUT', '/policies/ask', { task_types: ['ask'] });
  await send('POST', '/agents', { agent: 'bench' });
  const samples: Record<'trivial' | 'submit' | 'approve' | 'few' | 'many', number[]> = {
    trivial: [],
    submit: [],
    approve: [],
    few: [],
    many: [],
  };
  const beat = () => send('POST', '/agents/bench/heartbeat', {});
  const page = () => send('GET', '/approvals?limit=50');
  for (let round = 0; round < rounds; round++) {
    note(`gate, round ${round + 1} of ${rounds}`);
    const drafts = await drafted(send, `a${round}`, 'auto', false);
    const asked = await drafted(send, `b${round}`, 'ask', true);
    samples.trivial.push(await p99(Array.from({ length: CALLS }, () => beat)));
    samples.submit.push(await p99(drafts.map((id) => () => send('POST', `/tasks/${id}/submit`, {}))));
    samples.approve.push(await p99(asked.map((id) => () => send('POST', `/approvals/${id}.1/approve`, {}))));
  }
  await waiting(send, 'few', FEW);
  for (let round = 0; round < rounds; round++) samples.few.push(await p99(Array.from({ length: PAGES }, () => page)));
  note(`${MANY} requests`);
  await waiting(send, 'many', MANY - FEW);
  for (let round = 0; round < rounds; round++) samples.many.push(await p99(Array.from({ length: PAGES }, () => page)));
  const most = (atMost: number) => ({ of: 'ratio', atMost }) as const;
  const { trivial: floor, submit, approve, few, many } = samples;
  return [
    metric({ name: 'submit, pass and queue, p99', unit: 'ms', samples: submit, floor, bar: most(4) }),
    metric({ name: 'approve with quorum, p99', unit: 'ms', samples: approve, floor, bar: most(3) }),
    metric({ name: 'page of 10,000 requests, p99', unit: 'ms', samples: many, floor: few, bar: most(2) }),
  ];
}

async function drafted(send: Send, name: string, category: string, submit: boolean): Promise<string[]> {
  const ids = Array.from({ length: CALLS }, (_, at) => `${name}-${at}`);
  for (const task of ids) {
    await send('POST', '/tasks', { task, title: task, category, files_to_modify: [task], agent: 'bot', submit });
  }
  return ids;
}

/** Tasks that wait for an answer; taken in as from a file, for that is how so many come. */
async function waiting(send: Send, name: string, count: number): Promise<void> {
  const tasks = Array.from({ length: count }, (_, at) => ({
    task_id: `${name}-${at}`,
    title: name,
    category: 'ask',
    priority: 5,
  }));
  for (let at = 0; at < count; at += 5_000) await send('POST', '/tasks/import', { tasks: tasks.slice(at, at + 5_000) });
  const { total } = (await send('GET', '/approvals?limit=1')) as { total: number };
  if (total < count) throw new Error(`${total} requests wait, and ${count} should`);
}

/** How long the slowest hundredth of the calls took, some of them at once. */
async function p99(calls: readonly (() => Promise<unknown>)[]): Promise<number> {
  const took: number[] = [];
  let next = 0;
  const caller = async () => {
    while (next < calls.length) {
      const call = calls[next++]!;
      const began = performance.now();
      await call();
      took.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  return took.toSorted((a, b) => a - b)[Math.floor(took.length * 0.99)]!;
}
