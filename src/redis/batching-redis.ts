import { availableParallelism } from 'node:os';
import { type Command, Redis, type RedisOptions } from 'ioredis';
import type { Clock } from '../clock.ts';
import { OwedReplies } from './owed-replies.ts';
import { Vigil } from './vigil.ts';

export interface BatchingOptions {
  readonly clock: Clock;
  /** How long one command may take. */
  readonly patienceMs: number;
}

/**
 * The first command of a turn of the event loop leaves at once, those that follow in the same turn leave together when it
 * ends. Whoever sends many at once then pays for two system calls, here and in the server, and not for one per command.
 */
export class BatchingRedis extends Redis {
  readonly #owed: OwedReplies;
  /** Not on a machine with one core: the server could not work while this stays awake. */
  readonly #vigil: Vigil | undefined;
  readonly #endTurn = () => this.#sendHeld();
  #sent = 0;
  #held: Redis['stream'] | undefined;

  constructor(options: Omit<RedisOptions, 'replyMapping'>, { clock, patienceMs }: BatchingOptions) {
    super(options);
    this.#owed = new OwedReplies({
      clock,
      patienceMs,
      received: () => ('bytesRead' in this.stream ? this.stream.bytesRead : 0),
      giveUp: (error) => this.stream.destroy(error),
    });
    this.#vigil = availableParallelism() > 1 ? new Vigil({ clock }) : undefined;
    this.on('end', () => this.#owed.close());
  }

  override sendCommand(command: Command, stream?: Parameters<Redis['sendCommand']>[1]): unknown {
    if (this.#sent++ === 0) process.nextTick(this.#endTurn);
    else if (!this.#held && this.stream) this.#hold(this.stream);
    const promise = super.sendCommand(command, stream);
    if (!command.isSettled) this.#watch(command);
    return promise;
  }

  #watch(command: Command): void {
    this.#owed.add(command);
    if (this.#owed.count === 1) this.#vigil?.begin(command);
  }

  #hold(stream: Redis['stream']): void {
    this.#held = stream;
    stream.cork();
  }

  #sendHeld(): void {
    this.#sent = 0;
    this.#held?.uncork();
    this.#held = undefined;
  }
}
