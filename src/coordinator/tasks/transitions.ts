import type { TaskState } from './task.ts';

/** Who may move a task along this edge. `file`: a person, by editing the task file. */
type Mover = 'author' | 'reviewer' | 'agent' | 'system' | 'file';

interface Transition {
  readonly from: TaskState;
  readonly to: TaskState;
  readonly by: readonly Mover[];
  readonly when: string;
}

/** Every way a task can move. What is not here does not happen; scripts get the same table as a constant. */
export const TRANSITIONS: readonly Transition[] = [
  { from: 'DRAFT', to: 'SUBMITTED', by: ['author', 'system'], when: 'it has a preview and a risk' },
  { from: 'DRAFT', to: 'CANCELLED', by: ['author', 'system', 'file'], when: 'it is not wanted any more' },

  { from: 'SUBMITTED', to: 'REVIEWING', by: ['system'], when: 'reviewers were asked' },
  { from: 'SUBMITTED', to: 'APPROVED', by: ['system'], when: 'nobody need be asked, or an admin forces it' },
  { from: 'SUBMITTED', to: 'REJECTED', by: ['system'], when: 'it is not valid' },
  { from: 'SUBMITTED', to: 'CANCELLED', by: ['author', 'system', 'file'], when: 'it is not wanted any more' },

  { from: 'REVIEWING', to: 'APPROVED', by: ['reviewer', 'system'], when: 'every policy has its quorum' },
  { from: 'REVIEWING', to: 'REJECTED', by: ['reviewer'], when: 'a reviewer refuses' },
  { from: 'REVIEWING', to: 'DRAFT', by: ['reviewer'], when: 'a reviewer asks for changes' },
  { from: 'REVIEWING', to: 'SUBMITTED', by: ['author', 'file'], when: 'it was edited: votes are void' },
  { from: 'REVIEWING', to: 'CANCELLED', by: ['author', 'system', 'file'], when: 'it is not wanted any more' },

  { from: 'APPROVED', to: 'APPLYING', by: ['agent', 'file'], when: 'it is claimed, with its locks and a place' },
  { from: 'APPROVED', to: 'SUBMITTED', by: ['author', 'file'], when: 'it was edited: votes are void' },
  { from: 'APPROVED', to: 'REJECTED', by: ['reviewer'], when: 'a vote was withdrawn and the quorum with it' },
  { from: 'APPROVED', to: 'CANCELLED', by: ['author', 'system', 'file'], when: 'it is not wanted any more' },

  { from: 'APPLYING', to: 'COMPLETED', by: ['agent', 'file'], when: 'it is done' },
  { from: 'APPLYING', to: 'APPROVED', by: ['agent', 'system', 'file'], when: 'dropped, lost or to be tried again' },
  { from: 'APPLYING', to: 'CANCELLED', by: ['author', 'system', 'file'], when: 'stopped, or given up after retries' },

  { from: 'COMPLETED', to: 'DRAFT', by: ['file'], when: 'its row was opened again: it passes the gate anew' },
  { from: 'CANCELLED', to: 'DRAFT', by: ['author', 'file'], when: 'it is tried again: it passes the gate anew' },
];

/** The same as a look-up: state → states it may move to. */
export const NEXT_STATES: Readonly<Record<TaskState, readonly TaskState[]>> = {
  DRAFT: nextOf('DRAFT'),
  SUBMITTED: nextOf('SUBMITTED'),
  REVIEWING: nextOf('REVIEWING'),
  APPROVED: nextOf('APPROVED'),
  APPLYING: nextOf('APPLYING'),
  COMPLETED: nextOf('COMPLETED'),
  REJECTED: nextOf('REJECTED'),
  CANCELLED: nextOf('CANCELLED'),
};

export const canMove = (from: TaskState, to: TaskState): boolean => NEXT_STATES[from].includes(to);

function nextOf(state: TaskState): TaskState[] {
  return TRANSITIONS.filter(({ from }) => from === state).map(({ to }) => to);
}
