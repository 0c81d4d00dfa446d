import { startDaemon, type TestDaemon } from './daemon.ts';

export interface OpenDaemon extends TestDaemon {
  /** What the API answers; anything but a success throws. */
  call<T>(method: string, path: string, body?: object): Promise<T>;
}

/** A daemon for tests that work on tasks of their own: it has none, and whatever is written passes its gate. */
export async function startOpenDaemon(): Promise<OpenDaemon> {
  const daemon = await startDaemon();
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const response = await fetch(new URL(`/api/v1${path}`, daemon.url), {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    const answer = response.status === 204 ? {} : await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer as T;
  };
  await call('PUT', '/policies/all', { auto_approve_if: { risk_below: 100 } });
  const { items } = await call<{ items: { task_id: string }[] }>('GET', '/tasks');
  for (const { task_id } of items) await call('POST', `/tasks/${task_id}/cancel`, {});
  return Object.assign(daemon, { call });
}
