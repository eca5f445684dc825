import { afterEach, describe, expect, it } from 'vitest'
import type { AttemptWrite, EndReport } from '../../src/model/work.ts'
import { endAttempts } from '../../src/transitions/end-attempts.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Bench, Hand, Held } from '../support/cases.ts'
import {
  complete,
  definitionOnly,
  entry,
  failed,
  gate,
  LEASE_MS,
  openBench,
} from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

const w = definitionOnly('w')
const child = definitionOnly('child')

const ends: Record<EndReport['kind'], EndReport> = {
  complete: complete('A'),
  continue: { kind: 'continue', input: '1', runId: 'run_next' },
  fail: failed('A'),
  suspend: { kind: 'suspend', keys: ['t'] },
  hand_back: { kind: 'hand_back', reason: 'shutdown' },
  park: { kind: 'park', reason: 'nondeterminism', note: 'A' },
  stale: { kind: 'stale', note: 'A' },
  revoke: { kind: 'revoke', reason: 'step_limit', note: 'A' },
  lose: { kind: 'lose', note: 'A' },
}
const childStart = {
  id: 'run_child',
  workflow: 'child',
  input: null,
  awaited: true,
  onParentEnd: 'cancel' as const,
}
/** Every verb that an attempt can write with. */
const verbs: Record<string, Omit<AttemptWrite, 'run' | 'attempt'>> = {
  checkpoint: { entries: [entry(1, 'a', 'A')] },
  timer: { entries: [], waits: [{ key: 't', kind: 'time', dueInMs: 1 }] },
  signal: { entries: [], waits: [{ key: 's', kind: 'signal', name: 's' }] },
  approval: {
    entries: [],
    waits: [
      {
        key: 'p',
        kind: 'approval',
        dueInMs: 1_000,
        approval: { prompt: '?', data: null, deciders: [] },
      },
    ],
  },
  child: { entries: [], waits: [{ key: 'c', kind: 'child', child: childStart }] },
  spawn: {
    entries: [entry(1, 'c', 'run_child', 'spawn')],
    spawns: [{ as: 'c', ...childStart, awaited: false }],
  },
  retry: { entries: [], waits: [{ key: 'a', kind: 'retry', tries: 1, dueInMs: 1 }] },
  closes: { entries: [], closes: ['open'] },
  state: { entries: [], state: '"A"' },
  progress: { entries: [], progress: '{"done":1}' },
  stream: { entries: [], stream: [{ stream: 'out', seq: 1, data: '"A"' }] },
  look: { entries: [], look: true },
  ...Object.fromEntries(
    Object.values(ends).map((end) => [`end ${end.kind}`, { entries: [entry(1, 'a', 'A')], end }]),
  ),
}

/** How the first attempt can have lost its run, each with the second holder where there is one. */
const losses: Record<
  string,
  (first: Hand, held: Held) => Promise<{ second: Hand; held: Held | null }>
> = {
  'its lease lapsed and another claimed': async () => {
    await bench.advance(LEASE_MS + 1_000)
    const second = await bench.hand([w, child])
    return { second, held: (await second.claim())[0] ?? null }
  },
  'an operator took it, and its session lives on': async (first, held) => {
    expect(await bench.engine.takeFrom(held.run, 'ana', 'stuck')).toMatchObject({ ok: true })
    const second = await bench.hand([w, child])
    await first.renew()
    return { second, held: (await second.claim())[0] ?? null }
  },
  'the same session claimed it again': async (first, held) => {
    await first.end(held, { kind: 'hand_back', reason: 'shutdown' })
    return { second: first, held: (await first.claim())[0] ?? null }
  },
  'its run was canceled': async (first, held) => {
    await bench.engine.cancel({ run: held.run, by: 'ana', reason: null })
    await bench.advance(LEASE_MS + 1_000)
    return { second: first, held: null }
  },
  'its run was completed by another': async () => {
    await bench.advance(LEASE_MS + 1_000)
    const second = await bench.hand([w, child])
    const [again] = await second.claim()
    await second.end(again!, complete('B'))
    return { second, held: null }
  },
}

const handedBack = [
  'the same session claimed it again',
  'an operator took it, and its session lives on',
]

describe('stale writers', () => {
  describe.each(Object.keys(losses))('when %s', (how) => {
    it('B021 RUN-07 changes no row by any verb of the attempt that lost its run', async () => {
      bench = await openBench()
      const first = await bench.hand([w, child])
      const run = await bench.start(w)
      const [held] = await first.claim()
      await first.write(held!, { waits: [{ key: 'open', kind: 'signal', name: 'open' }] })
      const now = await losses[how]!(first, held!)
      const before = bench.dump()
      for (const [verb, write] of Object.entries(verbs)) {
        const answer = await first.port.write(first.id, { ...write, run, attempt: held!.attempt })
        expect(answer, verb).toMatchObject({
          ok: false,
          code: 'stale_attempt',
          detail: { run, status: now.held ? 'running' : expect.any(String) },
        })
        expect(bench.dump(), verb).toBe(before)
      }
      // a repeat of what did happen gets its first answer, and nothing happens again
      const repeat = await first.end(held!, ends.hand_back)
      expect(repeat).toMatchObject(
        handedBack.includes(how)
          ? { ok: true, ended: 'running' }
          : { ok: false, code: 'stale_attempt' },
      )
      expect(bench.dump()).toBe(before)
      // beside its writes: what its session says in renewals and at its end
      const letGo = [{ run, attempt: held!.attempt, reason: 'lease_lost' }]
      await first.renew({
        letGo,
        held: { claim: 99, runs: now.second === first && now.held ? [now.held] : [] },
      })
      await bench.settle()
      const view = await bench.get(run)
      if (now.held) {
        expect(view).toMatchObject({ status: 'running', attempt: now.held.attempt })
        if (now.second !== first) {
          await first.close()
          expect(await bench.get(run)).toMatchObject({
            status: 'running',
            attempt: now.held.attempt,
          })
        }
        // the holder has lost nothing of its own
        expect(
          await now.second.write(now.held, { entries: [entry(1, 'a', 'B')], end: complete('B') }),
        ).toMatchObject({ ok: true, ended: 'succeeded' })
        expect((await bench.journal(run)).map(({ output }) => output)).toEqual(['"B"'])
      }
      expect(bench.count("select count(*) from runs where id in ('run_child', 'run_next')")).toBe(0)
    })
  })

  it('B021 refuses an attempt number from the future, and another session with the right number', async () => {
    bench = await openBench()
    const first = await bench.hand([w, child])
    const second = await bench.hand([w, child])
    const run = await bench.start(w)
    const [held] = await first.claim()
    const before = bench.dump()
    for (const write of Object.values(verbs)) {
      expect(
        await second.port.write(second.id, { ...write, run, attempt: held!.attempt }),
      ).toMatchObject({ code: 'stale_attempt' })
      expect(
        await first.port.write(first.id, { ...write, run, attempt: held!.attempt + 1 }),
      ).toMatchObject({ code: 'stale_attempt' })
    }
    expect(bench.dump()).toBe(before)
  })

  it('B023 a sweep that picked a run before it ended leaves it alone', async () => {
    bench = await openBench({ manual: true })
    const first = await bench.hand([w])
    const run = await bench.start(w)
    const [held] = await first.claim()
    const picked = { run, attempt: held!.attempt, session: first.id }
    await first.end(held!, complete('A'))
    const before = bench.dump()
    for (const kind of ['expire', 'lose'] as const) {
      const { ended } = await bench.engine.act((tx, context) =>
        endAttempts(
          tx,
          [
            {
              ...picked,
              end: () => ({ kind, note: 'picked before' }),
              event: { kind: 'attempt.lost', actor: 'sweep', data: {} },
            },
          ],
          context,
        ),
      )
      expect(ended).toEqual([])
    }
    expect(bench.dump()).toBe(before)
  })

  it('B023 a sweep that picked one attempt does not end the next', async () => {
    bench = await openBench({ manual: true })
    const first = await bench.hand([w])
    const run = await bench.start(w)
    const [held] = await first.claim()
    await first.end(held!, { kind: 'hand_back', reason: 'shutdown' })
    const [again] = await first.claim()
    const { ended } = await bench.engine.act((tx, context) =>
      endAttempts(
        tx,
        [
          {
            run,
            attempt: held!.attempt,
            session: first.id,
            end: () => ({ kind: 'lose', note: 'late' }),
            event: null,
          },
        ],
        context,
      ),
    )
    expect(ended).toEqual([])
    expect(await bench.get(run)).toMatchObject({ status: 'running', attempt: again!.attempt })
  })

  it('B024 a late answer for a child that another attempt finished fails neither child nor parent', async () => {
    bench = await openBench()
    const slow = gate<string>()
    let tries = 0
    const c1 = workflow('c1', (ctx) =>
      ctx.step('s', () => (++tries === 1 ? slow.opened : 'second')),
    )
    const parent = workflow('parent', async (ctx) => [
      await ctx.run(c1, null),
      await ctx.step('after', () => 'went on'),
    ])
    const one = await bench.process([c1], { slots: { default: 1 } })
    await bench.process([parent])
    const run = await bench.start(parent)
    await bench.until(() => tries === 1, 5_000)
    one.cut = true
    await bench.process([c1])
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 20_000)
    one.cut = false
    slow.open('first')
    await bench.advance(1_000)
    const id = bench.db.prepare("select id from runs where workflow = 'c1'").pluck().get() as string
    expect(await bench.get(id)).toMatchObject({ status: 'succeeded', output: 'second' })
    expect(await bench.get(run)).toMatchObject({
      status: 'succeeded',
      output: ['second', 'went on'],
    })
    const said = bench.lines.filter(({ facts }) => facts['run'] === id && facts['attempt'] === 1)
    expect(
      said.filter(({ event }) => event === 'attempt.dropped' || event === 'attempt.stale'),
    ).toMatchObject([{ level: 'info' }])
    expect(bench.lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  it('B025 a renewal that comes after completion arms nothing', async () => {
    bench = await openBench()
    const first = await bench.hand([w])
    const run = await bench.start(w)
    const [held] = await first.claim()
    await first.end(held!, complete('A'))
    await first.renew({
      letGo: [{ run, attempt: held!.attempt, reason: 'lease_lost' }],
      held: { claim: 1, runs: [held!] },
    })
    await bench.advance(10 * LEASE_MS)
    expect(await bench.get(run)).toMatchObject({ status: 'succeeded', output: 'A', attempt: 1 })
    expect(await first.renew()).toMatchObject({ ok: false, code: 'session_ended' })
    expect(await bench.attempts(run)).toMatchObject([{ attempt: 1, end: 'completed' }])
  })

  it('B025 RUN-03 an end is final for every actor', async () => {
    bench = await openBench()
    for (const last of ['succeeded', 'failed', 'canceled'] as const) {
      const hand = await bench.hand([w])
      const run = await bench.start(w)
      const [held] = await hand.claim()
      if (last === 'canceled') await bench.engine.cancel({ run, by: 'ana', reason: 'enough' })
      await hand.end(held!, last === 'failed' ? failed('broken') : complete('A'))
      const view = await bench.get(run)
      expect(view.status).toBe(last)
      const { engine } = bench
      expect(await engine.cancel({ run, by: 'eve', reason: null })).toMatchObject({
        ok: false,
        code: 'already_ended',
      })
      expect(await engine.pause(run, 'eve', null)).toMatchObject({
        ok: false,
        code: 'already_ended',
      })
      expect(await engine.resume(run, 'eve')).toMatchObject({ ok: false })
      expect(
        await engine.signal({ run, id: `late ${last}`, name: 'x', payload: null, by: null }),
      ).toMatchObject({ ok: false, code: 'already_ended' })
      expect(await engine.reversion(run, '1', 'eve')).toMatchObject({
        ok: false,
        code: 'already_ended',
      })
      expect(await engine.takeFrom(run, 'eve', 'why not')).toMatchObject({
        ok: false,
        code: 'not_held',
      })
      await hand.close()
      await bench.advance(3 * LEASE_MS)
      expect(await bench.get(run)).toEqual(view)
    }
  })
})
