// Triage of GitHub webhooks: check the payload, look its sender up, measure what it contains, have a child sum it up, cool
// down, ask a person where it matters, and write a report. Kill the process anywhere: it goes on where it was.
import { createHash } from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { workflow } from 'leasehold'
import { z } from 'zod'
import { folder, tookEffect } from './effects.ts'
import { classOf, partsOf } from './payload.ts'

const Delivery = z.object({
  event: z.string(),
  delivery: z.string(),
  payload: z.record(z.string(), z.unknown()),
})

const Checked = z.object({
  event: z.string(),
  action: z.string().nullable(),
  sender: z.string().nullable(),
  repository: z.string().nullable(),
})

const Envelope = z.looseObject({
  action: z.string().optional(),
  sender: z.looseObject({ login: z.string().min(1), id: z.number().int() }).optional(),
  repository: z.looseObject({ full_name: z.string().includes('/') }).optional(),
})

const Measure = z.object({ part: z.string(), bytes: z.number(), digest: z.string() })

export const summarize = workflow(
  {
    name: 'summarize',
    input: z.object({ title: z.string(), measures: z.array(Measure) }),
    output: z.string(),
  },
  async (ctx, { title, measures }) =>
    ctx.step('sum up', async (step) => {
      await pause(80)
      const bytes = measures.reduce((sum, measure) => sum + measure.bytes, 0)
      tookEffect(step)
      return `${title}: ${measures.length} parts, ${bytes} bytes`
    }),
)

export const triage = workflow(
  { name: 'triage', input: Delivery },
  async (ctx, { event, payload }) => {
    const checked = await ctx.step(
      'validate',
      (step) => {
        const { action = null, sender, repository } = Envelope.parse(payload)
        tookEffect(step)
        return {
          event,
          action,
          sender: sender?.login ?? null,
          repository: repository?.full_name ?? null,
        }
      },
      { output: Checked },
    )

    const kind = await ctx.step('classify', async (step) => {
      await pause(40)
      tookEffect(step)
      return classOf(checked)
    })

    // the service answers 503 to the first request for each key, as services do
    const standing = await ctx.step(
      'look up the sender',
      async (step) => {
        const answer = await fetch(
          `${process.env['WEBHOOKS_SERVICE']}/senders/${checked.sender ?? 'nobody'}`,
          {
            headers: { 'idempotency-key': step.idempotencyKey },
            signal: step.signal,
          },
        )
        if (!answer.ok) throw new Error(`the sender service answers ${answer.status}`)
        const { standing } = z.object({ standing: z.string() }).parse(await answer.json())
        tookEffect(step)
        return standing
      },
      { retry: { maxAttempts: 100, base: 100, max: 2_000 } },
    )

    const parts = partsOf(payload)
    const measures = await ctx.map(
      'parts',
      parts,
      (scope, part, index) =>
        scope.step('measure', async (step) => {
          await pause(60)
          const text = JSON.stringify(part.value) ?? ''
          step.progress(index + 1, parts.length, part.name)
          tookEffect(step)
          return {
            part: part.name,
            bytes: Buffer.byteLength(text),
            digest: createHash('sha256').update(text).digest('hex').slice(0, 16),
          }
        }),
      { concurrency: 4 },
    )

    const summary = await ctx.run(summarize, { title: `${kind} ${event}`, measures })
    await ctx.sleep('cool down', '300ms')

    let decision = 'not asked'
    if (kind === 'sensitive') {
      const answer = await ctx.approval('publish', {
        prompt: `Publish the report on ${event} ${checked.action ?? ''} of ${checked.repository ?? 'no repository'}?`,
        data: { event, action: checked.action },
        deadline: '1h',
      })
      decision = answer.decision
    }

    return ctx.step('report', (step) => {
      // named by the run and put in place at once: writing it again changes nothing
      const file = path.join(folder, 'reports', `${ctx.info.run}.json`)
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(
        `${file}.${process.pid}`,
        JSON.stringify({ ...checked, kind, standing, summary, decision, measures }),
      )
      renameSync(`${file}.${process.pid}`, file)
      tookEffect(step)
      return { summary, decision, file: path.basename(file) }
    })
  },
)
