// What runs while somebody else brings its database to a later schema: it is neither stopped nor in the way.
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnPostgres } from '../../src/orchestrator/open-postgres.ts'
import { migratePostgres, migrations } from '../../src/store/migrate.ts'
import type { Migration } from '../../src/store/migration-plan.ts'
import { postgresUrl } from '../support/postgres.ts'

const url = postgresUrl() ?? ''

const steps = workflow('steps', async (ctx, input: number) => {
  const one = await ctx.step('one', () => input + 1)
  await ctx.sleep('nap', 20)
  return ctx.step('two', () => one * 2)
})

/** What later versions may do to a table that is in use. */
const later: readonly Migration[] = [
  'alter table runs add column later_note text;\n',
  'create index runs_later on runs (later_note) where later_note is not null;\n',
  'create table later (id text primary key);\nalter table sessions add column later_count int not null default 0;\nalter table attempts add column later_count int not null default 0;\n',
  "alter table steps add column later_note text;\nalter table waits add column later_note text not null default '';\n",
].map((text, i) => ({ number: 9_000 + i, name: `${9_000 + i}_later.sql`, text }))

it('B122 RAIL-18 engines and executors of the version before drive on through each migration, and after them', async () => {
  const schema = `rolling_${process.pid}`
  const client = new pg.Client({ connectionString: url, options: `-c search_path=${schema}` })
  await client.connect()
  await client.query(`create schema ${schema}`)
  const ends: (() => Promise<unknown>)[] = [
    () => client.end(),
    () => client.query(`drop schema ${schema} cascade`),
  ]
  onTestFinished(async () => {
    for (const end of ends.reverse()) await end()
  })
  const said: string[] = []
  const ports = systemPorts({ ...noLog, error: (event) => void said.push(event) })
  const open = async (): Promise<Opened> => {
    const opened = await openOnPostgres({ url, schema, ports, connections: 5 })
    ends.push(() => opened.close())
    const executor = makeExecutor({
      port: opened.embedded,
      ports,
      workflows: [steps],
      slots: { default: 10 },
    })
    await executor.start()
    ends.push(() => executor.stop())
    return opened
  }
  const engines = [await open(), await open()]
  let started = 0
  const startSome = async (count: number): Promise<void> => {
    const answers = await Promise.all(
      Array.from({ length: count }, (_, i) =>
        engines[i % 2]?.engine.start({
          command: { id: ports.ids.next('run'), workflow: 'steps', input: String(i) },
        }),
      ),
    )
    for (const answer of answers) expect(answer).toMatchObject({ ok: true })
    started += count
  }
  const succeeded = async (): Promise<number> =>
    Number(
      (await client.query(`select count(*) as count from runs where status = 'succeeded'`)).rows[0]
        .count,
    )

  const console = new pg.Client({ connectionString: url, options: `-c search_path=${schema}` })
  await console.connect()
  ends.push(() => console.end())
  for (const i of later.keys()) {
    // begun while what was started before is driven, and while more is started
    const begun = startSome(10)
    const migrated = migratePostgres(console, [...migrations(), ...later.slice(0, i + 1)])
    await Promise.all([begun, migrated, startSome(10)])
    expect((await migrated).applied).toEqual([later[i]?.name])
    await startSome(5)
  }

  await expect.poll(succeeded, { timeout: 60_000, interval: 20 }).toBe(started)
  expect(started).toBe(100)
  expect(said).toEqual([])
  const { rows } = await client.query<{ attempt: number }>(
    'select max(failures) as failures from runs',
  )
  expect(rows).toEqual([{ failures: 0 }])
})
