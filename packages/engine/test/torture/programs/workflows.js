// What the processes of the torture drive. Each body leaves a line in a file that the engine knows nothing of: which run,
// attempt and step it was, and the value that it returned, which no other body ever returns.
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { FatalError, workflow } from 'leasehold'

const file = process.env.TORTURE_EFFECTS ?? ''

const does = (ctx, name, ms, options) =>
  ctx.step(
    name,
    async (step) => {
      await pause(ms)
      const value = `${name} ${randomUUID()}`
      const { attempt } = step.fence
      const line = { what: 'did', run: ctx.info.run, attempt, step: name, value, pid: process.pid }
      appendFileSync(file, `${JSON.stringify(line)}\n`)
      return value
    },
    options,
  )

export const chain = workflow('chain', async (ctx, { steps, ms }) => {
  const values = []
  for (let i = 0; i < steps; i++) values.push(await does(ctx, `step ${i}`, ms))
  return values
})

export const waits = workflow('waits', async (ctx, { ms }) => {
  const before = await does(ctx, 'before', ms)
  await ctx.sleep('rest', ms)
  const sent = await ctx.signal('go')
  const { decision } = await ctx.approval('ok', { prompt: 'Go on?' })
  return { before, sent, decision, after: await does(ctx, 'after', ms) }
})

export const family = workflow('family', async (ctx, { children, steps, ms }) => {
  const items = Array.from({ length: children }, (_, i) => i)
  const outputs = await ctx.map('child', items, (c) => c.run(chain, { steps, ms }))
  return { outputs, gathered: await does(ctx, 'gather', ms) }
})

/** Its step fails so many times, and each next try comes soon, or so late that the executor is freed meanwhile. */
export const flaky = workflow('flaky', async (ctx, { fails, retryMs }) => {
  const tries = await ctx.step(
    'try',
    ({ tryNumber }) => {
      if (tryNumber <= fails) throw new Error(`try ${tryNumber} fails`)
      return tryNumber
    },
    { retry: { maxAttempts: fails + 1, base: retryMs, factor: 1 } },
  )
  return { tries, after: await does(ctx, 'after', 0) }
})

const twice = async (ctx, { ms }) => {
  const first = await does(ctx, 'first', ms)
  await ctx.sleep('rest', ms)
  return [first, await does(ctx, 'second', ms)]
}
const one = { key: 'one:{key}', value: 1, mode: 'whole_run' }
/** Lets go of both while it stands in line for the one that it needs to be driven. */
export const limited = workflow(
  { name: 'limited', limits: [{ key: 'shared', value: 2 }, one] },
  twice,
)
export const alone = workflow({ name: 'alone', limits: [one] }, twice)

export const broken = workflow('broken', async (ctx, { ms }) => {
  await does(ctx, 'before', ms)
  throw new FatalError('it is broken')
})

/** Waits for what nobody sends. */
export const never = workflow('never', async (ctx) => {
  await does(ctx, 'before', 0)
  return ctx.signal('nobody sends it')
})

export const series = workflow('series', async (ctx, { left }) => {
  const value = await does(ctx, 'one', 0)
  return left > 0 ? ctx.continueAs({ left: left - 1 }) : value
})

export const race = workflow('race', async (ctx, { ms }) => {
  const { winner, value } = await ctx.race('first', {
    sent: (c) => c.signal('maybe'),
    time: (c) => c.sleep('patience', ms),
  })
  return { winner, sent: value ?? null, after: await does(ctx, 'after', 0) }
})

/** Keeps its whole process from doing anything else, once. */
export const stall = workflow('stall', async (ctx, { ms }) => {
  await ctx.step('stall', ({ fence }) => {
    if (fence.attempt > 1) return
    const line = { what: 'stalled', run: ctx.info.run }
    appendFileSync(file, `${JSON.stringify(line)}\n`)
    const until = performance.now() + ms
    while (performance.now() < until);
  })
  return [await does(ctx, 'after', 0)]
})
