// A process of one attempt, as a launcher starts it: it drives that attempt and ends.
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { PROTOCOL_VERSION } from '../../src/model/work.ts'
import { definition } from '../support/engine.ts'
import { CALM, fixture, folder, leasehold, ran, serve } from './processes.ts'

test('RAIL-14 EX-24 a process with the token of an attempt adopts it, drives it to its end and exits; a second one with the same token does nothing', async () => {
  const cwd = folder()
  const token = `all-${randomUUID()}`
  const { url, process: server } = await serve(cwd, { ...CALM, LEASEHOLD_TOKEN: token })
  const post = async (name: string, body: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`${url}/v1/${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await response.json()) as Record<string, unknown>
  }
  const definitions = [definition('steps')]
  await post('executor/register', { ...SESSION, session: 'ses_launcher', definitions })
  const file = path.join(cwd, 'steps.txt')
  const { id: run } = await post('runs', { workflow: 'steps', input: { count: 2, file } })
  const claim = { session: 'ses_launcher', claim: 1, most: 1, except: [], waitMs: 5_000 }
  expect(await post('executor/claim', claim)).toMatchObject({ runs: [{ run, attempt: 1 }] })
  const granted = await post('executor/grant', {
    session: 'ses_launcher',
    run,
    attempt: 1,
    runner: 'ses_runner',
    startByMs: 600_000,
  })

  const env = { LEASEHOLD_ATTEMPT_TOKEN: String(granted['token']), LEASEHOLD_URL: url }
  const own = leasehold(['attempt', fixture('workflows.js')], { cwd, env })
  expect(await own.ended).toBe(0)
  expect(own.out()).toContain(`attempt 1 of ${String(run)} is driven here, as ses_runner`)
  expect(readFileSync(file, 'utf8').match(/^end/gm)).toHaveLength(2)

  const again = await ran(['attempt', fixture('workflows.js')], { cwd, env })
  expect(again.code).not.toBe(0)
  const without = await ran(['attempt', fixture('workflows.js')], {
    cwd,
    env: { LEASEHOLD_URL: url },
  })
  expect(without).toMatchObject({ code: 2 })
  expect(without.err).toContain('LEASEHOLD_ATTEMPT_TOKEN')
  expect(server.err() + own.err()).not.toContain(String(granted['token']))
})

const SESSION = {
  protocol: PROTOCOL_VERSION,
  build: 'b',
  host: 'h',
  pid: 1,
  queues: [],
  labels: [],
  capacity: 1,
}
