/**
 * Requests of one turn of the event loop, sent together. Whoever asks alone waits for nothing; where many ask at once, they share
 * one step in Redis and the way there and back. As many as may go together go at once, so that Redis begins while others still ask.
 */
export class Gathering<Question, Answer> {
  readonly #ask: (questions: readonly Question[]) => Promise<readonly (Answer | PromiseLike<Answer>)[]>;
  readonly #most: number;
  readonly #endTurn = () => this.#send();
  #waiting: Waiting<Question, Answer>[] = [];

  /** `most`: how many go together; Redis does nothing else meanwhile. An answer may still be on its way: only who asked for it waits. */
  constructor(
    ask: (questions: readonly Question[]) => Promise<readonly (Answer | PromiseLike<Answer>)[]>,
    most: number,
  ) {
    this.#ask = ask;
    this.#most = most;
  }

  ask(question: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ question, resolve, reject }) === 1) process.nextTick(this.#endTurn);
      if (this.#waiting.length >= this.#most) this.#send();
    });
  }

  #send(): void {
    const some = this.#waiting;
    if (some.length === 0) return;
    this.#waiting = [];
    this.#ask(some.map(({ question }) => question)).then(
      (answers) => {
        for (let at = 0; at < some.length; at++) some[at]?.resolve(answers[at] as Answer);
      },
      (error: unknown) => {
        for (const { reject } of some) reject(error);
      },
    );
  }
}

interface Waiting<Question, Answer> {
  readonly question: Question;
  readonly resolve: (answer: Answer | PromiseLike<Answer>) => void;
  readonly reject: (error: unknown) => void;
}
