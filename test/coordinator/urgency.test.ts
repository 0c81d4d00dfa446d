import { rename } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { aPrdFile, FORMAT_A, FORMAT_B, makePrdFile, rowA, rowB } from '../support/prd-db.ts';
import { anEstate } from './estate.ts';
import { aTaskRoom, type TaskRoom, USUAL } from './tasks/room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(async () => {
  await room.reset();
  room.limits = { ...USUAL, priorityOrder: 'auto' };
});

const words = ['medium', 'low', 'critical', 'high'].map((priority, at) => rowB(at + 1, { priority }));
const BY_WORDS = ['3', '4', '1', '2'];

test('critical comes first in a file that says it in words, whatever else is added', async () => {
  const estate = await anEstate(room, await aPrdFile(FORMAT_B, ...words));
  await estate.turn();
  expect(await room.queue()).toEqual(BY_WORDS);

  await room.add({ task_id: 'MORE', priority: 0 });
  expect(await room.queue()).toEqual([...BY_WORDS, 'MORE']);
});

test('the words count for more than what dependencies would speak for', async () => {
  const prd = await aPrdFile(FORMAT_B, ...words, rowB(5, { priority: 'critical' }), rowB(6, { priority: 'critical' }));
  for (const task_display_id of [5, 6]) {
    prd.insert('task_dependencies', {
      task_display_id,
      depends_on_display_id: 2,
      created_at: '2025-10-13T14:46:18+00:00',
    });
  }
  const estate = await anEstate(room, prd);
  await estate.turn();
  // What the critical ones wait for is as urgent as they are.
  expect(await room.queue()).toEqual(['2', '3', '4', '1']);
});

test('a setting counts for more than the words', async () => {
  room.limits = { ...USUAL, priorityOrder: 'asc' };
  const estate = await anEstate(room, await aPrdFile(FORMAT_B, ...words));
  await estate.turn();
  expect(await room.queue()).toEqual(BY_WORDS.toReversed());
});

test('numbers go by themselves again when a file with numbers takes its place', async () => {
  const prd = await aPrdFile(FORMAT_B, ...words);
  const estate = await anEstate(room, prd);
  await estate.turn();
  const numbers = [2, 1, 4, 3].map((priority, at) => rowA(String(at + 1), { priority }));
  makePrdFile(`${prd.path}.new`, FORMAT_A, ...numbers).file.close();
  await rename(`${prd.path}.new`, prd.path);
  await estate.turn();
  expect(await room.queue()).toEqual(['2', '1', '4', '3']);
});
