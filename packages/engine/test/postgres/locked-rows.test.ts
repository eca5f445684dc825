// A transaction of somebody else, a person at a console or a job that stands still, holds rows for as long as it likes. No
// sweep stands behind it: what is locked is left for the next pass, and everything beside it is done in this one.
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { pruneEnded } from '../../src/maintenance/prune-ended.ts'
import { lockRuns } from '../../src/store/move/run-row.ts'
import { ask, sql, statement } from '../../src/store/sql.ts'
import type { Manner } from '../../src/store/store.ts'
import { postgresUrl } from '../support/postgres.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, openStore } from '../support/store.ts'

let t: TestStore
let a: Session
let stranger: pg.Client
beforeEach(async () => {
  t = await openStore()
  a = await t.session({
    definitions: [
      definition('w'),
      definition('c'),
      definition('l', { limits: [{ key: 'k', value: 1 }] }),
      definition('m', { limits: [{ key: 'j', value: 1 }] }),
    ],
  })
  const schema = String(t.sql('select current_schema() as name')[0]?.['name'])
  stranger = new pg.Client({
    connectionString: postgresUrl() ?? '',
    options: `-c search_path=${schema}`,
  })
  await stranger.connect()
  await stranger.query('begin')
})
afterEach(async () => {
  await stranger.query('rollback')
  await stranger.end()
  await t.close()
})

/** Locks what a query finds until `letGo`. */
const hold = async (text: string): Promise<void> => {
  const { rowCount } = await stranger.query(`${text} for update`)
  expect(rowCount).toBeGreaterThan(0)
}
const letGo = async (): Promise<void> => {
  await stranger.query('commit')
  await stranger.query('begin')
}
const status = (run: string): unknown => t.run(run)['status']
/** Passes of these loops, none of which went wrong. */
const pass = async (...loops: string[]): Promise<void> => {
  await t.pass(...loops)
  expect(
    t.sql(
      `select name, error from sweeps where error is not null and name in (${loops.map((name) => `'${name}'`).join(', ')})`,
    ),
  ).toEqual([])
}
/** A parent that stands at its child, whose end is on its way to it. */
const family = async (parent: string): Promise<void> => {
  const child = `${parent}_kid`
  await t.start('w', { id: parent })
  await t.pass('poll-lanes')
  const run = (await a.claim(10)).find((each) => each.run === parent)
  if (!run) throw new Error(`${parent} was not claimed`)
  await a.write(run, {
    waits: [
      {
        key: 'kid',
        kind: 'child',
        child: { id: child, workflow: 'c', input: null, awaited: true, onParentEnd: 'cancel' },
      },
    ],
    end: { kind: 'suspend', keys: ['kid'] },
  })
  await t.engine.cancel({ run: child, by: 'ana', reason: null })
}

it('RAIL-17 a run of a dead session that somebody has locked is taken back later, the others at once', async () => {
  for (const id of ['run_1', 'run_2', 'run_3']) await t.start('w', { id })
  await a.claim(3)
  await hold(`select * from runs where id = 'run_2'`)
  await t.kill(a)
  await pass('reap-sessions')
  expect(['run_1', 'run_2', 'run_3'].map(status)).toEqual(['queued', 'running', 'queued'])
  await letGo()
  await pass('reap-sessions')
  expect(status('run_2')).toBe('queued')
})

it('RAIL-17 a parent that somebody has locked is told of its child later, the others at once', async () => {
  for (const id of ['run_1', 'run_2', 'run_3']) await family(id)
  await hold(`select * from runs where id = 'run_2'`)
  await pass('apply-orders')
  expect(['run_1', 'run_2', 'run_3'].map(status)).toEqual(['queued', 'waiting', 'queued'])
  // it was left as it is, not failed
  expect(t.sql('select run, tries, error from orders')).toEqual([
    { run: 'run_2', tries: 0, error: null },
  ])
  await letGo()
  await pass('apply-orders')
  expect(status('run_2')).toBe('queued')
  expect(t.sql('select * from orders')).toEqual([])
})

it('RAIL-17 an order that somebody has locked, or whose run, is applied later, those behind it at once', async () => {
  for (const id of ['run_1', 'run_2', 'run_3', 'run_4']) await t.start('w', { id })
  for (const run of ['run_1', 'run_2', 'run_3', 'run_4'])
    t.sql(
      `insert into orders (id, kind, run, payload, created_at) values ('cancel:${run}', 'cancel', '${run}', '{}', 0) returning id`,
    )
  await hold(`select * from runs where id = 'run_1'`)
  await hold(`select * from orders where id = 'cancel:run_3'`)
  await pass('apply-orders')
  expect(['run_1', 'run_2', 'run_3', 'run_4'].map(status)).toEqual([
    'queued',
    'canceled',
    'queued',
    'canceled',
  ])
  await letGo()
  await pass('apply-orders')
  expect(['run_1', 'run_3'].map(status)).toEqual(['canceled', 'canceled'])
})

it('RAIL-17 more orders than a batch that wait for one locked run keep no other from being applied', async () => {
  await t.start('w', { id: 'run_1' })
  await t.start('w', { id: 'run_2' })
  t.sql(
    `insert into orders (id, kind, run, payload, created_at) select 'o' || i, 'child_ended', 'run_1', '{"key":"k","child":"run_x"}', 0 from generate_series(1, 450) i returning id`,
  )
  t.sql(
    `insert into orders (id, kind, run, payload, created_at) values ('z', 'cancel', 'run_2', '{}', 0) returning id`,
  )
  await hold(`select * from runs where id = 'run_1'`)
  await pass('apply-orders')
  expect(status('run_2')).toBe('canceled')
  expect(t.sql('select count(*) as n from orders')).toEqual([{ n: 450 }])
  await letGo()
  await pass('apply-orders')
  expect(t.sql('select count(*) as n from orders')).toEqual([{ n: 0 }])
})

it('RAIL-17 a limit that somebody has locked admits nobody now, and the other limits do', async () => {
  for (const [workflow, ids] of [
    ['l', ['run_1', 'run_2']],
    ['m', ['run_3', 'run_4']],
  ] as const)
    for (const id of ids) await t.start(workflow, { id })
  await t.engine.cancel({ run: 'run_1', by: 'ana', reason: null })
  await t.engine.cancel({ run: 'run_3', by: 'ana', reason: null })
  await hold(`select * from limits where key = 'k'`)
  await pass('admit-waiting')
  expect(['run_2', 'run_4'].map(status)).toEqual(['waiting', 'queued'])
  await letGo()
  await pass('admit-waiting')
  expect(status('run_2')).toBe('queued')
})

it('RAIL-17 an ended family of which somebody has locked a run is removed later, the others at once', async () => {
  for (const id of ['run_1', 'run_2']) await family(id)
  await t.settle()
  for (const id of ['run_1', 'run_2']) await t.engine.cancel({ run: id, by: 'ana', reason: null })
  await t.settle()
  t.later(t.engine.settings.retentionMs + 1_000)
  await hold(`select * from runs where id = 'run_1_kid'`)
  const sweep = pruneEnded()
  const prune = () => sweep.pass({ ...t.engine, storeClock: () => Promise.resolve(0) })
  expect(await prune()).toMatchObject({ acted: 2 })
  expect(t.sql('select id from runs order by id')).toEqual([{ id: 'run_1' }, { id: 'run_1_kid' }])
  await letGo()
  expect(await prune()).toMatchObject({ acted: 2 })
  expect(t.sql('select id from runs')).toEqual([])
})

it('RAIL-17 a sweep’s transaction hardly waits for any other row: the wait that it asks for is a fraction of the others’', async () => {
  await t.start('w', { id: 'run_1' })
  await hold(`select * from lanes`)
  await pass('poll-lanes', 'park-unserved', 'wake-due', 'enforce-limits', 'reconcile-families')
  const waits = sql<{ ms: string }>('test.wait', `select current_setting('lock_timeout') as ms`)
  const asked = (manner?: Manner) =>
    t.engine.store.run(function* () {
      return (yield* ask(statement(waits)))[0][0]?.ms
    }, manner)
  expect([await asked(), await asked('sweep')]).toEqual(['2s', '50ms'])
  await hold(`select * from runs`)
  const locking = t.engine.store.run(function* () {
    yield* ask(lockRuns(['run_1']))
  }, 'sweep')
  await expect(locking).rejects.toMatchObject({ code: 'store_busy' })
})
