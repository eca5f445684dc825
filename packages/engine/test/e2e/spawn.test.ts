// Executors that are started because a queue waits, as processes: one does the work and ends when it is idle, one that is killed is
// settled by the end of its process, and nothing is left when the spawner stops.
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import {
  CALM,
  fixture,
  folder,
  isGone,
  leasehold,
  runThat,
  serve,
  until,
  work,
} from './processes.ts'

test('OPS-05 a queue that waits gets an executor with a reason; it ends when it is idle, one that is killed is settled, and none outlives its spawner', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  // a workflow that nobody has registered cannot be started
  const first = await work(cwd, url)
  first.process.kill('SIGTERM')
  await first.process.ended
  const file = path.join(cwd, 'steps.txt')
  const [gate, never] = [path.join(cwd, 'gate'), path.join(cwd, 'never')]
  const spawner = leasehold(
    [
      'spawn',
      fixture('workflows.js'),
      '--url',
      url,
      '--max',
      '1',
      '--slots',
      '1',
      '--cooldown',
      '0',
      '--idle',
      '500ms',
    ],
    { cwd },
  )
  await spawner.line('spawns executors')

  const done = await client.start('steps', { count: 1, file })
  const { attempts } = await runThat(client, done.id, ({ run }) => run.status === 'succeeded')
  const [one] = await until(async () => {
    const { spawns } = await client.spawns()
    return spawns[0]?.state === 'ended' && spawns
  })
  expect(one).toMatchObject({
    session: attempts[0]?.session,
    reason: expect.stringMatching(
      /^1 runs wait, the oldest for .*, and no executor serves the queue$/,
    ),
    evidence: expect.stringContaining('exited with 0'),
  })

  // one is killed in the middle: another is started, and has the run at once, though no lease has lapsed
  const held = await client.start('steps', { count: 1, file, gate })
  const holder = async () =>
    (await client.executors()).find(({ held: n, endedAt }) => n === 1 && endedAt === null)
  const victim = await until(holder)
  process.kill(victim.pid, 'SIGKILL')
  writeFileSync(gate, '')
  const after = await runThat(client, held.id, ({ run }) => run.status === 'succeeded')
  expect(after.attempts).toMatchObject([
    { session: victim.id, end: 'lost', note: `process ${victim.pid} was ended by SIGKILL` },
    { end: 'completed' },
  ])

  // and what works when the spawner stops hands back and is gone with it
  const last = await client.start('steps', { count: 1, file, gate: never })
  const { pid } = await until(holder)
  spawner.kill('SIGTERM')
  writeFileSync(never, '')
  expect(await spawner.ended).toBe(0)
  expect(isGone(pid)).toBe(true)
  const { spawns } = await client.spawns()
  expect(spawns.filter(({ state }) => state === 'open')).toEqual([])
  expect((await client.get(last.id)).run.session).toBeNull()
})
