// The limit: the least SQL that could do the same durable work on SQLite, row by row in transactions, with one row that
// is guarded by a fence. No journal of attempts, no lanes, no promises: what ours is measured against, in the same run.
import Database from 'better-sqlite3'
import path from 'node:path'
import type { Figures } from './figures.ts'
import { percentile, stopwatch } from './figures.ts'

const open = (dir: string): Database.Database => {
  const db = new Database(path.join(dir, 'limit.db'))
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec(`
    create table jobs (id integer primary key, state int not null default 0, due_at int not null default 0,
      fence int not null default 0, until int, input text, output text);
    create index jobs_due on jobs (due_at, id) where state = 0;
    create table entries (job int, n int, output text, primary key (job, n)) without rowid;`)
  return db
}

const statements = (db: Database.Database) => ({
  insert: db.prepare(`insert into jobs (input) values ('{"n":1}')`),
  claim: db.prepare<[number, number, number], { id: number; fence: number }>(
    `update jobs set state = 1, fence = fence + 1, until = ? where id in
       (select id from jobs where state = 0 and due_at <= ? order by due_at, id limit ?) returning id, fence`,
  ),
  done: db.prepare(
    `update jobs set state = 2, output = '{"ok":true}' where id = ? and fence = ? and state = 1`,
  ),
  step: db.prepare(`insert or ignore into entries values (?, ?, '{"ok":true}')`),
})

const load = (db: Database.Database, count: number): void => {
  const { insert } = statements(db)
  db.transaction(() => {
    for (let i = 0; i < count; i++) insert.run()
  })()
  db.pragma('wal_checkpoint(TRUNCATE)')
}

/** Calls `work` until it has done `count` in parts of `part`; answers a second's worth. */
const rate = (count: number, part: number, work: (from: number) => void): number => {
  const elapsed = stopwatch()
  for (let done = 0; done < count; done += part) work(done)
  return (count / elapsed()) * 1000
}

/** 20 callers that each wait for their own insert are 20 rows a transaction. */
const start = (dir: string, count: number, callers: number): Figures => {
  const db = open(dir)
  const { insert } = statements(db)
  const some = db.transaction(() => {
    for (let i = 0; i < callers; i++) insert.run()
  })
  return { rate: rate(count, callers, () => some.immediate()) }
}

/** Claim 50 and report 50 done, each in a transaction of its own. */
const drain = (dir: string, count: number): Figures => {
  const db = open(dir)
  load(db, count)
  const { claim, done } = statements(db)
  const report = db.transaction((taken: { id: number; fence: number }[]) => {
    for (const { id, fence } of taken) done.run(id, fence)
  })
  return { rate: rate(count, 50, () => report.immediate(claim.all(1, 1, 50))) }
}

/** Claim one and report it done, a job after a job. */
const serial = (dir: string, count: number): Figures => {
  const db = open(dir)
  load(db, count)
  const { claim, done } = statements(db)
  return {
    rate: rate(count, 1, () => {
      for (const { id, fence } of claim.all(1, 1, 1)) done.run(id, fence)
    }),
  }
}

const steps = (dir: string, count: number, part: number): Figures => {
  const db = open(dir)
  const { step } = statements(db)
  const some = db.transaction((from: number) => {
    for (let i = 0; i < part; i++) step.run(from + i, 1)
  })
  return { rate: rate(count, part, (from) => some.immediate(from)) }
}

/** One job at a time on an idle file: inserted, claimed and done, each with a commit of its own. */
const idle = (dir: string, count: number): Figures => {
  const db = open(dir)
  const { insert, claim, done } = statements(db)
  const begun: number[] = []
  const ended: number[] = []
  for (let i = 0; i < count; i++) {
    const elapsed = stopwatch()
    insert.run()
    const [taken] = claim.all(1, 1, 1)
    begun.push(elapsed())
    if (taken) done.run(taken.id, taken.fence)
    ended.push(elapsed())
  }
  return {
    p50: percentile(begun, 0.5),
    p99: percentile(begun, 0.99),
    result: percentile(ended, 0.5),
  }
}

export const limits: Readonly<
  Record<string, (dir: string, n: number) => Figures | Promise<Figures>>
> = {
  P1: (dir, n) => start(dir, n, 20),
  P2: (dir, n) => start(dir, n, 500),
  P6: drain,
  P4: (dir, n) => steps(dir, n, 50),
  P4b: (dir, n) => steps(dir, n, 1),
  P5: idle,
  P10c: serial,
}
