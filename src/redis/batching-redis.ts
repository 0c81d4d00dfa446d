import { Redis } from 'ioredis';

/**
 * Sends the commands of one turn of the event loop with one write. Whoever sends many at once then pays for a few system
 * calls, here and in the server, and not for one per command; a single command waits for nothing but the turn to end.
 */
export class BatchingRedis extends Redis {
  #held: Redis['stream'] | undefined;

  override sendCommand(...given: Parameters<Redis['sendCommand']>): unknown {
    const { stream } = this;
    if (stream && this.#held !== stream) this.#hold(stream);
    return super.sendCommand(...given);
  }

  #hold(stream: Redis['stream']): void {
    this.#held = stream;
    stream.cork();
    process.nextTick(() => {
      this.#held = undefined;
      stream.uncork();
    });
  }
}
