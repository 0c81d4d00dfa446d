import { Writable } from 'node:stream';
import { createLog, type LogOptions, type RootLogger } from '../../src/log.ts';
import { until } from './until.ts';

export interface CapturedLog {
  readonly log: RootLogger;
  /** Everything that was logged so far. */
  readonly text: () => Promise<string>;
}

/** A log that writes into memory. */
export async function capturedLog(options: Omit<LogOptions, 'destination'>): Promise<CapturedLog> {
  let written = '';
  const destination = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      written += chunk.toString();
      done();
    },
  });
  const log = await createLog({ ...options, destination });
  let marks = 0;
  return {
    log,
    text: async () => {
      // The pretty form takes a way of its own through streams: it is through when this line is.
      marks += 1;
      const mark = `end of capture ${marks}`;
      log.error(mark);
      await until('the log to be written', () => written.includes(mark));
      return written.replace(/^.*end of capture.*\n/gm, '');
    },
  };
}
