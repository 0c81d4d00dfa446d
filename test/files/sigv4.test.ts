import { expect, test } from 'vitest';
import { signed } from '../../src/files/sigv4.ts';

/** The examples that Amazon publishes for the signature in the header, with its published signatures. */
const terms = {
  credentials: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' },
  region: 'us-east-1',
  service: 's3',
  at: new Date('2013-05-24T00:00:00Z'),
};
const at = (path: string) => new URL(path, 'https://examplebucket.s3.amazonaws.com');
const none = new Uint8Array();

test.each([
  [
    'a part of an object',
    { method: 'GET', url: at('/test.txt'), headers: { range: 'bytes=0-9' }, payload: none },
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ],
  [
    'an object that is written',
    {
      method: 'PUT',
      url: at('/test%24file.text'),
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      payload: Buffer.from('Welcome to Amazon S3.'),
    },
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  ],
  [
    'a list, with a query',
    { method: 'GET', url: at('/?max-keys=2&prefix=J'), headers: {}, payload: none },
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ],
])('the signature of %s is the published one', (_, request, signature) => {
  expect(signed(request, terms).authorization).toMatch(new RegExp(`Signature=${signature}$`));
});
