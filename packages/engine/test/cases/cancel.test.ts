import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { sleep } from '../../src/kernel/timers.ts'
import type { Bench } from '../support/cases.ts'
import { complete, definitionOnly, entry, failed, gate, openBench } from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

const w = definitionOnly('w')
const cancel = (run: string, reason: string | null = null) =>
  bench.engine.cancel({ run, by: 'ana', reason })

describe('canceling', () => {
  it('B036 one run leaves its siblings alone', async () => {
    const open = gate()
    const same = workflow('same', (ctx) =>
      ctx.step('s', async ({ signal }) => {
        await Promise.race([
          open.opened,
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason)),
          ),
        ])
        return 'done'
      }),
    )
    bench = await openBench()
    await bench.process([same], { embedded: true })
    const [r1, r2, r3] = [
      await bench.start(same, 1, { key: 'a' }),
      await bench.start(same, 1, { key: 'b' }),
      await bench.start(same, 1),
    ]
    await bench.until(
      () => bench.count("select count(*) from runs where status = 'running'") === 3,
      5_000,
    )
    await cancel(r1)
    await bench.until(async () => (await bench.get(r1)).status === 'canceled', 1_000)
    open.open()
    await bench.until(
      async () =>
        (await bench.get(r2)).status === 'succeeded' &&
        (await bench.get(r3)).status === 'succeeded',
      1_000,
    )
    expect(bench.count("select count(*) from events where kind = 'run.cancel_requested'")).toBe(1)
    expect(bench.count('select count(*) from runs where cancel_requested_at is not null')).toBe(1)
  })

  it('B038 RUN-17 whatever its holder throws then, the reason that was given stands', async () => {
    const steps = workflow({ name: 'steps', retry: { maxAttempts: 3 } }, (ctx) =>
      ctx.step('s', async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        throw new Error('the driver tripped over its new state')
      }),
    )
    bench = await openBench()
    await bench.process([steps], { embedded: true })
    const run = await bench.start(steps)
    await bench.until(
      () => bench.count("select count(*) from runs where status = 'running'") === 1,
      5_000,
    )
    await cancel(run, 'by user')
    await bench.until(async () => (await bench.get(run)).status === 'canceled', 1_000)
    expect(await bench.get(run)).toMatchObject({
      reason: 'canceled',
      note: 'canceled by ana: by user',
      error: null,
    })
    await bench.advance(60_000)
    expect(await bench.get(run)).toMatchObject({
      status: 'canceled',
      note: 'canceled by ana: by user',
    })
  })

  it.each([
    'complete',
    'continue',
    'fail',
    'fail and retry',
    'suspend',
    'hand_back',
    'park',
    'stale',
    'revoke',
    'fail after new waits',
  ] as const)(
    'B038 RUN-14 a cancel beats a %s that comes after it, and nothing is left open',
    async (how) => {
      bench = await openBench()
      const hand = await bench.hand([w], { embedded: true })
      const run = await bench.start(w)
      const [held] = await hand.claim()
      await hand.write(held!, { waits: [{ key: 'a', kind: 'signal', name: 'a' }] })
      await cancel(run, 'by user')
      const opened = {
        waits: [
          { key: 't', kind: 'time' as const, dueInMs: 60_000 },
          {
            key: 'p',
            kind: 'approval' as const,
            dueInMs: 60_000,
            approval: { prompt: '?', data: null, deciders: [] },
          },
          {
            key: 'c',
            kind: 'child' as const,
            child: {
              id: 'run_child',
              workflow: 'w',
              input: null,
              awaited: true,
              onParentEnd: 'cancel' as const,
            },
          },
        ],
      }
      const ends = {
        complete: { end: complete('A') },
        continue: { end: { kind: 'continue' as const, input: null, runId: 'run_next' } },
        fail: { end: failed('tripped') },
        'fail and retry': { end: failed('tripped', 1_000) },
        suspend: { ...opened, end: { kind: 'suspend' as const, keys: ['a', 't', 'p', 'c'] } },
        hand_back: { ...opened, end: { kind: 'hand_back' as const, reason: 'shutdown' } },
        park: { end: { kind: 'park' as const, reason: 'nondeterminism', note: 'x' } },
        stale: { end: { kind: 'stale' as const, note: 'x' } },
        revoke: { end: { kind: 'revoke' as const, reason: 'step_limit', note: 'x' } },
        'fail after new waits': { ...opened, end: failed('tripped') },
      }
      expect(await hand.write(held!, { entries: [entry(1, 's', 1)], ...ends[how] })).toMatchObject({
        ok: true,
        ended: 'canceled',
      })
      await bench.advance(5_000)
      expect(await bench.get(run)).toMatchObject({
        status: 'canceled',
        reason: 'canceled',
        note: 'canceled by ana: by user',
        error: null,
      })
      expect(
        bench.count("select count(*) from waits where state in ('open', 'satisfied', 'lapsed')"),
      ).toBe(0)
      expect(bench.count("select count(*) from approvals where state = 'open'")).toBe(0)
      expect(bench.count('select count(*) from runs where ended_at is null')).toBe(0)
      expect(bench.count("select count(*) from runs where id = 'run_next'")).toBe(0)
    },
  )

  it.each(['approval', 'time', 'child', 'signal', 'slot', 'delay', 'retry', 'nothing'] as const)(
    'B039 L5 a paused run that nobody holds and that waits on %s is canceled at once',
    async (on) => {
      const slow = definitionOnly('slow', { limits: [{ key: 'slow', value: 1 }] })
      bench = await openBench()
      const hand = await bench.hand([w, slow], { embedded: true })
      let run: string
      if (on === 'slot') {
        await bench.start(slow)
        run = await bench.start(slow)
      } else if (on === 'delay') run = await bench.start(w, null, { delayMs: 3_600_000 })
      else if (on === 'nothing') run = await bench.start(w)
      else {
        run = await bench.start(w)
        const [held] = await hand.claim()
        if (on === 'retry') await hand.end(held!, failed('once', 60_000))
        else {
          const child = {
            id: 'run_child',
            workflow: 'w',
            input: null,
            awaited: true,
            onParentEnd: 'cancel' as const,
          }
          await hand.write(held!, {
            waits: [
              {
                key: 'x',
                kind: on,
                ...(on === 'signal' ? { name: 'x' } : {}),
                ...(on === 'time' ? { dueInMs: 60_000 } : {}),
                ...(on === 'child' ? { child } : {}),
                ...(on === 'approval'
                  ? { approval: { prompt: '?', data: null, deciders: [] } }
                  : {}),
              },
            ],
          })
          await hand.end(held!, { kind: 'suspend', keys: ['x'] })
        }
      }
      for (const paused of [true, false]) {
        if (paused) {
          await bench.engine.pause(run, 'ana', null)
          expect((await bench.get(run)).status).toBe('paused')
          await bench.advance(1_000)
        }
        expect(await cancel(run)).toMatchObject({
          ok: paused,
          ...(paused ? { status: 'canceled' } : { code: 'already_ended' }),
        })
      }
      await bench.advance(120_000)
      expect(await bench.get(run)).toMatchObject({
        status: 'canceled',
        attempt: expect.any(Number),
      })
      expect(
        bench.count(
          "select count(*) from waits w join runs r on r.id = w.run where r.ended_at is not null and w.state in ('open', 'satisfied', 'lapsed')",
        ),
      ).toBe(0)
      expect(bench.count("select count(*) from approvals where state = 'open'")).toBe(0)
      if (on === 'child') expect(await bench.get('run_child')).toMatchObject({ status: 'canceled' })
    },
  )

  it('B041 a canceled run is not queued by what would have fed it', async () => {
    const slow = definitionOnly('slow', { limits: [{ key: 'slow', value: 1 }] })
    bench = await openBench()
    const hand = await bench.hand([slow, w], { embedded: true })
    await bench.start(slow)
    const inLine = await bench.start(slow)
    const delayed = await bench.start(w, null, { delayMs: 1_000 })
    const asleep = await bench.start(w)
    const held = await hand.claim()
    const sleeper = held.find(({ run }) => run === asleep)!
    await hand.write(sleeper, {
      waits: [
        { key: 's', kind: 'signal', name: 's' },
        { key: 'p', kind: 'approval', approval: { prompt: '?', data: null, deciders: [] } },
      ],
    })
    await hand.end(sleeper, { kind: 'suspend', keys: ['s', 'p'] })
    for (const run of [inLine, delayed, asleep])
      expect(await cancel(run)).toMatchObject({ status: 'canceled' })
    await hand.end(
      held.find(({ run }) => run !== asleep)!,
      complete('done'),
    )
    expect(
      await bench.engine.signal({ run: asleep, id: 'one', name: 's', payload: null, by: null }),
    ).toMatchObject({ code: 'already_ended' })
    expect(
      await bench.engine.decide({
        approval: `${asleep}:p`,
        decision: 'approved',
        by: 'ana',
        reason: null,
        payload: null,
      }),
    ).toMatchObject({ ok: false })
    expect(await bench.engine.resume(asleep, 'ana')).toMatchObject({ ok: false })
    await bench.advance(60_000)
    expect(await hand.claim()).toEqual([])
    for (const run of [inLine, delayed, asleep])
      expect((await bench.get(run)).status).toBe('canceled')
    // wanting it after all is another run, asked for by name
    expect(
      await bench.engine.retry({
        run: asleep,
        id: 'run_again',
        from: null,
        version: null,
        by: 'ana',
      }),
    ).toMatchObject({ ok: true, retryOf: asleep })
    expect(await hand.claim()).toMatchObject([{ run: 'run_again' }])
  })

  it('B041 the next child of a parent that was canceled meanwhile is never begun', async () => {
    const begun: string[] = []
    const child = workflow('child', (ctx, name: string) =>
      ctx.step('s', async () => {
        begun.push(name)
        await sleep(bench.clock.timers(), 5_000)
      }),
    )
    const parent = workflow('parent', async (ctx) => {
      await ctx.run(child, 'a', { as: 'a', onParentEnd: 'detach' })
      await ctx.run(child, 'b', { as: 'b' })
    })
    bench = await openBench()
    await bench.process([child, parent], { embedded: true })
    const run = await bench.start(parent)
    await bench.until(() => begun.length === 1, 5_000)
    await cancel(run)
    await bench.advance(60_000)
    expect(begun).toEqual(['a'])
    expect(
      bench.count("select count(*) from runs where workflow = 'child' and status = 'succeeded'"),
    ).toBe(1)
  })

  it('B039 L5 a cancel of a held run whose body ignores it ends at the grace, and frees its owner at once', async () => {
    const deaf = workflow('deaf', (ctx) => ctx.step('s', () => new Promise(() => undefined)))
    bench = await openBench({ settings: { ownerLimit: 1, cancelGraceMs: 5_000 } })
    const first = await bench.process([deaf], { embedded: true })
    const run = await bench.start(deaf, null, { owner: 'ana' })
    await bench.until(() => first.executor.status().jobs.length === 1, 5_000)
    await cancel(run)
    expect((await bench.get(run)).status).toBe('canceling')
    expect(bench.used('owner:ana')).toBe(0)
    expect(
      await bench.until(async () => (await bench.get(run)).status === 'canceled', 10_000),
    ).toBeLessThanOrEqual(6_000)
    // the body has not settled: the executor still counts it
    expect(first.executor.status().slots).toMatchObject([{ used: 1 }])
    first.kill()
  })
})
