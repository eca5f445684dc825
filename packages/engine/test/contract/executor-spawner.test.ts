// A spawner on a clock that moves when it is told, with executors that come, work, hang, die or never come.
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Spawner, StartedExecutor } from '../../src/executor/spawning/spawner.ts'
import { startSpawner } from '../../src/executor/spawning/spawner.ts'
import { noLog } from '../../src/kernel/log.ts'
import type { SpawnPort } from '../../src/model/spawn.ts'
import { begunSpawn } from '../../src/orchestrator/http/answer-spawns.ts'
import { settleSpawn } from '../../src/transitions/settle-spawn.ts'
import { advance } from '../support/executor.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

interface Fake {
  readonly session: string
  readonly signals: string[]
  exit(how: string): void
}

let t: TestStore
let spawner: Spawner
let fakes: Fake[]
/** What an executor does with being told to stop. */
let heeds: boolean
let down: 'begin' | 'answer' | 'settle' | 'start' | null
beforeEach(async () => {
  t = await openStore()
  fakes = []
  heeds = true
  down = null
  const known = await t.session()
  await known.closeSession()
  const port: SpawnPort = {
    async begin(request) {
      if (down === 'begin') throw new Error('it does not answer')
      const answer = await begunSpawn(t.engine, request)
      if (down === 'answer') throw new Error('the answer was lost')
      return answer
    },
    async settle(session, evidence) {
      if (down === 'settle') throw new Error('it does not answer')
      await t.engine.act((tx) => settleSpawn(tx, session, evidence))
    },
  }
  spawner = startSpawner({
    port,
    ports: { time: t.clock.time, timers: t.clock.timers(), log: noLog },
    name: 'here',
    queue: 'default',
    policy: { max: 2, slots: 1, afterMs: 0, cooldownMs: 5_000, startByMs: 20_000 },
    stopMs: 10_000,
    starter: {
      kind: 'test',
      start({ session }) {
        if (down === 'start') return Promise.reject(new Error('no such program'))
        const signals: string[] = []
        let exit: (how: string) => void = () => undefined
        const gone = new Promise<string>((resolve) => (exit = resolve))
        const made: StartedExecutor = {
          gone,
          tell() {
            signals.push('TERM')
            if (heeds) exit('it exited with 0')
          },
          kill() {
            signals.push('KILL')
            exit('it was ended by SIGKILL')
          },
        }
        fakes.push({ session, signals, exit })
        return Promise.resolve(made)
      },
    },
  })
})
afterEach(async () => {
  down = null
  void spawner.stop()
  await advance(t, 60_000)
  await t.close()
})
const spawns = () => t.sql('select session, state, evidence from spawns order by n')

it('OPS-05 starts one for what waits, another after the cooldown while more waits, and settles each by the end of its process', async () => {
  for (let i = 0; i < 9; i++) await t.start('w')
  await advance(t, 1_000)
  expect(fakes).toHaveLength(1)
  await t.session({ id: fakes[0]?.session ?? '' })
  // it has room, and takes it
  await advance(t, 4_000)
  t.sql(`update sessions set capacity = 0 where ended_at is null returning id`)
  await advance(t, 1_000)
  expect(fakes).toHaveLength(2)
  expect(spawner.alive).toEqual(fakes.map(({ session }) => session))
  await advance(t, 15_000)
  expect(fakes).toHaveLength(2)
  fakes[0]?.exit('it exited with 0')
  await advance(t, 0)
  expect(spawns()[0]).toMatchObject({ state: 'ended', evidence: 'it exited with 0' })
  await advance(t, 1_000)
  expect(fakes).toHaveLength(3)
})

it('OPS-05 one that hangs before it registers is killed at the end of its time, and the next waits longer', async () => {
  await t.start('w')
  await advance(t, 20_000)
  expect(fakes.map(({ signals }) => signals)).toEqual([[]])
  await advance(t, 2_000)
  expect(fakes[0]?.signals).toEqual(['KILL'])
  expect(spawns()).toMatchObject([{ state: 'failed', evidence: 'it was ended by SIGKILL' }])
  await advance(t, 8_000)
  expect(fakes).toHaveLength(1)
  await advance(t, 3_000)
  expect(fakes).toHaveLength(2)
})

it('OPS-05 one whose session is over and whose process lives is told to stop, and killed where it does not', async () => {
  await t.start('w')
  await advance(t, 1_000)
  heeds = false
  const session = await t.session({ id: fakes[0]?.session ?? '' })
  await session.closeSession()
  await advance(t, 1_000)
  expect(fakes[0]?.signals).toEqual(['TERM'])
  await advance(t, 9_000)
  expect(fakes[0]?.signals).toEqual(['TERM'])
  await advance(t, 1_000)
  expect(fakes[0]?.signals).toEqual(['TERM', 'KILL'])
  expect(spawner.alive.includes(fakes[0]?.session ?? '')).toBe(false)
})

it.each([true, false])(
  'OPS-05 nothing is left when it stops, whether they heed it or not: %s',
  async (how) => {
    for (let i = 0; i < 9; i++) await t.start('w')
    await advance(t, 6_000)
    expect(fakes).toHaveLength(2)
    heeds = how
    let stopped = false
    void spawner.stop().then(() => (stopped = true))
    await advance(t, how ? 1_000 : 12_000)
    expect(stopped).toBe(true)
    expect(spawner.alive).toEqual([])
    expect(fakes.map(({ signals }) => signals)).toEqual(
      Array.from({ length: 2 }, () => (how ? ['TERM'] : ['TERM', 'KILL'])),
    )
    expect(spawns().map(({ state }) => state)).toEqual(['failed', 'failed'])
    // and nothing is started any more
    await advance(t, 60_000)
    expect(fakes).toHaveLength(2)
  },
)

it('OPS-05 an engine that does not answer is asked again: what ended is settled then, and what it had begun without being heard is settled by its time', async () => {
  await t.start('w')
  down = 'begin'
  await advance(t, 5_000)
  expect(spawns()).toEqual([])
  down = 'answer'
  await advance(t, 1_000)
  // nobody was told to start it
  expect(spawns()).toMatchObject([{ state: 'open' }])
  expect(fakes).toEqual([])
  down = null
  await advance(t, 50_000)
  await t.pass('settle-spawns')
  expect(spawns()).toMatchObject([{ state: 'failed' }])
  await advance(t, 11_000)
  expect(fakes).toHaveLength(1)
  down = 'settle'
  fakes[0]?.exit('it exited with 1')
  await advance(t, 5_000)
  expect(spawns()[1]).toMatchObject({ state: 'open' })
  down = null
  await advance(t, 1_000)
  expect(spawns()[1]).toMatchObject({ state: 'failed', evidence: 'it exited with 1' })
})

it('OPS-05 one that cannot be started at all is settled as that', async () => {
  await t.start('w')
  down = 'start'
  await advance(t, 1_000)
  expect(spawns()).toMatchObject([
    { state: 'failed', evidence: 'it could not be started: no such program' },
  ])
})
