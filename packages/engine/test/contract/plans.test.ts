import { expect, it } from 'vitest'
import type { SqliteStore } from '../../src/store/sqlite.ts'
import { BOUNDED, GROWING, walkHotPath } from '../support/hot-path.ts'
import { openStore } from '../support/store.ts'

const HISTORY = 50_000

const ALIAS = new RegExp(
  String.raw`\b(?:from|join|update)\s+(${GROWING.join('|')})\b(?:\s+(?:as\s+)?(?!where|set|join|on|order|limit|left|cross)(\w+))?`,
  'g',
)

it('PERF no statement of the hot path, and none that is asked each second, reads through history', async () => {
  const test = await openStore()
  const { db } = test.engine.store as SqliteStore
  db.exec(`
    with recursive g (i) as (select 1 union all select i + 1 from g where i < ${HISTORY})
    insert into runs (id, workflow, version, queue, lane, tag, rank, input_hash, status, attempt, created_at, ended_at, root, series)
      select 'run_' || i, 'w', '1', 'default', '["default","w","1"]', i, i, '', 'succeeded', 1, 1, 2, 'run_' || i, 'run_' || i from g;
    insert into steps (run, key, n, kind, attempt, rev, at) select id, 's', 1, 'step', 1, 2, 1 from runs;
    insert into attempts (run, attempt, session, leased_at, ended_at, "end", rev) select id, 1, 'ses_0', 1, 2, 'completed', 3 from runs;`)
  const asked = new Set<string>()
  const prepare = db.prepare.bind(db)
  db.prepare = ((text: string) => {
    asked.add(text)
    return prepare(text)
  }) as typeof db.prepare

  await walkHotPath(test)

  const bound = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [i + 1, null]))
  const faults: string[] = []
  for (const text of asked) {
    if (!/^(select|with|update|insert|delete)\b/.test(text)) continue
    const tables = new Map(
      [...text.matchAll(ALIAS)].map(([, table = '', alias]) => [alias ?? table, table]),
    )
    const plan = prepare(`explain query plan ${text}`).all(bound) as { detail: string }[]
    for (const { detail } of plan) {
      const [, alias = '', index = ''] =
        /^SCAN (\w+)(?:.* USING (?:COVERING )?INDEX (\w+))?/.exec(detail) ?? []
      const indexed = detail.includes('AUTOMATIC')
      if (indexed || (tables.has(alias) && !BOUNDED.includes(index)))
        faults.push(`${detail}: ${text}`)
    }
  }
  expect(asked.size).toBeGreaterThan(30)
  expect(faults).toEqual([])
  await test.close()
})
