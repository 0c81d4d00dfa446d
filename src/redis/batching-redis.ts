import { Redis } from 'ioredis';

/**
 * The first command of a turn of the event loop leaves at once, those that follow in the same turn leave together when it
 * ends. Whoever sends many at once then pays for two system calls, here and in the server, and not for one per command.
 */
export class BatchingRedis extends Redis {
  #sent = 0;
  #held: Redis['stream'] | undefined;

  override sendCommand(...given: Parameters<Redis['sendCommand']>): unknown {
    if (this.#sent++ === 0) process.nextTick(() => this.#endTurn());
    else if (!this.#held && this.stream) this.#hold(this.stream);
    return super.sendCommand(...given);
  }

  #hold(stream: Redis['stream']): void {
    this.#held = stream;
    stream.cork();
  }

  #endTurn(): void {
    this.#sent = 0;
    this.#held?.uncork();
    this.#held = undefined;
  }
}
