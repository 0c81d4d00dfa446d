import { type ReeveEvent, STREAMS, type StreamName } from './catalogue.ts';

export type Fields = Readonly<Record<string, string>>;

/** Reads a stream entry. Raw clients may append anything, so a missing field is made up for rather than refused. */
export function decodeEntry(stream: StreamName, id: string, flat: readonly string[]): ReeveEvent {
  const fields = pairs(flat);
  const at = fields.timestamp ?? timeOf(id);
  switch (STREAMS[stream].form) {
    case 'ade':
      return {
        stream,
        id,
        event: fields.event ?? 'unknown',
        at,
        source: fields.source ?? 'unknown',
        payload: jsonObject(fields.payload),
      };
    case 'odyssey': {
      const { event_type, timestamp: _at, source, payload, ...facts } = fields;
      const whole = { ...facts, ...jsonObject(payload) };
      return {
        stream,
        id,
        event: event_type ?? 'unknown',
        at,
        source: source ?? facts.agent_id ?? 'unknown',
        payload: whole,
      };
    }
    case 'sync': {
      const { timestamp: _at, source, ...facts } = fields;
      return { stream, id, event: `asset:${facts.op ?? 'unknown'}`, at, source: source ?? 'sync', payload: facts };
    }
  }
}

/** The same, the other way: what to append. The timestamp is added by whoever writes, from the Redis server's clock. */
export function encodeFields(stream: StreamName, event: string, payload: Readonly<Record<string, unknown>>): Fields {
  switch (STREAMS[stream].form) {
    case 'ade':
      return { event, payload: JSON.stringify(payload) };
    case 'odyssey': {
      const { task_id, agent_id, ...rest } = payload;
      const known = texts({ task_id, agent_id });
      return { event_type: event, ...known, ...(Object.keys(rest).length > 0 && { payload: JSON.stringify(rest) }) };
    }
    case 'sync':
      return { ...texts(payload), op: event.replace(/^asset:/, '') };
  }
}

/** An id begins with the millisecond it was given in, unless a raw client made it up: then it may be beyond all dates. */
function timeOf(id: string): string {
  const time = new Date(Number.parseInt(id, 10));
  return Number.isNaN(time.getTime()) ? 'unknown' : time.toISOString();
}

function pairs(flat: readonly string[]): Fields {
  const fields: Record<string, string> = {};
  for (let index = 0; index + 1 < flat.length; index += 2) fields[flat[index] as string] = flat[index + 1] as string;
  return fields;
}

const texts = (facts: Readonly<Record<string, unknown>>): Fields =>
  Object.fromEntries(
    Object.entries(facts)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );

function jsonObject(text: string | undefined): Record<string, unknown> {
  if (text === undefined) return {};
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : { value: parsed };
  } catch {
    return { text };
  }
}
