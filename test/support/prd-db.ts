import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { openPrdDb } from '../../src/coordinator/prd/open-prd-db.ts';
import type { PrdDb } from '../../src/coordinator/prd/prd-db.ts';

type Row = Readonly<Record<string, string | number | null>>;

export const FORMAT_A = `create table tasks (
  id integer primary key autoincrement, task_id text unique, title text, description text, category text, epic text,
  priority integer, estimated_hours real, status text default 'pending', depends_on text, assigned_agent text,
  tech_stack text, files_to_modify text, acceptance_criteria text,
  created_at text default current_timestamp, updated_at text default current_timestamp
);`;

/** As the tool that owns the format makes it, foreign keys included. */
export const FORMAT_B = `
create table tasks (
  id text primary key, title text not null, description text, status text not null, priority text not null,
  parent_id text, assigned_agent text, created_at text not null, updated_at text not null, completed_at text,
  estimated_duration integer, actual_duration integer, display_id integer unique, epic_name text,
  foreign key (parent_id) references tasks (id), foreign key (assigned_agent) references agents (id)
);
create table agents (
  id text primary key, name text not null unique, status text not null, current_task_id text,
  created_at text not null, last_active text not null, display_id integer unique,
  foreign key (current_task_id) references tasks (id)
);
create table task_logs (
  id text primary key, task_id text not null, agent_id text, action text not null, details text,
  created_at text not null, foreign key (task_id) references tasks (id), foreign key (agent_id) references agents (id)
);
create table task_dependencies (
  id integer primary key autoincrement, task_display_id integer not null, depends_on_display_id integer not null,
  dependency_type text default 'blocks', created_at text not null, unique (task_display_id, depends_on_display_id),
  foreign key (task_display_id) references tasks (display_id) on delete cascade,
  foreign key (depends_on_display_id) references tasks (display_id) on delete cascade
);
create table acceptance_criteria (
  id integer primary key autoincrement, task_display_id integer not null, criterion text not null,
  completed boolean default 0, created_at text not null, completed_at text
);`;

const THEN = '2025-10-13T14:46:18.123456+00:00';
export const uuid = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

/** A row of format A; only what matters to the test is said. */
export const rowA = (task_id: string, more: Row = {}): Row => ({
  task_id,
  title: `Do ${task_id}`,
  priority: 5,
  ...more,
});

/** A row of format B, by its number. */
export const rowB = (display_id: number, more: Row = {}): Row => ({
  id: uuid(display_id),
  display_id,
  title: `Do ${display_id}`,
  status: 'pending',
  priority: 'medium',
  created_at: THEN,
  updated_at: THEN,
  ...more,
});

/** A task file with somebody else's hands in it: `file` is a second connection, as a person or another tool has. */
export interface TestPrdFile {
  readonly path: string;
  readonly file: Database.Database;
  readonly insert: (table: string, ...rows: Row[]) => void;
  readonly row: (taskId: string) => Record<string, unknown>;
}

export async function aPrdFile(schema: string, ...rows: Row[]): Promise<TestPrdFile> {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-prd-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return makePrdFile(join(dir, 'prd.db'), schema, ...rows);
}

export function makePrdFile(path: string, schema: string, ...rows: Row[]): TestPrdFile {
  const file = new Database(path);
  onTestFinished(() => void file.close());
  file.exec(schema);
  const insert = (table: string, ...all: Row[]) => {
    for (const row of all) {
      const names = Object.keys(row);
      const marks = names.map(() => '?').join(', ');
      file.prepare(`insert into ${table} (${names.join(', ')}) values (${marks})`).run(...Object.values(row));
    }
  };
  file.transaction(() => insert('tasks', ...rows))();
  const idColumn = schema.includes('task_id text unique') ? 'task_id' : 'display_id';
  const row = (taskId: string) =>
    file.prepare(`select * from tasks where ${idColumn} = ?`).get(taskId) as Record<string, unknown>;
  return { path, file, insert, row };
}

export async function opened(path: string): Promise<PrdDb> {
  const db = await openPrdDb(path, systemClock);
  onTestFinished(() => db.close());
  return db;
}
