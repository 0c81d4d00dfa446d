import { type DestinationStream, type Logger as Pino, pino, stdTimeFunctions } from 'pino';

export type LogFields = Readonly<Record<string, unknown>>;

/** A constant sentence and fields: `log.info('redis started', { pid })`. Children carry the component they speak for. */
export interface Logger {
  debug(sentence: string, fields?: LogFields): void;
  info(sentence: string, fields?: LogFields): void;
  warn(sentence: string, fields?: LogFields): void;
  error(sentence: string, fields?: LogFields): void;
  child(component: string): Logger;
}

/** The root logger, whose level may be changed while it runs (SIGHUP). */
export interface RootLogger extends Logger {
  setLevel(level: LogLevel): void;
}

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: 'pretty' | 'json';
  /** Default: standard output. */
  readonly destination?: DestinationStream;
}

export async function createLog({ level, format, destination }: LogOptions): Promise<RootLogger> {
  const options = { level, timestamp: stdTimeFunctions.isoTime, base: null };
  const root = pino(
    options,
    format === 'pretty' ? await prettyStream(destination) : (destination ?? pino.destination({ sync: true })),
  );
  return Object.assign(wrap(root), {
    setLevel: (next: LogLevel) => {
      root.level = next;
    },
  });
}

export const silentLog: Logger = wrap(pino({ level: 'silent' }));

function wrap(log: Pino): Logger {
  return {
    debug: (sentence, fields) => log.debug(masked(fields), sentence),
    info: (sentence, fields) => log.info(masked(fields), sentence),
    warn: (sentence, fields) => log.warn(masked(fields), sentence),
    error: (sentence, fields) => log.error(masked(fields), sentence),
    child: (component) => wrap(log.child({ component })),
  };
}

/** Passwords also hide inside URLs and error messages, where no field name gives them away. */
const SECRET_IN_QUERY = /([?&][\w-]*(?:password|passwd|token|secret)=)[^&\s]+/gi;
/** Up to the last @ of the word: a password that nobody encoded may hold one itself, or a slash. */
const LOGIN_IN_URL = /\b([a-z][a-z0-9+.-]*:\/\/)[^\s"]*@/gi;
export const maskUrl = (text: string): string => text.replace(SECRET_IN_QUERY, '$1***').replace(LOGIN_IN_URL, '$1***@');

/** Fields whose values never reach a log, however deep they lie. */
const SECRET_FIELD = /^(?:token|authorization|cookie)$|(?:password|secret|privatekey|accesskey)$/i;
const isSecretField = (name: string): boolean => SECRET_FIELD.test(name.replaceAll(/[_-]/g, ''));

const masked = (fields: LogFields = {}): LogFields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      isSecretField(name) && value !== undefined ? '[hidden]' : maskedValue(value),
    ]),
  );

function maskedValue(value: unknown): unknown {
  if (typeof value === 'string') return maskUrl(value);
  if (Array.isArray(value)) return value.map(maskedValue);
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? masked(value as LogFields) : value;
}

/** pino-pretty is loaded only where a person reads. */
async function prettyStream(destination?: DestinationStream): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty');
  return pretty({
    sync: true,
    colorize: process.stdout.hasColors?.() ?? false,
    ignore: 'component',
    singleLine: true,
    messageFormat: '{if component}{component}: {end}{msg}',
    translateTime: 'SYS:HH:MM:ss.l',
    ...(destination && { destination }),
  });
}
