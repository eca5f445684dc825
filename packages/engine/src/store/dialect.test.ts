import { describe, expect, it } from 'vitest'
import { postgresText, sqliteText } from './dialect.ts'

const text = `with pick as materialized (select r.id from {rows $1 as b: run text, n int} join runs r on r.id = b.run where r.ready_at <= {now} limit $2 {lock r skip})
  update runs set rev = runs.rev + 1 from pick where runs.id = pick.id`

describe('one SQL text for two databases', () => {
  it('RAIL-18 the four clauses become what SQLite has: one writer, a clock that is bound, batches from memory', () => {
    expect(sqliteText(text)).toContain('from "rows(run,n)"(?1) as b join')
    expect(sqliteText(text)).toContain('r.ready_at <= ?3 limit (?2 + 0) )')
    expect(sqliteText('create table t (a text primary key){clustered}')).toBe(
      'create table t (a text primary key) without rowid',
    )
    expect(sqliteText('create table t (a text primary key){hot}')).toBe(
      'create table t (a text primary key)',
    )
  })

  it('RAIL-18 and what PostgreSQL has: row locks, its own clock, batches from JSON', () => {
    expect(postgresText(text)).toContain(
      `from (select * from json_to_recordset($1::json) as b(run text, n int) where coalesce(b.run::text, '') || '' = coalesce(b.run::text, '')) as b join`,
    )
    expect(postgresText(text)).toContain('limit $2 for no key update of r skip locked)')
    expect(postgresText(text)).toContain(
      `r.ready_at <= (date_part('epoch', statement_timestamp()) * 1000)::bigint`,
    )
    expect(postgresText(text)).not.toMatch(/\{/)
    expect(postgresText('create table t (a text primary key){hot}')).toContain('fillfactor = 70')
  })
})
