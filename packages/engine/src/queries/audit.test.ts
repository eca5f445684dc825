import { afterEach, expect, test } from 'vitest'
import type { TestEngine } from '../../test/support/engine.ts'
import { definition, hands, openTestEngine } from '../../test/support/engine.ts'
import { testPorts } from '../../test/support/ports.ts'
import type { ClaimedRun } from '../model/work.ts'
import { admit } from '../transitions/admit.ts'
import type { AuditPage } from './audit.ts'
import { audit, auditHistory } from './audit.ts'

const opened: TestEngine[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

/** A store in which everything has happened once: steps, waits, a child, an approval, limits, a hand-back, ends. */
const lived = async () => {
  const ports = testPorts()
  const test = await openTestEngine(ports.ports)
  opened.push(test)
  const { engine, port, store } = test
  const executor = await hands(port, 'ses_1', [
    definition('hello'),
    definition('one', { limits: [{ key: 'customer:{id}', value: 1 }] }),
  ])
  const start = (id: string, workflow = 'hello', input: string | null = null) =>
    engine.start({ command: { id, workflow, input, owner: 'ada', key: `key ${id}` } })
  const claim = async (): Promise<ClaimedRun> => (await executor.claim(1))[0] as ClaimedRun
  await start('run_a')
  const a = await claim()
  await executor.step(a, 1, 'x', 1)
  await executor.end(a, { kind: 'complete', output: '1' })
  await start('run_b')
  await executor.end(await claim(), { kind: 'hand_back', reason: 'shutdown' })
  const b = await claim()
  await port.write('ses_1', {
    run: b.run,
    attempt: b.attempt,
    entries: [],
    waits: [
      { key: 'ship', kind: 'approval', approval: { prompt: 'Ship?', data: null, deciders: [] } },
      {
        key: 'kid',
        kind: 'child',
        child: {
          id: 'run_kid',
          workflow: 'hello',
          input: null,
          awaited: true,
          onParentEnd: 'cancel',
        },
      },
      { key: 'nap', kind: 'time', dueInMs: 60_000 },
    ],
    end: { kind: 'suspend', keys: ['ship', 'kid', 'nap'] },
  })
  await start('run_c', 'one', '{"id":"7"}')
  await start('run_d', 'one', '{"id":"7"}')
  await engine.act((tx) =>
    admit(
      tx,
      new Map([
        ['owner:ada', 9],
        ['customer:7', 9],
      ]),
    ),
  )
  await executor.claim(1)
  await executor.claim(1)
  const figures = async () => {
    const all = await engine.read((tx) => audit(tx, engine.settings))
    return all.filter((each) => each.figure > 0).map(({ name, sample }) => [name, ...sample])
  }
  return { ...ports, store, engine, executor, figures }
}

test('OPS-04 a healthy store has no figure above 0', async () => {
  const { figures, engine } = await lived()
  expect(await figures()).toEqual([])
  expect((await engine.read((tx) => audit(tx, engine.settings))).map(({ name }) => name)).toEqual([
    'S1',
    'S2',
    'S3',
    'S4',
    'S5',
    'S6',
    'S8',
    'S10',
    'S12',
    'S14',
    'S22',
    'L11',
  ])
})

const planted: readonly (readonly [string, string, string])[] = [
  ['S1', `update sessions set state = 'ended', ended_at = 1 where id = 'ses_1'`, 'run_kid'],
  ['S2', `update steps set attempt = 9 where run = 'run_a'`, 'run_a'],
  ['S3', `update attempts set "end" = 'failed' where run = 'run_a'`, 'run_a'],
  ['S3', `update attempts set rev = rev + 1 where run = 'run_a'`, 'run_a'],
  ['S3', `update attempts set ended_at = ended_at + 60001 where run = 'run_a'`, 'run_a'],
  ['S4', `delete from attempts where run = 'run_b' and attempt = 1`, 'run_b'],
  ['S5', `update limits set code_value = 0 where key = 'customer:7'`, 'customer:7'],
  ['S6', `delete from steps where run = 'run_a'`, 'run_a'],
  ['S8', `update waits set state = 'satisfied' where key = 'kid'`, 'run_b'],
  ['S10', `update approvals set state = 'approved', decided_at = deadline + 1`, 'run_b:ship'],
  ['S12', `update waits set state = 'lapsed', settled_at = 1 where key = 'nap'`, 'run_b'],
  [
    'S14',
    `update sessions set state = 'ended', ended_at = lease_until - 1, end_reason = 'lease_lapsed'`,
    'ses_1',
  ],
  [
    'L11',
    `update runs set reason = null, limit_owner = null, limit_a = null where id = 'run_d'`,
    'run_d',
  ],
  ['L11', `delete from waits where run = 'run_b'`, 'run_b'],
  ['L11', `update approvals set state = 'canceled', decided_at = 1`, 'run_b'],
]

for (const [name, sql, id] of planted)
  test(`OPS-04 ${name} shows ${id} after: ${sql}`, async () => {
    const { figures, store } = await lived()
    store.db.exec(sql)
    const found = await figures()
    expect(found.map(([first]) => first)).toContain(name)
    expect(found.find(([first]) => first === name)).toContain(id)
  })

test('OPS-04 what history breaks shows however old it is: all runs are gone through, a page at a time', async () => {
  const { figures, engine, store } = await lived()
  store.db.exec(`
    update attempts set "end" = 'failed' where run = 'run_a';
    with recursive g (i) as (select 1 union all select i + 1 from g where i < 3000)
    insert into runs (id, workflow, version, queue, lane, tag, rank, input_hash, status, attempt, created_at, ended_at, root, series)
      select 'run_m' || i, 'w', '1', 'default', '["default","w","1"]', i, i, '', 'canceled', 0, 1, 2, 'run_m' || i, 'run_m' || i from g;`)
  expect(await figures()).toEqual([])
  const found: string[] = []
  let pages = 0
  let after: string | null = ''
  while (after !== null) {
    const from: string = after
    const page: AuditPage = await engine.read((tx) => auditHistory(tx, from))
    pages += 1
    for (const { name, sample } of page.invariants) for (const id of sample) found.push(name, id)
    after = page.next
  }
  expect(found).toEqual(['S3', 'run_a'])
  expect(pages).toBe(4)
})

test('OPS-04 S22 shows two runs of one key, should the index ever be gone', async () => {
  const { figures, store } = await lived()
  store.db.exec(`drop index runs_key; update runs set key = 'key run_c' where id = 'run_d'`)
  expect(await figures()).toEqual([['S22', 'run_c', 'run_d']])
})

test('OPS-04 S3 an end whose transaction began before, and committed after, that of an attempt before it is one', async () => {
  const { figures, store } = await lived()
  store.db.exec(`update attempts set ended_at = ended_at + 30000 where run = 'run_a'`)
  expect(await figures()).toEqual([])
})

test('OPS-04 what a sweep is about to heal does not count yet', async () => {
  const { figures, store, advance } = await lived()
  store.db.exec(`update sessions set state = 'ended', ended_at = ${1_700_000_000_000}`)
  expect(await figures()).toEqual([])
  await advance(20_000)
  expect((await figures()).map(([first]) => first)).toContain('S1')
})
