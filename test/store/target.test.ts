import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { storeTarget } from '../../src/store/target.ts';

test.each([
  [undefined, '/data/reeve.db'],
  ['/srv/reeve.db', '/srv/reeve.db'],
  ['sqlite:/srv/reeve.db', '/srv/reeve.db'],
  ['sqlite:///srv/reeve.db', '/srv/reeve.db'],
  ['SQLITE:/srv/reeve.db', '/srv/reeve.db'],
  ['file:/srv/reeve.db', '/srv/reeve.db'],
  ['file:///srv/with%20space.db', '/srv/with space.db'],
  ['sqlite:/srv/100%.db', '/srv/100%.db'],
  ['reeve.db', resolve('reeve.db')],
  ['./here/reeve.db', resolve('here/reeve.db')],
  ['sqlite:here/reeve.db', resolve('here/reeve.db')],
])('%s is the SQLite file %s', (url, path) => {
  expect(storeTarget(url, '/data')).toEqual({ dialect: 'sqlite', path, address: `sqlite:${path}` });
});

test.each([
  ['postgres://ann:s3cret@db.example:6543/reeve', 'postgres://ann@db.example:6543/reeve'],
  ['postgresql://ann:s3cret@db.example/reeve', 'postgres://ann@db.example/reeve'],
  ['postgres://db.example/reeve', 'postgres://db.example/reeve'],
  ['postgres:///reeve', 'postgres://localhost/reeve'],
  ['postgres://ann:s3cret@[::1]:5432/reeve?sslmode=require', 'postgres://ann@[::1]:5432/reeve'],
  ['postgres://db.example/reeve?user=ann&password=s3cret', 'postgres://ann@db.example/reeve'],
  ['postgres://ann:s3cret@/reeve?host=/run/postgresql', 'postgres://ann@/run/postgresql/reeve'],
  ['postgres://ann:s3cret%2F%40@db.example/my%20db', 'postgres://ann@db.example/my db'],
  ['postgres://ann:s3cret@x@db.example/reeve', 'postgres://ann@db.example/reeve'],
])('%s is shown without its password', (url, address) => {
  expect(storeTarget(url, '/data')).toEqual({ dialect: 'postgres', url, address });
});

test.each([
  'mysql://ann:s3cret@db.example/reeve',
  'postgres://ann:s3cret/more@db.example/reeve',
  'postgres://ann:12/s3cret@db.example/reeve',
  'postgres://ann:12?s3cret@db.example/reeve',
  'postgres://ann:12#s3cret@db.example/reeve',
  'postgres:s3cret',
  'file://s3cret.example/reeve.db',
  'sqlite:',
  'sqlite://',
  'sqlite::memory:',
  'file::memory:?cache=shared',
])('%s is refused, and the refusal repeats no secret', (url) => {
  const refusal = refusalOf(() => storeTarget(url, '/data'));
  expect(refusal).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('store.url: ') });
  expect(JSON.stringify([refusal, String(refusal)])).not.toContain('s3cret');
});

function refusalOf(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error;
  }
}
