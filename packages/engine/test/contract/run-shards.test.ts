// Two databases joined as one store: who is where, what goes round them, and what a run takes with it.
import { expect, onTestFinished, test } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Shard } from '../../src/model/shard.ts'
import { shardOfId } from '../../src/model/shard.ts'
import type { ClaimedRun } from '../../src/model/work.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import { openEngine } from '../../src/orchestrator/engine.ts'
import { joinShards } from '../../src/orchestrator/shards/shards.ts'
import { inTransaction } from '../../src/orchestrator/user-transaction.ts'
import { NO_FILTER } from '../../src/store/tables/run-lists.ts'
import { executorOn } from '../support/executor.ts'
import { settled } from '../support/ports.ts'
import { NOW } from '../support/run.ts'
import { COUNT, join, ownerOn } from '../support/shards.ts'
import type { TestStore } from '../support/store.ts'
import { definition, openStore } from '../support/store.ts'

const idsOf = (runs: readonly ClaimedRun[]): string[] => runs.map(({ run }) => run).sort()

test('RUN-18 the owner decides where a run is, and its id says so: a repeat of its start finds it', async () => {
  const t = await join()
  await t.register('ses_a')
  for (const shard of [0, 1]) {
    const owner = ownerOn(shard)
    const id = await t.start('w', { id: `run_${shard}`, owner, key: 'k' })
    expect(shardOfId(id)).toBe(shard)
    expect(t.stores[shard]?.run(id)['owner']).toBe(owner)
    expect(t.stores[1 - shard]?.sql('select id from runs where owner = ?', owner)).toEqual([])
    // by its id, marked or as it was sent, and by its key
    for (const again of [id, `run_${shard}`, 'run_other']) {
      const answer = await t.shards.start({
        command: { id: again, workflow: 'w', input: 'null', owner, key: 'k' },
      })
      expect(answer).toMatchObject({ ok: true, id, started: false })
    }
  }
  // a mark that contradicts the owner would hide the run from its key
  expect(
    await t.shards.start({
      command: { id: 'run_x~1', workflow: 'w', input: 'null', owner: ownerOn(0) },
    }),
  ).toMatchObject({ ok: false, code: 'invalid_request' })
  expect(await t.shards.startMany([])).toEqual([])
})

test('RUN-18 many starts are answered in their order, each from its shard', async () => {
  const t = await join()
  await t.register('ses_a')
  const owners = [ownerOn(1), ownerOn(0), ownerOn(1, 1), ownerOn(0, 1)]
  const answers = await t.shards.startMany(
    owners.map((owner, i) => ({
      command: { id: `run_${i}`, workflow: i === 2 ? 'nobody' : 'w', input: 'null', owner },
    })),
  )
  expect(answers).toMatchObject([
    { ok: true, id: 'run_0~1' },
    { ok: true, id: 'run_1' },
    { ok: false, code: 'unknown_workflow' },
    { ok: true, id: 'run_3' },
  ])
  expect(await t.statuses()).toEqual({ queued: 3 })
})

test('RUN-05 RUN-10 a claim goes round the shards, takes no more than it may, and a copy of it gets the same runs', async () => {
  const t = await join()
  await t.register('ses_a')
  const runs: string[] = []
  for (const shard of [0, 1])
    for (let i = 0; i < 3; i++) runs.push(await t.start('w', { owner: ownerOn(shard) }))
  const first = await t.claim('ses_a', 1, 4)
  expect(first).toHaveLength(4)
  expect(new Set(first.map(({ run }) => shardOfId(run))).size).toBe(2)
  expect(idsOf(await t.claim('ses_a', 1, 4))).toEqual(idsOf(first))
  const second = await t.claim('ses_a', 2, 10)
  expect([...idsOf(first), ...idsOf(second)].sort()).toEqual([...runs].sort())
  expect(await t.claim('ses_a', 3, 10)).toEqual([])
  for (const run of [...first, ...second])
    expect(await t.complete('ses_a', run)).toMatchObject({ ok: true, ended: 'succeeded' })
  expect(await t.statuses()).toEqual({ succeeded: 6 })
})

test('RUN-05 claims begin at another shard each time, so that one with much work hides no other', async () => {
  const t = await join()
  await t.register('ses_a')
  for (let i = 0; i < 4; i++)
    for (const shard of [0, 1]) await t.start('w', { owner: ownerOn(shard) })
  const got: number[] = []
  for (let n = 1; n <= 4; n++)
    got.push(...(await t.claim('ses_a', n, 1)).map(({ run }) => shardOfId(run)))
  expect(got.toSorted((a, b) => a - b)).toEqual([0, 0, 1, 1])
})

test('RUN-10 a claim that waits is answered by a run of any shard, also the second time it is asked', async () => {
  for (const shard of [0, 1]) {
    const t = await join()
    await t.register('ses_a')
    const asked = { session: 'ses_a', claim: 1, most: 2, except: [], waitMs: 10_000 }
    const waiting = t.shards.port.claim(asked)
    await settled()
    const run = await t.start('w', { owner: ownerOn(shard) })
    await settled()
    expect(await waiting).toMatchObject({ ok: true, claim: 1, runs: [{ run }] })
    expect(await t.shards.port.claim(asked)).toMatchObject({ runs: [{ run }] })
  }
})

test('RUN-06 a renewal renews on every shard, shows each its part of what is held, and gets what each has to tell', async () => {
  const t = await join()
  await t.register('ses_a')
  const runs = [
    await t.start('w', { owner: ownerOn(0) }),
    await t.start('w', { owner: ownerOn(1) }),
  ]
  const held = await t.claim('ses_a', 1)
  expect(idsOf(held)).toEqual([...runs].sort())
  const renewal = { session: 'ses_a', draining: false, status: null, letGo: [] }
  for (const store of t.stores) store.later(0)
  t.stores[0]?.later(20_000)
  expect(await t.shards.port.renew(renewal)).toMatchObject({ ok: true, told: [], pending: [] })
  t.stores[0]?.later(20_000)
  await t.settle()
  // past the first lease both are held still
  expect(await t.statuses()).toEqual({ running: 2 })
  for (const run of runs) await t.shards.cancel({ run, by: 'ann', reason: null })
  const told = await t.shards.port.renew(renewal)
  expect(told.ok && told.told.map(({ run }) => run).sort()).toEqual([...runs].sort())
  // no shard can compare a digest over all: it asks for the list, of which each sees its own
  const asked = await t.shards.port.renew({ ...renewal, held: { claim: 1, digest: 'x' } })
  expect(asked).toMatchObject({ ok: true, wantsList: true })
  const list = held.map(({ run, attempt }) => ({ run, attempt }))
  await t.shards.port.renew({ ...renewal, held: { claim: 1, runs: list } })
  for (const store of t.stores) await store.engine.idle()
  expect(await t.statuses()).toEqual({ canceling: 2 })
  // what the list leaves out is unknown there, and is taken from the session on its own shard alone
  await t.shards.port.renew({ ...renewal, held: { claim: 1, runs: list.slice(0, 1) } })
  for (const store of t.stores) await store.engine.idle()
  expect(await t.statuses()).toEqual({ canceling: 1, canceled: 1 })
})

test('RUN-09 a lease that is not renewed is over on every shard, and a close hands back on every shard', async () => {
  const t = await join()
  await t.register('ses_a')
  await t.register('ses_b')
  for (const shard of [0, 1]) await t.start('w', { owner: ownerOn(shard) })
  expect(await t.claim('ses_a', 1)).toHaveLength(2)
  expect(await t.shards.port.close({ session: 'ses_a', reason: 'stopped' })).toEqual({
    ok: true,
    handedBack: 2,
  })
  const held = await t.claim('ses_b', 1)
  expect(held).toHaveLength(2)
  t.stores[0]?.later(31_000)
  for (const store of t.stores) await store.pass('reap-sessions')
  for (const store of t.stores) await store.pass('reap-sessions')
  await t.settle()
  const [run] = held
  expect(run && (await t.complete('ses_b', run))).toMatchObject({ ok: false })
  expect(await t.statuses()).not.toHaveProperty('running')
})

test('RAIL-07 RUN-34 children and what continues a run stay on its shard; signals, cancels and retries find it by its id', async () => {
  const t = await join()
  const child = workflow('child', async () => 'done')
  const parent = workflow('parent', async (ctx) => {
    const ran = await ctx.run(child, null)
    const id = await ctx.spawn(child, null, { as: 'other' })
    const said = await ctx.signal<string>('go')
    return { ran, id, said }
  })
  const twice = workflow('twice', (ctx, again: boolean) => (again ? ctx.continueAs(false) : 'done'))
  const [first] = t.stores as [TestStore]
  const on = { ...first, opened: { ...first.opened, remote: t.shards.port } }
  const x = executorOn(on, { workflows: [parent, child, twice] })
  await x.executor.start()
  onTestFinished(() => x.executor.stop())
  const run = await t.start('parent', { owner: ownerOn(1) })
  expect(shardOfId(run)).toBe(1)
  const go = async (): Promise<void> => {
    for (let i = 0; i < 12; i++) {
      await settled()
      await t.settle()
      first.later(1_000)
    }
  }
  await go()
  expect(
    await t.shards.signal({ run, id: 's', name: 'go', payload: '"yes"', by: 'ann' }),
  ).toMatchObject({
    ok: true,
  })
  await go()
  await t.start('twice', { owner: ownerOn(1), input: 'true' })
  await go()
  expect(first.sql('select id from runs')).toEqual([])
  const rows = t.stores[1]?.sql('select id, status from runs order by id') ?? []
  expect(rows).toHaveLength(5)
  for (const row of rows) {
    expect(shardOfId(String(row['id']))).toBe(1)
    expect(row['status']).toBe('succeeded')
  }
  const retried = await t.shards.retry({ run, id: 'run_r', from: null, version: null, by: 'ann' })
  expect(retried).toMatchObject({ ok: true, run: 'run_r~1' })
  expect(await t.shards.cancel({ run: 'run_r~1', by: 'ann', reason: null })).toMatchObject({
    ok: true,
  })
  // a shard that there is not
  await expect(t.shards.cancel({ run: 'run_x~7', by: 'ann', reason: null })).rejects.toMatchObject({
    code: 'not_found',
  })
})

test('RUN-05 RUN-18 one shard is taken away: what is on the other goes on, what is on it is unavailable until it is back', async () => {
  const t = await join()
  await t.register('ses_a')
  const [there, here] = [
    await t.start('w', { owner: ownerOn(1) }),
    await t.start('w', { owner: ownerOn(0) }),
  ]
  t.away(1, true)
  const unavailable = (asked: Promise<unknown>): Promise<void> =>
    expect(asked).rejects.toMatchObject({
      code: 'store_unavailable',
      retryable: true,
      message: expect.stringMatching(/^shard 1 of 2: .*repeat in a moment$/) as string,
      detail: { shard: 1 },
    })
  // claims, starts, reads and the rest of the one that is there
  const [mine] = await t.claim('ses_a', 1)
  expect(mine).toMatchObject({ run: here })
  expect(await t.claim('ses_a', 2)).toEqual([])
  const more = await t.start('w', { owner: ownerOn(0, 1) })
  expect(idsOf(await t.claim('ses_a', 3))).toEqual([more])
  expect(mine && (await t.complete('ses_a', mine))).toMatchObject({ ok: true })
  const command = { run: more, by: 'ann', reason: null }
  expect(await t.shards.cancel(command)).toMatchObject({ ok: true })
  const renewal = { session: 'ses_a', draining: false, status: null, letGo: [] }
  expect(await t.shards.port.renew(renewal)).toMatchObject({ ok: true, unreached: [1] })
  // what is on the other
  const start = { id: 'run_x', workflow: 'w', input: 'null', owner: ownerOn(1, 1) }
  await unavailable(t.shards.start({ command: start }))
  await unavailable(t.shards.cancel({ ...command, run: there }))
  await unavailable(t.shards.signal({ run: there, id: 's', name: 'go', payload: null, by: 'ann' }))
  await unavailable(t.shards.port.journal('ses_a', there, 0))
  // a list with a hole would look whole, and an approval may be where nobody can look
  await unavailable(t.shards.listRuns(NO_FILTER, null, 10))
  await unavailable(t.shards.countRuns())
  const decision = { approval: 'a', decision: 'approve', by: 'ann', reason: null, payload: null }
  await unavailable(t.shards.decide(decision as never))
  // of many starts those on the other are done, and a repeat of all finds them
  const many = [
    { command: { ...start, id: 'run_y' } },
    { command: { ...start, id: 'run_z', owner: ownerOn(0) } },
  ]
  await unavailable(t.shards.startMany(many))
  expect(t.stores[0]?.run('run_z')).toMatchObject({ status: 'queued' })

  t.away(1, false)
  expect(await t.shards.startMany(many)).toMatchObject([
    { ok: true, id: 'run_y~1', started: true },
    { ok: true, id: 'run_z', started: false },
  ])
  expect(await t.shards.start({ command: start })).toMatchObject({ ok: true, id: 'run_x~1' })
  expect(await t.shards.port.renew(renewal)).not.toHaveProperty('unreached')
  const rest = await t.claim('ses_a', 4)
  expect(idsOf(rest)).toEqual([there, 'run_x~1', 'run_y~1', 'run_z'].sort())
  for (const run of rest)
    expect(await t.complete('ses_a', run)).toMatchObject({ ok: true, ended: 'succeeded' })
  t.away(0, true)
  t.away(1, true)
  // none is there: that is not an answer without work
  const claim = { session: 'ses_a', claim: 5, most: 1, except: [], waitMs: 0 }
  await expect(t.shards.port.claim(claim)).rejects.toMatchObject({ code: 'store_unavailable' })
  await expect(t.shards.port.renew(renewal)).rejects.toMatchObject({ code: 'store_unavailable' })
})

test('RAIL-07 a child whose id names another shard than its parent is refused', async () => {
  const t = await join()
  await t.register('ses_a')
  await t.start('w', { owner: ownerOn(1) })
  const [run] = await t.claim('ses_a', 1)
  const child = {
    id: 'run_c',
    workflow: 'w',
    input: null,
    awaited: true,
    onParentEnd: 'cancel' as const,
  }
  const write = {
    run: run?.run ?? '',
    attempt: run?.attempt ?? 0,
    entries: [],
    waits: [{ key: 'c', kind: 'child' as const, child }],
  }
  expect(await t.shards.port.write('ses_a', write)).toMatchObject({ code: 'invalid_request' })
})

test('RUN-18 RUN-21 what would be stored where nobody looks for it is refused, by the shard itself and in a user’s own transaction', async () => {
  const t = await join()
  await t.register('ses_a')
  const astray = (id: string, owner: string) =>
    t.stores[1]?.engine.start({ command: { id, workflow: 'w', input: 'null', owner } })
  expect(await astray('run_a', ownerOn(1))).toMatchObject({ code: 'invalid_request' })
  expect(await astray('run_a~1', ownerOn(0))).toMatchObject({ code: 'invalid_request' })
  expect(await astray('run_a~1', ownerOn(1))).toMatchObject({ ok: true, id: 'run_a~1' })
  // runs that the shard names by itself are its own
  expect(t.stores[1]?.engine.ports.ids.next('run')).toMatch(/~1$/)
  const asked: (readonly string[])[] = []
  const tx = inTransaction(async (_text, values) => asked.push(values), {
    shard: { number: 1, count: COUNT },
  })
  expect(await tx.start('w', null, { owner: ownerOn(1) })).toMatch(/~1$/)
  await tx.cancel('run_a~1')
  expect(asked).toHaveLength(2)
  const elsewhere = { code: 'invalid_request', detail: { shard: 0 } }
  await expect(tx.start('w', null, { owner: ownerOn(0) })).rejects.toMatchObject(elsewhere)
  await expect(tx.cancel('run_a')).rejects.toMatchObject(elsewhere)
  await expect(tx.signal('run_a', 'go')).rejects.toMatchObject(elsewhere)
  await expect(tx.retry('run_a')).rejects.toMatchObject(elsewhere)
  expect(asked).toHaveLength(2)
})

test('RUN-33 what runs at the end of a run is beside it, and its id says so', async () => {
  const t = await join()
  await t.register('ses_a', {
    definitions: [definition('w', { onEnd: 'after' }), definition('after')],
  })
  const run = await t.start('w', { owner: ownerOn(1) })
  const [held] = await t.claim('ses_a', 1)
  const end = { kind: 'fail' as const, reason: 'fatal', note: 'no', error: '"no"' }
  await t.shards.port.write('ses_a', { run, attempt: held?.attempt ?? 0, entries: [], end })
  await t.settle()
  const id = run.replace('~1', '_end~1')
  expect(t.stores[1]?.run(id)).toMatchObject({ workflow: 'after', on_end_of: run })
  expect(await t.shards.cancel({ run: id, by: 'ann', reason: null })).toMatchObject({ ok: true })
})

test('SLOT-03 a limit across owners is held by shares, and no shard takes more than its own', async () => {
  const t = await join()
  const limited = definition('w', { limits: [{ key: 'all', value: 3, mode: 'whole_run' }] })
  expect(await t.register('ses_a', { definitions: [limited] })).toMatchObject({ ok: true })
  for (const shard of [0, 1])
    for (let i = 0; i < 4; i++) await t.start('w', { owner: ownerOn(shard) })
  expect(await t.statuses()).toEqual({ queued: 3, waiting: 5 })
  const held = await t.claim('ses_a', 1)
  expect(held.filter(({ run }) => shardOfId(run) === 0)).toHaveLength(2)
  expect(held.filter(({ run }) => shardOfId(run) === 1)).toHaveLength(1)
  const set = { key: 'all', mode: 'whole_run' as const, weight: null, by: 'ann' }
  expect(await t.shards.setLimit({ ...set, value: 8 })).toMatchObject({ ok: true })
  await t.settle()
  expect(await t.statuses()).toEqual({ queued: 5, running: 3 })
  // with a share of nothing, runs of that shard would never start
  expect(await t.shards.setLimit({ ...set, value: 1 })).toMatchObject({ code: 'invalid_request' })
  const one = definition('v', { limits: [{ key: 'one', value: 1 }] })
  // which no repeat of its registration changes: the executor stops and says so
  expect(await t.register('ses_b', { definitions: [one] })).toMatchObject({
    ok: false,
    code: 'invalid_request',
  })
})

test('SLOT-01 the limit of an owner is whole, on the shard where the owner is', async () => {
  const t = await join()
  await t.register('ses_a')
  const owner = ownerOn(1)
  const set = { mode: 'whole_run' as const, weight: null, by: 'ann' }
  await t.shards.setLimit({ ...set, key: `owner:${owner}`, value: 1 })
  await t.start('w', { owner })
  await t.start('w', { owner })
  expect(await t.statuses()).toEqual({ queued: 1, waiting: 1 })
})

test('RUN-18 the list of runs is one over all shards, page by page, newest first', async () => {
  const t = await join()
  await t.register('ses_a')
  const runs: string[] = []
  for (const shard of [0, 1, 1, 0, 1, 0, 0])
    runs.push(await t.start('w', { owner: ownerOn(shard) }))
  for (const size of [1, 2, 3, 7, 50]) {
    const seen: string[] = []
    let cursor: string | null = null
    for (let i = 0; i < 20; i++) {
      const page = await t.shards.listRuns(NO_FILTER, cursor, size)
      expect(page.runs.length).toBeLessThanOrEqual(size)
      seen.push(...page.runs.map(({ id }) => id))
      cursor = page.next
      if (cursor === null) break
    }
    expect(seen).toEqual([...runs].sort().reverse())
  }
})

test('RUN-18 a database that is a shard is not opened alone, nor in the place of another, nor as one of another number', async () => {
  const t = await join()
  const { settings, ports } = (t.stores[0] as TestStore).engine
  const openAs = (place: number, shard?: Shard): Promise<Engine> =>
    openEngine({
      store: (t.stores[place] as TestStore).engine.store,
      ports,
      settings,
      ...(shard ? { shard } : {}),
    })
  const refused = (opening: Promise<unknown>, says: RegExp): Promise<void> =>
    expect(opening).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(says) as string,
    })
  await refused(openAs(0), /is shard 0 of 2 and is not opened alone.*name all 2 databases/)
  await refused(openAs(1), /is shard 1 of 2 and is not opened alone/)
  // swapped
  await refused(openAs(0, { number: 1, count: 2 }), /is shard 0 of 2; expected 1 of 2/)
  await refused(openAs(1, { number: 0, count: 2 }), /is shard 1 of 2; expected 0 of 2/)
  // one more, and one fewer
  await refused(openAs(1, { number: 1, count: 3 }), /is shard 1 of 2; expected 1 of 3/)
  const again = await Promise.all([0, 1].map((number) => openAs(number, { number, count: 2 })))
  const opened = again.map((engine, i) => ({ engine, remote: t.stores[i]?.opened.remote as never }))
  const shards = await joinShards(opened)
  expect(await shards.countRuns()).toBeDefined()
  await refused(joinShards([...opened].reverse()), /was opened as shard 1 of 2; expected 0 of 2/)
})

test('RUN-18 databases of two sets, and one that has runs already, are not joined', async () => {
  const [one, two] = [await join(), await join({ at: NOW + 1 })]
  const refused = async (
    stores: readonly (TestStore | undefined)[],
    says: RegExp,
  ): Promise<void> => {
    await expect(
      joinShards(stores.map((store) => (store as TestStore).opened)),
    ).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(says) as string,
    })
  }
  await refused([], /expected 1 to 999/)
  await refused([one.stores[0], two.stores[1]], /place 1 is of another set/)
  // one that has runs of its own
  const [own, fresh] = await Promise.all(
    [0, 1].map((number) => openStore({ shard: { number, count: COUNT } })),
  )
  for (const store of [own, fresh]) onTestFinished(() => store?.close())
  await own?.session()
  await own?.start('w')
  await refused([own, fresh], /has runs and is of no set/)
})

test('RUN-35 RUN-33 an ended run stays while its handler is at work, on whichever database it is', async () => {
  const t = await join()
  await t.register('ses_a', { definitions: [definition('w', { onEnd: 'h' }), definition('h')] })
  const ids = [await t.start('w', { owner: ownerOn(0) }), await t.start('w', { owner: ownerOn(1) })]
  for (const run of ids) await t.shards.cancel({ run, by: 'ana', reason: null })
  await t.settle()
  const handlers = await t.claim('ses_a', 1)
  expect(idsOf(handlers)).toEqual(ids.map((id) => id.replace(/(~1)?$/, '_end$1')).sort())
  const left = async (): Promise<unknown[]> => {
    for (const store of t.stores) {
      store.later(31 * 86_400_000)
      await store.pass('prune-ended')
    }
    return t.stores.flatMap((store) => store.sql('select id from runs')).map(({ id }) => id)
  }
  expect(await left()).toHaveLength(4)
  for (const run of handlers) await t.complete('ses_a', run)
  expect(await left()).toEqual([])
})
