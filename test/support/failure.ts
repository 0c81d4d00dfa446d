/** What the work is rejected with. Taken up at once, so that it may fail before the test comes to look at it. */
export const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
