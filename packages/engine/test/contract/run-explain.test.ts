import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Explanation } from '../../src/queries/explain.ts'
import { explain } from '../../src/queries/explain.ts'
import { pauseLine } from '../../src/transitions/pause-line.ts'
import type { WaitRecord } from '../../src/model/work.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, only, openStore } from '../support/store.ts'

let t: TestStore
let a: Session
beforeEach(async () => {
  t = await openStore()
  a = await t.session({
    embedded: true,
    definitions: [
      definition('w'),
      definition('c'),
      definition('l', { limits: [{ key: 'k', value: 1 }] }),
    ],
  })
})
afterEach(() => t.close())

const why = async (id: string): Promise<Explanation> => {
  const found = await t.engine.read((tx) => explain(tx, id, t.engine.settings))
  if (!found) throw new Error(`nothing is known of ${id}`)
  return found
}
const said = async (id: string): Promise<string> => JSON.stringify(await why(id))
const standing = async (wait: WaitRecord): Promise<string> => {
  const id = await t.start('w')
  await t.pass('poll-lanes')
  const run = (await a.claim(1))[0]
  if (run?.run !== id) throw new Error(`claimed ${run?.run}`)
  await a.write(run, { waits: [wait], end: { kind: 'suspend', keys: [wait.key] } })
  return id
}

describe('RUN-36 why is it not running?', () => {
  it('RUN-36 a full limit: which, who holds it, and the place in line', async () => {
    const first = await t.start('l')
    const second = await t.start('l')
    const third = await t.start('l')
    expect(await said(third)).toContain(first)
    expect(await said(third)).toContain('"k"')
    const ahead = (each: Explanation): unknown =>
      each.conditions.flatMap(({ evidence }) => Object.values(evidence))
    expect(JSON.stringify(ahead(await why(second)))).not.toBe(
      JSON.stringify(ahead(await why(third))),
    )
  })

  it('RUN-36 an approval: which, since when, until when', async () => {
    const id = await standing({
      key: 'ship',
      kind: 'approval',
      dueInMs: 60_000,
      approval: { prompt: 'ship it?', data: null, deciders: ['ana'] },
    })
    const text = await said(id)
    expect(text).toContain(`${id}:ship`)
    expect(text).toContain(String(t.clock.time.now() + 60_000))
  })

  it('RUN-36 a signal, a time and a child, each by name', async () => {
    expect(await said(await standing({ key: 's', kind: 'signal', name: 'deploy' }))).toContain(
      'deploy',
    )
    const nap = await standing({ key: 'nap', kind: 'time', dueInMs: 5_000 })
    expect(await said(nap)).toContain(String(t.clock.time.now() + 5_000))
    const child = {
      id: 'run_kid',
      workflow: 'c',
      input: null,
      awaited: true,
      onParentEnd: 'cancel',
    } as const
    expect(await said(await standing({ key: 'kid', kind: 'child', child }))).toContain('run_kid')
  })

  it('RUN-36 no executor for its version or labels, while it is queued and when it is parked', async () => {
    const id = await t.start('w', { labels: ['gpu'] })
    expect(await said(id)).toContain('gpu')
    await t.pass('park-unserved')
    t.later(10_000)
    await t.pass('park-unserved')
    expect(await said(id)).toMatch(/no live executor has the labels gpu/)
  })

  it('RUN-36 not ready until when; paused by whom; held by whom and since when', async () => {
    const later = await t.start('w', { delayMs: 9_000 })
    expect(await said(later)).toContain(String(t.clock.time.now() + 9_000))
    const paused = await t.start('w')
    await t.engine.pause(paused, 'ana', 'look first')
    expect(await said(paused)).toContain('ana')
    const held = await t.start('w')
    await t.pass('poll-lanes')
    only(await a.claim(1))
    expect(await said(held)).toContain(a.id)
    const line = { by: 'bob', why: 'deploy', until: null, forMs: null }
    const queued = await t.start('c')
    await t.engine.act((tx) => pauseLine(tx, { ...line, kind: 'workflow', name: 'c' }))
    expect(await said(queued)).toContain('bob')
  })

  it('L11 every active run has a sentence and at least one condition', async () => {
    await standing({ key: 's', kind: 'signal', name: 'x' })
    await t.start('l')
    await t.start('l')
    await t.start('w', { delayMs: 5 })
    const queued = await t.start('w')
    await t.engine.pause(queued, 'ana', null)
    await t.start('w')
    for (const row of t.sql('select id from runs')) {
      const { sentence, conditions } = await why(String(row['id']))
      expect(sentence).not.toBe('')
      expect(conditions.length).toBeGreaterThan(0)
      for (const each of conditions) expect(each.sentence).not.toBe('')
    }
  })
})
