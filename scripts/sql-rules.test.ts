import { expect, test } from 'vitest'
import { findSqlFaults, portabilityFaults, statesSet } from './sql-rules.ts'

const inStore = 'packages/engine/src/store/tables/runs.ts'
const faults = (file: string, sql: string): string[] =>
  findSqlFaults(file, 'const q = `' + sql + '`').map((one) => one.text)

test.each([
  'select id from runs where due_at < now()',
  'create table t (at timestamptz)',
  'create table t (id bigserial)',
  'insert into t (id) values (gen_random_uuid())',
  "select input ->> 'a' from runs",
  'select id from runs where id = any(?)',
  'with x as (update runs set rev = 1 returning id) select id from x',
  'update steps set done_at = 1 where id in (select id from steps limit 5)',
  'create trigger t after insert on runs',
  "create type state as enum ('a')",
  'select pg_advisory_xact_lock(1) from runs',
  'create function f() returns text as $$ select 1 $$',
  'create table t (open boolean)',
  'select id::text from runs',
])('not portable: %s', (sql) => {
  expect(portabilityFaults(sql).length).toBeGreaterThan(0)
})

test('what both databases read passes', () => {
  const claim = `with due as materialized (
      select id from runs where status = 'queued' order by rank, id limit ? {skip locked})
    update runs set rev = rev + 1 from due where runs.id = due.id and ready_at <= {now} returning runs.id`
  expect(portabilityFaults(claim)).toEqual([])
  expect(portabilityFaults("select r.id from {rows r (id ->> 'x')} order by r.id")).toEqual([])
  expect(portabilityFaults('-- now() in a comment\nselect id from runs')).toEqual([])
  expect(faults(inStore, claim)).toEqual([])
})

test('columns of state are found on the left of the set clause only', () => {
  expect(statesSet("update runs set rev = 1, status = 'queued' where id = ?")).toEqual(['status'])
  expect(statesSet('update runs as r set wait_on = null, ended_at = 1')).toEqual([
    'wait_on',
    'ended_at',
  ])
  expect(statesSet('update runs set (session, attempt) = (null, 1)')).toEqual([
    'session',
    'attempt',
  ])
  expect(
    statesSet('update runs set rev = (select max(a, status) from x) where status = 1'),
  ).toEqual([])
  expect(statesSet('update runs set ${} where id = ?')).toEqual(['${}'])
  expect(statesSet('update steps set status = 1')).toEqual([])
})

test('only the state writer sets a state, also when the text lies elsewhere in store', () => {
  const sql = "update runs set status = 'failed' where id = ?"
  expect(faults(inStore, sql)).toHaveLength(1)
  expect(faults('packages/engine/src/store/move/claims.ts', sql)).toEqual([])
})

test('SQL outside store is refused, and prose is not SQL', () => {
  const elsewhere = 'packages/engine/src/transitions/start.ts'
  expect(faults(elsewhere, 'select id from runs')).toHaveLength(1)
  expect(faults(elsewhere, 'delete from runs')).toHaveLength(1)
  expect(faults(elsewhere, 'Update your settings, then select a run')).toEqual([])
})

test('the drivers and the dialect may use what their database has', () => {
  const sql = 'select cast(extract(epoch from clock_timestamp()) as bigint) as now from runs'
  expect(faults('packages/engine/src/store/postgres.ts', sql)).toEqual([])
  expect(faults(inStore, sql)).toHaveLength(1)
})
