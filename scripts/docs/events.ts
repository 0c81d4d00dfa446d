import { z } from 'zod';
import { EVENTS, STREAM_NAMES, STREAMS, type StreamName } from '../../src/events/catalogue.ts';
import { keyspace } from '../../src/redis/keys.ts';
import { capital, code, form, origin, type Schema, table } from './markdown.ts';

const FORMS: Record<(typeof STREAMS)[StreamName]['form'], string> = {
  ade: '`event`, `timestamp`, `payload` (JSON), `source`',
  odyssey: '`event_type`, `task_id`, `agent_id`, `timestamp`, and `payload` (JSON) for the rest',
  sync: 'one field per fact: `op`, `id`, `commit` …, and `timestamp`',
};

/** docs/events.md: every kind of event, by stream. */
export function eventsPage(): string {
  return `# Events

${origin('`src/events/catalogue.ts`')}

Whatever changes tells of it: the event is appended to a Redis stream in the same atomic step as the change, so neither
is ever there without the other. Times are the Redis server's. An event may carry more than is listed here; what is
listed is always there.

Read them in whichever way suits:

\`\`\`sh
reeve events --follow --stream lock,task
curl -N -H 'accept: text/event-stream' 'http://127.0.0.1:7420/api/v1/events?stream=lock'
redis-cli XREAD BLOCK 0 STREAMS ${streamKey('lock')} '$'
\`\`\`

Every answer carries a cursor; passed back as \`since\` (or \`Last-Event-ID\`) it continues without loss or repetition.
Streams keep about \`events.keep\` entries each; older ones are in the database.

## Streams

${table(
  ['stream', 'key in Redis', 'fields of an entry', 'tells of'],
  STREAM_NAMES.map((name) => [code(name), code(streamKey(name)), FORMS[STREAMS[name].form], STREAMS[name].holds]),
)}

${STREAM_NAMES.map(section).join('\n\n')}
`;
}

function section(stream: StreamName): string {
  const rows = Object.entries(EVENTS).filter(([, row]) => row.stream === stream);
  return `## ${capital(stream)}\n\n${table(
    ['event', 'tells that', 'carries'],
    rows.map(([name, { says, payload }]) => [code(name), says, carried(payload)]),
  )}`;
}

function carried(payload: z.ZodObject): string {
  const { properties = {} } = z.toJSONSchema(payload, { io: 'input' }) as Schema;
  const fields = Object.entries(properties).map(([name, schema]) => {
    const words = form(schema);
    return words === 'text' ? code(name) : `${code(name)} (${words})`;
  });
  return fields.join(', ');
}

/** As the default project has it. */
function streamKey(stream: StreamName): string {
  const keys = keyspace({ mode: 'standalone' });
  if (stream === 'work') return keys.coordinationEvents();
  if (stream === 'sync') return keys.assetSyncEvents();
  return stream === 'system' ? keys.systemEvents() : keys.events(stream);
}
