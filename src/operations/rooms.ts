import type { ReeveError } from '../errors.ts';
import type { EventLog } from '../events/event-log.ts';
import type { Tail } from '../events/tail.ts';
import type { System } from '../system/system.ts';

/** The rooms an operation may ask, as daemon.ts built them. */
export interface Rooms {
  readonly system: System;
  readonly events: EventLog;
  readonly tail: Tail;
  /** Gives errors of the media (Redis, SQL) their code; undefined if it is none of theirs. */
  readonly explain: (error: unknown) => ReeveError | undefined;
}
