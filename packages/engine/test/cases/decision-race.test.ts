import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Bench } from '../support/cases.ts'
import { openBench } from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

describe('decisions', () => {
  it.each(['waiting', 'running', 'paused'])(
    'B056 S10 of fifty at once on a %s run exactly one is taken, and all others are told of it',
    async (state) => {
      let resumed = 0
      const w = workflow('w', async (ctx) => {
        const [decision] = await Promise.all([
          ctx.approval('ok', { prompt: '?' }),
          state === 'running'
            ? ctx.step(
                's',
                () =>
                  new Promise<void>((resolve) =>
                    bench.clock.timers().after(5_000, () => resolve()),
                  ),
              )
            : null,
        ])
        resumed += 1
        return decision
      })
      bench = await openBench()
      await bench.process([w], { embedded: true })
      const run = await bench.start(w)
      await bench.until(() => bench.count('select count(*) from approvals') === 1, 5_000)
      if (state === 'paused') await bench.engine.pause(run, 'ana', null)
      await bench.settle()
      expect((await bench.get(run)).status).toBe(state)
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          bench.engine.decide({
            approval: `${run}:ok`,
            decision: i % 2 === 0 ? 'approved' : 'denied',
            by: `p${i}`,
            reason: `r${i}`,
            payload: JSON.stringify(i),
          }),
        ),
      )
      const [won] = answers.filter((answer) => answer.ok)
      expect(answers.filter((answer) => answer.ok)).toHaveLength(1)
      if (!won?.ok) throw new Error('nobody won')
      for (const answer of answers)
        if (!answer.ok)
          expect(answer).toMatchObject({
            code: 'already_decided',
            detail: { decision: won.decision, by: won.by, at: won.at },
          })
      if (state === 'paused') await bench.engine.resume(run, 'ana')
      await bench.until(async () => (await bench.get(run)).status === 'succeeded', 10_000)
      expect((await bench.get(run)).output).toMatchObject({
        decision: won.decision,
        by: won.by,
        payload: Number(won.by.slice(1)),
      })
      expect(resumed).toBe(1)
      expect(bench.count("select count(*) from events where kind = 'approval.decided'")).toBe(1)
      expect(bench.count("select count(*) from steps where kind = 'approval'")).toBe(1)
    },
  )

  it.each([-1, 0, 1])(
    'B056 DAG-11 a decision %d ms from the deadline: either it or the lapse, never both',
    async (off) => {
      const w = workflow('w', (ctx) => ctx.approval('ok', { prompt: '?', deadline: 10_000 }))
      bench = await openBench({ manual: true })
      await bench.process([w], { embedded: true })
      const run = await bench.start(w)
      await bench.settle()
      const deadline = bench.count('select deadline from approvals')
      bench.clock.moveTo(deadline + off)
      const decide = () =>
        bench.engine.decide({
          approval: `${run}:ok`,
          decision: 'approved',
          by: 'ana',
          reason: null,
          payload: null,
        })
      const answer = await decide()
      if (off < 0) expect(answer).toMatchObject({ ok: true })
      else expect(answer).toMatchObject({ ok: false, code: 'approval_lapsed' })
      expect(await decide()).toMatchObject({
        ok: false,
        code: off < 0 ? 'already_decided' : 'approval_lapsed',
      })
      for (let i = 0; i < 3; i++) {
        await bench.pass()
        await bench.settle()
      }
      expect(await bench.get(run)).toMatchObject({
        status: 'succeeded',
        output: { decision: off < 0 ? 'approved' : 'lapsed' },
      })
      expect(bench.db.prepare('select state from approvals').pluck().all()).toEqual([
        off < 0 ? 'approved' : 'lapsed',
      ])
    },
  )
})
