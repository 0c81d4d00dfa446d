/** Sends one request. `input` holds the values of agent_specs.parameters, `config` those of config_schema. */
export async function run({ method, url, body }, config = {}) {
  const target = new URL(url, config.base_url || undefined);
  const response = await fetch(target, {
    method,
    body,
    headers: config.token ? { authorization: `Bearer ${config.token}` } : {},
    signal: AbortSignal.timeout((config.timeout_seconds ?? 30) * 1000),
  });
  return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
}
