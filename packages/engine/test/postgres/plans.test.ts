import pg from 'pg'
import { afterAll, expect, it } from 'vitest'
import { BOUNDED, GROWING, walkHotPath } from '../support/hot-path.ts'
import type { Psql } from '../support/postgres.ts'
import { openPsql, postgresUrl } from '../support/postgres.ts'
import { openStore } from '../support/store.ts'

const HISTORY = 200_000

/** As `BOUNDED`, of what this database chooses: all that has not ended, and what has not been read. */
const LIVE = [...BOUNDED, 'runs_active', 'signals_unread']

interface Node {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly Node[]
}
const nodes = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodes)]

/** Every text that a connection of this process prepares from now on. */
const preparedTexts = (): Set<string> => {
  const texts = new Set<string>()
  const { prototype } = pg.Connection as unknown as {
    prototype: { parse(query: { text: string }, more: boolean): void }
  }
  const { parse } = prototype
  prototype.parse = function (query, more) {
    texts.add(query.text)
    parse.call(this, query, more)
  }
  afterAll(() => void (prototype.parse = parse))
  return texts
}

/** Ended runs with all that runs leave behind, and the statistics of them. */
const load = (psql: Psql, count: number): void => {
  const some = (what: string, from = 'runs', where = 'true'): void =>
    void psql.query(`insert into ${what} from ${from} where ${where}`)
  some(
    `runs (id, workflow, version, queue, lane, tag, rank, owner, key, input_hash, status, attempt, created_at, ended_at, root, series)
       select 'run_' || i, 'w', '1', 'default', '["default","w","1"]', i, i, 'ana', case when i % 5 = 0 then 'k' || i end, '', 'succeeded', 1, 1, 2, 'run_' || i, 'run_' || i`,
    `generate_series(1, ${count}) i`,
  )
  some(`steps (run, key, n, kind, attempt, rev, at) select id, 's', 1, 'step', 1, 2, 1`)
  some(
    `attempts (run, attempt, session, leased_at, ended_at, "end", rev) select id, 1, 'ses_0', 1, 2, 'completed', 3`,
  )
  some(
    `waits (run, key, seq, kind, state, created_at, rev) select id, 'w', 1, 'time', 'satisfied', 1, 2`,
    'runs',
    'key is not null',
  )
  some(
    `signals (run, id, seq, name, bytes, created_at, read_at) select id, 's', 1, 'go', 1, 1, 2`,
    'runs',
    'key is not null',
  )
  some(`events (run, rev, seq, at, kind) select id, 1, 0, 1, 'run.started'`)
  psql.query('analyze')
}

// plans are generic and made once a connection: what they read must not hang on how much there was when they were made
it.each([
  ['a store that has just been made', 0],
  ['a history of ended runs', HISTORY],
])('PERF with %s no statement of the hot path reads through history', async (_name, count) => {
  const test = await openStore()
  const schema = String(test.sql('select current_schema() as name')[0]?.['name'])
  const psql = openPsql(postgresUrl() ?? '', schema)
  // never analysed, as tables are that have just been made: what held rows of other tests may have been
  psql.query(`truncate ${GROWING.join(', ')}`)
  psql.query(
    'delete from pg_statistic where starelid in (select oid from pg_class where relnamespace = current_schema()::regnamespace)',
  )
  if (count > 0) load(psql, count)
  const texts = preparedTexts()
  await walkHotPath(test)

  // as the driver sets each transaction
  psql.query(
    `select set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false),
            set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false)`,
  )
  const faults: string[] = []
  let looked = 0
  for (const text of texts) {
    if (!/^(select|with|update|insert|delete)\b/.test(text) || !/\bfrom\b|\binto\b/.test(text))
      continue
    looked += 1
    const places = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map((found) => Number(found[1])))
    psql.query(`prepare looked_at as ${text}`)
    const nulls = places === 0 ? '' : `(${Array.from({ length: places }, () => 'null').join(', ')})`
    const plan = psql.query(`explain (format json) execute looked_at${nulls}`)
    psql.query('deallocate looked_at')
    const [top] = plan.map((row) => row['QUERY PLAN'] as unknown as [{ Plan: Node }])
    if (!top) throw new Error(`no plan of ${text}`)
    for (const node of nodes(top[0].Plan)) {
      const table = node['Relation Name'] ?? ''
      const index = node['Index Name'] ?? ''
      const through =
        node['Node Type'] === 'Seq Scan' ||
        (node['Node Type'].startsWith('Index') && node['Index Cond'] === undefined)
      if (through && GROWING.includes(table) && !LIVE.includes(index))
        faults.push(`${node['Node Type']} of ${table} ${index}: ${text}`)
    }
  }
  await psql.close()
  await test.close()
  expect(looked).toBeGreaterThan(30)
  expect(faults).toEqual([])
})
