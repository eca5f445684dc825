// Attempts that a pod of their own drives: launched, adopted, seen to their end, whatever the cluster does meanwhile.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import type { FakePod } from '../support/pods.ts'
import { podsOn } from '../support/pods.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const held = (options: object = {}) => {
  const body = gate<string>()
  const w = workflow({ name: 'w', isolation: 'job', ...options }, (ctx) =>
    ctx.step('a', () => body.opened),
  )
  return { body, w }
}
const launching = async (w: ReturnType<typeof held>['w'], more: object = {}) => {
  const { pods, launcher } = podsOn(t, [w])
  const x = executorOn(t, { workflows: [w], launcher, ...more })
  await x.executor.start()
  const id = await t.start('w')
  await advance(t, 10)
  return { pods, x, id }
}
const used = (x: ReturnType<typeof executorOn>): number =>
  x.executor.status().slots.reduce((sum, slot) => sum + slot.used, 0)
const ends = (run: string) =>
  t.sql(`select "end", note, first_reason from attempts where run = '${run}' order by attempt`)
const only = (all: readonly FakePod[]): FakePod => {
  expect(all).toHaveLength(1)
  return all[0] as FakePod
}
const HELD = { status: 'running', attempt: 1 }

describe('EX-24 RAIL-14 a pod for each attempt', () => {
  it('EX-24 RAIL-14 drives the run to its end, one pod for each stretch between waits; a slot is held while its pod is alive', async () => {
    const w = workflow({ name: 'w', isolation: 'job' }, async (ctx, input: number) => {
      const one = await ctx.step('a', () => input + 1)
      await ctx.sleep('pause', '1m')
      return ctx.step('b', (step) => ({ one, attempt: step.fence.attempt }))
    })
    const { pods, launcher } = podsOn(t, [w])
    const x = executorOn(t, { workflows: [w], launcher })
    await x.executor.start()
    const id = await t.start('w', { input: '4' })
    await advance(t, 10)
    expect(used(x)).toBe(1)
    only(pods.all).begin()
    await advance(t, 10)
    expect(t.run(id)['status']).toBe('waiting')
    expect(used(x)).toBe(1)
    await advance(t, 5_000)
    expect(used(x)).toBe(0)
    expect(pods.removed).toEqual([`${id}#1`])
    await advance(t, 70_000)
    pods.all[1]?.begin()
    await advance(t, 5_000)
    expect(t.run(id)['status']).toBe('succeeded')
    expect(JSON.parse(String(t.run(id)['output']))).toEqual({ one: 5, attempt: 2 })
    expect(used(x)).toBe(0)
    expect(pods.all).toHaveLength(2)
    const claims = x.calls.filter(({ call }) => call === 'claim')
    expect(claims.length).toBeGreaterThan(1)
  })

  it('EX-24 an executor that starts no pods refuses a workflow that wants one', () => {
    expect(() => executorOn(t, { workflows: [held().w] })).toThrow(
      /w is to run in a Kubernetes job/,
    )
  })

  it('RAIL-14 EX-24 what the pod has adopted its launcher stops by nothing: not by its lease, its limits or its stop', async () => {
    const { body, w } = held({ attemptLimit: '10m' })
    const { pods, x, id } = await launching(w)
    only(pods.all).begin()
    await advance(t, 3_000)
    expect(x.executor.status().jobs).toMatchObject([{ run: id, firstReason: null }])
    x.cut.renew = 'before'
    await advance(t, 40_000)
    expect(x.logged.map(({ event }) => event)).toContain('session.fenced')
    expect(t.run(id)).toMatchObject(HELD)
    expect(used(x)).toBe(1)
    x.cut.renew = undefined
    await advance(t, 30_000)
    const stopping = x.executor.stop()
    await advance(t, 10)
    expect(x.executor.state).toBe('draining')
    await advance(t, 2_000)
    await stopping
    expect(pods.removed).toEqual([])
    expect(t.run(id)).toMatchObject(HELD)
    body.open('done')
    await advance(t, 1_000)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', attempt: 1 })
  })

  it('RAIL-14 EX-14 one that does not begin in time is handed back and removed, and its slot is free when it is gone', async () => {
    const { pods, x, id } = await launching(held().w)
    pods.heeds = false
    await advance(t, 299_000)
    expect(t.run(id)).toMatchObject(HELD)
    await advance(t, 4_000)
    expect(ends(id)[0]).toMatchObject({ end: 'handed_back' })
    expect(t.run(id)).toMatchObject({ losses: 0, failures: 0 })
    expect(pods.removed).toEqual([`${id}#1`])
    await advance(t, 60_000)
    expect(used(x)).toBe(1)
    const pod = only(pods.all)
    pod.die('its job is gone')
    await advance(t, 3_000)
    expect(pods.all).toHaveLength(2)
  })

  it('EX-24 a request that got no answer is repeated, and there is one pod', async () => {
    const { body, w } = held()
    const { pods, launcher } = podsOn(t, [w])
    pods.faults.push('after', 'before', 'after')
    const x = executorOn(t, { workflows: [w], launcher })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 5_000)
    expect(pods.asked.make).toBe(4)
    only(pods.all).begin()
    body.open('done')
    await advance(t, 5_000)
    expect(t.run(id)['status']).toBe('succeeded')
  })

  it('EX-07 a pod that the cluster refuses fails the attempt with what it said', async () => {
    const { w } = held()
    const { pods, launcher } = podsOn(t, [w])
    pods.faults.push('refused')
    const x = executorOn(t, { workflows: [w], launcher })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 5_000)
    expect(t.run(id)).toMatchObject({ status: 'failed', attempt: 1 })
    expect(ends(id)).toMatchObject([{ end: 'failed', note: 'no such image name' }])
    expect(used(x)).toBe(0)
  })

  it('EX-24 RUN-12 one that ends without having adopted its attempt leaves a lost attempt, with what was seen as evidence', async () => {
    const { pods, x, id } = await launching(held().w)
    only(pods.all).die('pod p, Failed, exit code 1, no module there')
    await advance(t, 2_000)
    expect(ends(id)[0]).toMatchObject({
      end: 'lost',
      note: expect.stringContaining('exit code 1, no module there') as string,
    })
    expect(t.run(id)).toMatchObject({ losses: 1 })
    for (let more = 0; more < 6; more++) {
      await advance(t, 120_000)
      for (const pod of pods.all) if (pod.seen.state === 'waiting') pod.die('exit code 1')
    }
    await advance(t, 120_000)
    expect(t.run(id)['status']).toBe('failed')
    expect(pods.all).toHaveLength(5)
    expect(used(x)).toBe(0)
  })

  it('RUN-06 EX-26 one that is evicted after it has adopted its attempt is reported, and its run waits for no lease', async () => {
    const { pods, x, id } = await launching(held().w)
    const pod = only(pods.all)
    pod.begin()
    await advance(t, 3_000)
    expect(t.run(id)['session']).toBe(pod.order.runner)
    pod.die('pod p, Failed, Evicted: the node was low on memory')
    await advance(t, 2_500)
    await t.settle()
    expect(t.run(id)).toMatchObject({ losses: 1 })
    expect(t.run(id)['session']).not.toBe(pod.order.runner)
    expect(ends(id)[0]).toMatchObject({ end: 'lost' })
    await advance(t, 3_000)
    expect(pods.all).toHaveLength(2)
    expect(used(x)).toBe(1)
  })

  it('RAIL-14 EX-09 a cancel before the pod begins ends the run, and the pod that comes all the same is refused', async () => {
    const { pods, x, id } = await launching(held().w)
    pods.heeds = false
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await advance(t, 100)
    expect(t.run(id)['status']).toBe('canceled')
    expect(used(x)).toBe(1)
    const pod = only(pods.all)
    pod.begin()
    await advance(t, 3_000)
    expect(pod.refused).toContain('cannot be adopted')
    await advance(t, 3_000)
    expect(used(x)).toBe(0)
  })

  it('EX-17 EX-18 a stop before the pod begins hands the run back at once, though the cluster is away', async () => {
    const { pods, x, id } = await launching(held().w)
    pods.away = true
    await advance(t, 3_000)
    let over = false
    const stopping = x.executor.stop().then(() => (over = true))
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({ status: 'queued', session: null, losses: 0 })
    await advance(t, 2_100)
    expect(over).toBe(true)
    await stopping
    pods.away = false
    const pod = only(pods.all)
    pod.begin()
    await advance(t, 1_000)
    expect(pod.refused).toContain('no longer drives')
  })

  it('RAIL-14 EX-28 of a stop and an adoption at once one wins: the run is handed back, or goes on in its pod', async () => {
    const { body, w } = held()
    const { pods, x, id } = await launching(w)
    const pod = only(pods.all)
    pod.begin()
    const stopping = x.executor.stop()
    await advance(t, 3_000)
    await stopping
    const adopted = pod.refused === null
    expect(t.run(id)['session']).toBe(adopted ? pod.order.runner : null)
    body.open('done')
    await advance(t, 1_000)
    expect(t.run(id)['status']).toBe(adopted ? 'succeeded' : 'queued')
  })

  it('EX-10 a cluster that does not answer is no proof: the slot is held until it is seen that the pod is gone', async () => {
    const { body, w } = held()
    const { pods, x, id } = await launching(w)
    only(pods.all).begin()
    await advance(t, 3_000)
    pods.away = true
    body.open('done')
    await advance(t, 600_000)
    expect(t.run(id)['status']).toBe('succeeded')
    expect(used(x)).toBe(1)
    pods.away = false
    await advance(t, 5_000)
    expect(used(x)).toBe(0)
  })

  it('EX-10 RAIL-14 one that hangs when its launcher has lost its lease is removed when it can have adopted nothing, and its slot is free', async () => {
    const { pods, x, id } = await launching(held().w)
    pods.heeds = false
    const pod = only(pods.all)
    pod.seen = { state: 'running', note: 'pod p, Running' }
    x.cut.renew = 'before'
    x.cut.write = 'before'
    await advance(t, 40_000)
    x.cut.renew = undefined
    x.cut.write = undefined
    await advance(t, 330_000)
    expect(pods.removed).toEqual([])
    await advance(t, 120_000)
    expect(pods.removed).toEqual([`${id}#1`])
    expect(t.run(id)).toMatchObject({ session: null, attempt: 1 })
    pod.die('its job is gone')
    await advance(t, 3_000)
    expect(t.run(id)).toMatchObject({ attempt: 2 })
  })

  it('RAIL-14 EX-24 one that has adopted its attempt is left alone for as long as it has it, and a while beyond', async () => {
    const { body, w } = held()
    const { pods, x, id } = await launching(w)
    const pod = only(pods.all)
    pod.begin()
    await advance(t, 1_200_000)
    expect(pods.removed).toEqual([])
    expect(t.run(id)).toMatchObject({ ...HELD, session: pod.order.runner })
    body.open('done')
    pods.heeds = false
    await advance(t, 100)
    pod.seen = { state: 'running', note: 'pod p, Running, and it does not end' }
    await advance(t, 60_000)
    expect(t.run(id)['status']).toBe('succeeded')
    expect(pods.removed).toEqual([])
    await advance(t, 60_000)
    expect(pods.removed).toEqual([`${id}#1`])
    expect(used(x)).toBe(1)
  })

  it('EX-24 a job that somebody deletes before its pod has begun is a lost attempt; the run is launched anew', async () => {
    const { pods, id } = await launching(held().w)
    const pod = only(pods.all)
    pod.seen = { state: 'none', note: 'its job is gone' }
    await advance(t, 2_500)
    expect(ends(id)[0]).toMatchObject({ end: 'lost' })
    expect(t.run(id)).toMatchObject({ losses: 1 })
  })

  it('EX-26 one that is left and may still begin is removed when it may no more; one that cannot be seen to hides no other', async () => {
    const { w } = held()
    const { pods, launcher } = podsOn(t, [w])
    const lost = await t.session({ id: 'ses_lost', definitions: [] })
    const now = t.clock.time.now()
    const left = (run: string, runner: string, state: 'ended' | 'waiting', startBy: number) => ({
      label: { session: 'ses_gone', run, attempt: 1 },
      runner,
      startBy,
      seen: { state, note: `pod ${state}` },
    })
    pods.others = [
      left('run_0', 'no name\n'.repeat(200), 'ended', now),
      left('run_1', 'ses_1', 'waiting', now + 120_000),
      left('run_2', lost.id, 'ended', now),
    ]
    const x = executorOn(t, { workflows: [w], launcher })
    await x.executor.start()
    await advance(t, 1_000)
    expect(t.sql(`select state from sessions where id = 'ses_lost'`)).toEqual([{ state: 'ended' }])
    await advance(t, 170_000)
    expect(pods.removed).toEqual([])
    // what another launcher makes meanwhile is its own to see to
    pods.others.push(left('run_3', 'ses_3', 'waiting', now))
    await advance(t, 70_000)
    expect(pods.removed).toEqual(['run_1#1'])
    void x.executor.stop()
    await advance(t, 10)
  })

  it('EX-14 EX-24 a server that gives no token is waited for no longer than a pod: the run is handed back', async () => {
    const { w } = held()
    const { launcher } = podsOn(t, [w])
    const grant = (): Promise<never> => Promise.reject(new Error('not_allowed: no role'))
    const x = executorOn(t, { workflows: [w], launcher: { ...launcher, grant } })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 290_000)
    expect(t.run(id)).toMatchObject(HELD)
    await advance(t, 20_000)
    expect(ends(id)[0]).toMatchObject({ end: 'handed_back' })
    expect(t.run(id)).toMatchObject({ losses: 0, failures: 0 })
  })

  it('EX-26 at its start an executor reports what earlier ones left that has ended, removes what never began, and leaves alone what is at work', async () => {
    const { w } = held()
    const { pods, launcher } = podsOn(t, [w])
    const lost = await t.session({ id: 'ses_lost', definitions: [] })
    const seen = (state: 'ended' | 'waiting' | 'running') => ({ state, note: `pod ${state}` })
    const label = (run: string) => ({ session: 'ses_gone', run, attempt: 1 })
    const now = t.clock.time.now()
    pods.others = [
      { label: label('run_1'), runner: lost.id, startBy: now - 600_000, seen: seen('ended') },
      { label: label('run_2'), runner: 'ses_none', startBy: now - 600_000, seen: seen('ended') },
      { label: label('run_3'), runner: 'ses_3', startBy: now - 600_000, seen: seen('waiting') },
      { label: label('run_4'), runner: 'ses_4', startBy: now - 1_000, seen: seen('waiting') },
      { label: label('run_5'), runner: 'ses_5', startBy: now - 600_000, seen: seen('running') },
    ]
    pods.away = true
    const x = executorOn(t, { workflows: [w], launcher })
    await x.executor.start()
    await advance(t, 500)
    expect(pods.removed).toEqual([])
    pods.away = false
    await advance(t, 2_000)
    expect(t.sql(`select state from sessions where id = 'ses_lost'`)).toEqual([{ state: 'ended' }])
    expect(pods.removed).toEqual(['run_3#1'])
  })
})
