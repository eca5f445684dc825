// Schedules over HTTP, through the client.
import { afterEach, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { TestEngine } from '../support/engine.ts'
import { definition, hands, openTestEngine } from '../support/engine.ts'
import type { TestPorts } from '../support/ports.ts'
import { testPorts } from '../support/ports.ts'

const opened: TestEngine[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

const greeting = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }

const world = async (): Promise<TestEngine & TestPorts & { client: Client; lose(): void }> => {
  // a quarter past an hour
  const ports = testPorts(Date.UTC(2026, 0, 1, 0, 15))
  const engine = await openTestEngine(ports.ports, { loops: true })
  opened.push(engine)
  await hands(engine.port, 'ses_1', [definition('report', { input: greeting }), definition('w')])
  const handler = makeHandler(engine.engine)
  let lost = 0
  const client = connect({
    url: 'http://localhost',
    actor: 'ada',
    timers: {
      soon: ports.ports.timers.soon,
      after: (_ms, run) => ports.ports.timers.after(0, run),
    },
    fetch: async (input, init) => {
      const answer = await handler.fetch(new Request(input, init))
      if (lost === 0) return answer
      lost -= 1
      throw new TypeError('fetch failed', { cause: new Error('connection reset') })
    },
  })
  return { ...engine, ...ports, client, lose: () => (lost += 1) }
}

test('RAIL-16 a schedule is made, shown with its next ten ticks, fires, and is taken away', async () => {
  const { client, advance } = await world()
  const made = await client.createSchedule({
    name: 'nightly report',
    cron: '30 2 * * *',
    zone: 'Europe/Berlin',
    workflow: 'report',
    input: { name: 'ann' },
    missed: 'all',
    overlap: 'queue',
  })
  expect(made.schedule).toMatchObject({
    name: 'nightly report',
    zone: 'Europe/Berlin',
    workflow: 'report',
    input: { name: 'ann' },
    missed: 'all',
    overlap: 'queue',
    updatedBy: 'ada',
    nextAt: Date.UTC(2026, 0, 1, 1, 30),
  })
  expect(made.next).toHaveLength(10)
  expect(await client.schedules()).toEqual([made.schedule])

  await advance(76 * 60_000)
  const { ticks, schedule } = await client.schedule('nightly report')
  expect(ticks).toMatchObject([{ tick: Date.UTC(2026, 0, 1, 1, 30), outcome: 'started' }])
  expect(schedule.lastAt).toBe(Date.UTC(2026, 0, 1, 1, 30))
  const run = await client.get(ticks[0]?.run ?? '')
  expect(run).toMatchObject({ input: { name: 'ann' }, run: { workflow: 'report' } })
  expect(run.events).toMatchObject([{ kind: 'run.started', actor: 'schedule:nightly report' }])

  const changed = await client.changeSchedule('nightly report', { overlap: 'skip' })
  expect(changed.schedule).toMatchObject({ overlap: 'skip', missed: 'all', cron: '30 2 * * *' })
  expect((await client.pauseSchedule('nightly report', 'noise')).schedule).toMatchObject({
    nextAt: null,
    pausedBy: 'ada',
    why: 'noise',
  })
  expect((await client.resumeSchedule('nightly report')).schedule.pausedAt).toBeNull()
  const started = await client.runSchedule('nightly report')
  expect((await client.get(started.run)).run.workflow).toBe('report')
  expect(await client.deleteSchedule('nightly report')).toEqual({ name: 'nightly report' })
  await expect(client.schedule('nightly report')).rejects.toMatchObject({ code: 'not_found' })
})

test('RAIL-16 RAIL-08 what was done and not answered is done once', async () => {
  const { client, lose, advance } = await world()
  const patient = async <T>(work: Promise<T>): Promise<T> => {
    lose()
    await advance(0)
    return work
  }
  const made = await patient(client.createSchedule({ name: 's', cron: '0 * * * *', workflow: 'w' }))
  expect(made.schedule).toMatchObject({ zone: 'UTC', missed: 'one', overlap: 'allow', input: null })
  const { run } = await patient(client.runSchedule('s'))
  expect((await client.schedule('s')).ticks.map((tick) => tick.run)).toEqual([run])
})

test('RAIL-16 what could never fire or start is refused when it is made, with what was expected', async () => {
  const { client } = await world()
  const make = (more: object) =>
    client.createSchedule({ name: 's', cron: '0 * * * *', workflow: 'w', ...more })
  await expect(make({ cron: '@hourly' })).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('expected five fields') as string,
  })
  await expect(make({ zone: 'Mars/Olympus' })).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(make({ missed: 'some' })).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(make({ workflow: 'nobody' })).rejects.toMatchObject({ code: 'unknown_workflow' })
  await expect(make({ workflow: 'report', input: {} })).rejects.toMatchObject({
    code: 'invalid_input',
  })
  await make({})
  await expect(make({})).rejects.toMatchObject({ code: 'schedule_exists' })
  await expect(client.changeSchedule('s', { workflow: 'report' })).rejects.toMatchObject({
    code: 'invalid_input',
  })
  await expect(client.resumeSchedule('s')).rejects.toMatchObject({ code: 'not_paused' })
  await expect(client.pauseSchedule('t')).rejects.toMatchObject({ code: 'not_found' })
})
