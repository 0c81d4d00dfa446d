import type { TaskDetail } from '../coordinator/tasks/task-view.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import type { Action, Explainer, Explanation, Hold } from '../hold.ts';
import { isId } from '../redis/ids.ts';
import type { Approvals } from './approvals.ts';
import type { Need } from './need.ts';
import type { ApprovalRequest, Tally } from './request.ts';

/** Why a task stands before the gate, who could let it pass, and what they are asked. Also for the id of a request. */
export const explainApprovals =
  (approvals: Approvals, tasks: Tasks): Explainer =>
  async (ref, asker) => {
    const request = await approvals.desk.find(ref);
    const head = tasks.store.common().head;
    const task = request ? request.task_id.slice(head.length) : ref;
    if (!isId('task', task)) return undefined;
    const detail = await tasks.views.detail(task);
    if (!detail || !STANDS_BEFORE.includes(detail.state)) return undefined;
    const ade = tasks.store.adeId(task);
    const [asked, tally] = await Promise.all([approvals.desk.about(ade), approvals.desk.tally(ade)]);
    const open = asked.filter(({ status }) => status === 'PENDING').sort(byDue);
    const then = open[0] ? await approvals.escalation.outlook(open[0]) : '';
    const mine = open.find(({ reviewer_id }) => reviewer_id === asker);
    const shown = [...(mine ? [mine] : []), ...open.filter((one) => one !== mine)].slice(0, MOST_SHOWN);
    const answers = await Promise.all(shown.map(async (one) => answerTo(one, await approvals.objectionTo(asker, one))));
    return explanation(detail, {
      open,
      tally,
      then,
      answers: mine ? answers : [...open.slice(0, 1).map(lookAt), ...answers],
    });
  };

const MOST_SHOWN = 3;

const answerTo = ({ approval_id, reviewer_id }: ApprovalRequest, why_not: string | undefined): Action => ({
  label: `As ${reviewer_id}`,
  command: `reeve approval approve ${approval_id}`,
  method: 'POST',
  url: `/api/v1/approvals/${approval_id}/approve`,
  allowed: why_not === undefined,
  ...(why_not !== undefined && { why_not }),
});

const lookAt = ({ approval_id }: ApprovalRequest): Action => ({
  label: 'See what is asked',
  command: `reeve approval show ${approval_id}`,
  method: 'GET',
  url: `/api/v1/approvals/${approval_id}`,
  allowed: true,
});

/** How the vote on a task stands: who is still asked, soonest due first, and what happens if that one does not answer. */
interface Vote {
  readonly open: readonly ApprovalRequest[];
  readonly tally: Tally;
  readonly then: string;
  /** What the one who wants to know can do about it. */
  readonly answers: readonly Action[];
}

const byDue = (a: ApprovalRequest, b: ApprovalRequest): number => Date.parse(a.due_at) - Date.parse(b.due_at);

const STANDS_BEFORE: readonly string[] = ['DRAFT', 'SUBMITTED', 'REVIEWING', 'REJECTED'];

function explanation(detail: TaskDetail, vote: Vote): Explanation {
  const hold = holdOf(detail, vote);
  return { subject: detail.task_id, state: detail.station, says: hold.because, holds: [hold], upstream: [] };
}

function holdOf(detail: TaskDetail, { open, tally, then, answers }: Vote): Hold {
  const { task_id: subject, state, because = '' } = detail;
  const base = { kind: 'approval', subject, clears_at: null } as const;
  const act = (label: string, command: string, url: string): Action => ({
    label,
    command,
    method: 'POST',
    url: `/api/v1${url}`,
    allowed: true,
  });
  const submit = act('Submit it', `reeve task submit ${subject}`, `/tasks/${subject}/submit`);
  const cancel = act('Call it off', `reeve task cancel ${subject}`, `/tasks/${subject}/cancel`);
  switch (state) {
    case 'DRAFT':
      return { ...base, because: `${subject} is a draft${because ? `: ${because}` : ''}.`, actions: [submit, cancel] };
    case 'SUBMITTED':
      return {
        ...base,
        because: `${subject} waits to be asked for: ${tally.because || because}.`,
        actions: [submit, cancel],
      };
    case 'REJECTED': {
      const retry = act('Try again as a new task', `reeve task retry ${subject}`, `/tasks/${subject}/retry`);
      return {
        ...base,
        kind: 'policy',
        because: `${subject} was rejected: ${because || 'no reason given'}.`,
        actions: [retry],
      };
    }
    default: {
      const names = open.map(({ reviewer_id }) => reviewer_id);
      return {
        ...base,
        ...(names[0] && { holder: names.join(', ') }),
        ...(open[0] && { since: open[0].created_at, clears_by: `due at ${open[0].due_at}; then ${then}` }),
        ...(tally.policies[0] && {
          rule: tally.policies.map(({ policy_id, version }) => `${policy_id} r${version}`).join(', '),
        }),
        because: `${subject} ${lacking(tally)}, because ${tally.because}. Asked: ${names.join(', ') || 'nobody'}${deadline(open[0], then)}.`,
        actions: [...answers, cancel],
      };
    }
  }
}

/** Until when, and what then. */
function deadline(first: ApprovalRequest | undefined, then: string): string {
  if (!first) return '';
  if (!first.escalates) return `. It is overdue since ${first.due_at}, and nobody else is left to be asked`;
  return `. ${first.reviewer_id} has until ${first.due_at}; then ${then}`;
}

/** What is still missing, by the policy that lacks most. */
function lacking({ needs, approved_count }: Tally): string {
  const most = Math.max(1, ...needs.map(({ min }: Need) => min));
  const roles = [...new Set(needs.flatMap(({ roles }) => roles.map(({ role }) => role)))];
  const of = roles.length > 0 ? ` (${roles.join(' and ')} among them)` : '';
  return `has ${approved_count} of ${most} approvals${of}`;
}
