import { expect, test } from 'vitest'
import { schemaDump } from './schema.ts'

const runs = 'create table runs (id text primary key) strict;'
const steps = 'create table steps (id text); create index steps_by_id on steps (id);'

test('the dump does not depend on the order in which tables were made', () => {
  expect(schemaDump([runs, steps])).toBe(schemaDump([steps, runs]))
})

test('tables come before their indexes, and what SQLite made for itself is left out', () => {
  const dump = schemaDump([runs, steps])
  expect(dump.indexOf('CREATE TABLE steps')).toBeLessThan(dump.indexOf('CREATE INDEX steps_by_id'))
  expect(dump).not.toContain('autoindex')
})
