/**
 * Requests of one turn of the event loop, sent together. Whoever asks alone waits for nothing; where many ask at once, they share
 * one step in Redis and the way there and back.
 */
export class Gathering<Question, Answer> {
  readonly #ask: (questions: readonly Question[]) => Promise<readonly Answer[]>;
  readonly #most: number;
  #waiting: Waiting<Question, Answer>[] = [];

  /** `most`: how many go together; Redis does nothing else meanwhile. */
  constructor(ask: (questions: readonly Question[]) => Promise<readonly Answer[]>, most: number) {
    this.#ask = ask;
    this.#most = most;
  }

  ask(question: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) process.nextTick(() => this.#send());
      this.#waiting.push({ question, resolve, reject });
    });
  }

  #send(): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (let at = 0; at < all.length; at += this.#most) void this.#sendSome(all.slice(at, at + this.#most));
  }

  async #sendSome(some: readonly Waiting<Question, Answer>[]): Promise<void> {
    try {
      const answers = await this.#ask(some.map(({ question }) => question));
      for (const [at, { resolve }] of some.entries()) resolve(answers[at] as Answer);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
}

interface Waiting<Question, Answer> {
  readonly question: Question;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}
