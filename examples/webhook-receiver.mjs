// Receives webhooks of reeve and believes only what is signed: SECRET=whsec_… node webhook-receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

/** Whether the message came from reeve, whole, and within the last five minutes. */
export function isGenuine(secret, headers, body, now = Date.now()) {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature = '' } = headers;
  if (Math.abs(now / 1000 - Number(time)) > 300) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = Buffer.from(`v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`);
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

if (process.env.SECRET) {
  const seen = new Set();
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    if (!isGenuine(process.env.SECRET, request.headers, body)) return response.writeHead(401).end();
    // At least once: what comes again has the same id.
    const isNew = !seen.has(request.headers['webhook-id']);
    seen.add(request.headers['webhook-id']);
    if (isNew) console.log(body);
    return response.writeHead(204).end();
  });
  server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => console.error('listening', server.address().port));
}
