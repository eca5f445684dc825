import { spawnSync } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Database from 'better-sqlite3'
import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import { Fault } from '../../src/kernel/errors.ts'
import { noLog } from '../../src/kernel/log.ts'
import { mintIds } from '../../src/kernel/ids.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import type { Upkeep } from '../../src/maintenance/loop.ts'
import { startLoop } from '../../src/maintenance/loop.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import { virtualClock } from '../../src/testing/clock.ts'
import { endLapsed, takeBack } from '../../src/transitions/end-session.ts'
import { orphanedRuns } from '../../src/store/tables/runs.ts'
import { ask } from '../../src/store/sql.ts'
import type { Bench } from '../support/cases.ts'
import { complete, definitionOnly, LEASE_MS, openBench } from '../support/cases.ts'

let bench: Bench | null = null
afterEach(async () => {
  await bench?.close()
  bench = null
})
const w = definitionOnly('w')

describe('sweeps', () => {
  it('B090 SLOT-11 a thousand runs that need nothing do not hide the one behind them', async () => {
    bench = await openBench({ manual: true })
    const alive = await bench.hand([w], { embedded: true })
    for (let i = 0; i < 1_500; i += 500)
      await bench.engine.startMany(
        Array.from({ length: 500 }, (_, at) => ({
          command: { id: `run_a${String(i + at).padStart(5, '0')}`, workflow: 'w', input: null },
        })),
      )
    for (let i = 0; i < 15; i++) expect(await alive.claim(100)).toHaveLength(100)
    const dead = await bench.hand([w])
    const run = await bench.start(w, null, { id: 'run_z' })
    expect(await dead.claim()).toHaveLength(1)
    bench.clock.moveTo(bench.clock.time.now() + LEASE_MS + 1)
    await bench.pass('reap-sessions')
    expect(await bench.get(run)).toMatchObject({ status: 'queued' })
    expect(bench.count("select count(*) from runs where status = 'running'")).toBe(1_500)
  })

  it('RAIL-17 L9 a pass that the store could not serve is made up for within seconds, however long its interval', async () => {
    const clock = virtualClock(1_000)
    const passes: number[] = []
    const errors: (string | null)[] = []
    const loop = startLoop(
      {
        name: 'hourly',
        intervalMs: 3_600_000,
        pass: async () => {
          passes.push(clock.time.now())
          if (passes.length < 3) throw new Fault('store_unavailable', 'it is down')
          return { examined: 0, acted: 0 }
        },
      },
      { ports: { time: clock.time, timers: clock.timers(), log: noLog } } as unknown as Upkeep,
      async ({ error }) => void errors.push(error),
    )
    for (let pass = 0; pass < 4; pass++) {
      clock.moveTo(clock.next() ?? 0)
      // the pass ends, is recorded, and the next is set
      await new Promise((resolve) => setImmediate(resolve))
    }
    await loop.stop()
    expect(passes).toEqual([1_000, 6_000, 11_000, 3_611_000])
    expect(errors).toEqual(['it is down', 'it is down', null, null])
  })

  it('B090 one pass takes back all that a dead session held, however much', async () => {
    bench = await openBench({ manual: true })
    const dead = await bench.hand([w])
    await bench.engine.startMany(
      Array.from({ length: 1_200 }, (_, at) => ({
        command: { id: `run_${at}`, workflow: 'w', input: null },
      })),
    )
    for (let i = 0; i < 12; i++) await dead.claim(100)
    expect(bench.count("select count(*) from runs where status = 'running'")).toBe(1_200)
    bench.clock.moveTo(bench.clock.time.now() + LEASE_MS + 1)
    await bench.pass('reap-sessions')
    expect(bench.count("select count(*) from runs where status = 'running'")).toBe(0)
    expect(bench.count('select count(*) from attempts')).toBe(1_200)
  })

  it.each(['wake-due', 'enforce-limits', 'admit-waiting'])(
    'B090 %s comes to the end of what is due in one pass, behind runs that are not',
    async (loop) => {
      const limited = definitionOnly('limited', { limits: [{ key: 'k:{k}', value: 1 }] })
      bench = await openBench({ manual: true })
      await bench.hand([w, limited], { embedded: true })
      const many = 1_300
      for (let i = 0; i < many; i += 100)
        await bench.engine.startMany(
          Array.from({ length: 100 }, (_, at) => {
            const id = `run_${String(i + at).padStart(5, '0')}`
            if (loop === 'wake-due')
              return { command: { id, workflow: 'w', input: null, delayMs: 10_000 } }
            if (loop === 'enforce-limits')
              return { command: { id, workflow: 'w', input: null, startByMs: 10_000 } }
            return { command: { id, workflow: 'limited', input: `{"k":"full"}` } }
          }),
        )
      if (loop === 'admit-waiting') {
        // a key of its own, behind all those that wait for the full one
        await bench.start(limited, { k: 'other' }, { id: 'run_y' })
        await bench.start(limited, { k: 'other' }, { id: 'run_z' })
        await bench.engine.cancel({ run: 'run_y', by: 'ana', reason: null })
      }
      bench.clock.moveTo(bench.clock.time.now() + 10_000)
      await bench.pass(loop)
      if (loop === 'wake-due')
        expect(bench.count("select count(*) from runs where status = 'waiting'")).toBe(0)
      if (loop === 'enforce-limits')
        expect(bench.count("select count(*) from runs where status = 'failed'")).toBe(many)
      if (loop === 'admit-waiting') expect((await bench.get('run_z')).status).toBe('queued')
    },
  )

  it('B092 a second sweeper with an old list does nothing, and the run is begun once', async () => {
    bench = await openBench({ manual: true })
    const dead = await bench.hand([w])
    const run = await bench.start(w)
    await dead.claim()
    bench.clock.moveTo(bench.clock.time.now() + LEASE_MS + 1)
    await bench.engine.store.run((tx) => endLapsed(tx, tx.now))
    const { engine } = bench
    const list = await engine.read(function* () {
      return (yield* ask(orphanedRuns(100)))[0]
    })
    expect(list).toMatchObject([{ id: run }])
    expect((await engine.act((tx, context) => takeBack(tx, 100, context))).ended).toHaveLength(1)
    const second = await bench.hand([w])
    const [held] = await second.claim()
    expect(held).toMatchObject({ run, attempt: 2 })
    const before = bench.dump()
    expect((await engine.act((tx, context) => takeBack(tx, 100, context))).ended).toHaveLength(0)
    expect(bench.dump()).toBe(before)
    await second.end(held!, complete('done'))
    expect(await bench.attempts(run)).toHaveLength(2)
  })
})

describe('deaths that were none', () => {
  it.each([
    [LEASE_MS, LEASE_MS],
    [LEASE_MS, LEASE_MS / 2],
    [LEASE_MS, Number.NaN],
    [-1, 600],
  ])(
    'B093 a lease of %d ms with renewals each %d ms is refused before anything is opened',
    async (leaseMs, renewMs) => {
      await expect(openBench({ settings: { leaseMs, renewMs } })).rejects.toMatchObject({
        code: 'invalid_config',
        message: expect.stringMatching(/renewMs|leaseMs/),
      })
    },
  )

  it('B093 S14 with a third of all renewals lost and answers late, nobody is taken for dead in ten minutes', async () => {
    const busy = workflow('busy', (ctx) =>
      ctx.step(
        's',
        ({ signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason)),
          ),
      ),
    )
    bench = await openBench({ settings: { leaseMs: 30_000, renewMs: 10_000, sweepMs: 5_000 } })
    const chance = seededRandom(93)
    let lost = 0
    const all = []
    for (let i = 0; i < 3; i++) {
      const each = await bench.process([busy], { slots: { default: 1 } })
      all.push(each)
      each.around = async (name, call) => {
        if (name === 'renew' && chance.next() < 0.3) {
          lost += 1
          if (chance.next() < 0.5) await call()
          throw new Error('lost')
        }
        await new Promise<void>((resolve) =>
          bench!.clock.timers().after(chance.next() * 200, () => resolve()),
        )
        return call()
      }
      await bench.start(busy)
    }
    await bench.until(
      () => bench!.count("select count(*) from runs where status = 'running'") === 3,
      10_000,
    )
    await bench.advance(600_000)
    expect(lost).toBeGreaterThan(30)
    expect(bench.count('select count(*) from attempts')).toBe(0)
    expect(bench.count('select count(*) from sessions where ended_at is not null')).toBe(0)
    for (const { executor } of all)
      expect(executor.status()).toMatchObject({ fenced: false, jobs: [{ firstReason: null }] })
  })
})

describe('one owner of the file', () => {
  it('B141 OPS-08 a second owner is refused by name, in this process and in another, and the first goes on', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'owner-'))
    try {
      const file = path.join(folder, 'db')
      bench = await openBench({ file })
      const hand = await bench.hand([w], { embedded: true })
      await expect(openBench({ file })).rejects.toMatchObject({
        code: 'owned_elsewhere',
        message: expect.stringContaining(`process ${process.pid}`),
      })
      const source = path.resolve(import.meta.dirname, '../../src/store/owner.ts')
      const child = spawnSync(
        process.execPath,
        [
          '--import',
          'tsx',
          '--input-type=module',
          '-e',
          `import { own } from ${JSON.stringify(source)}; try { own(${JSON.stringify(file)}, 'me'); console.log('mine') } catch (error) { console.log(error.code) }`,
        ],
        { encoding: 'utf8' },
      )
      expect(child.stdout.trim(), child.stderr).toBe('owned_elsewhere')
      const run = await bench.start(w)
      expect(await hand.claim()).toMatchObject([{ run }])
      await bench.close()
      bench = null
      const again = spawnSync(
        process.execPath,
        [
          '--import',
          'tsx',
          '--input-type=module',
          '-e',
          `import { own } from ${JSON.stringify(source)}; own(${JSON.stringify(file)}, 'me').release(); console.log('mine')`,
        ],
        { encoding: 'utf8' },
      )
      expect(again.stdout.trim(), again.stderr).toBe('mine')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('B141 what lived in the last owner is taken back by the next, with its lock as the evidence', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'owner-'))
    try {
      const file = path.join(folder, 'db')
      bench = await openBench({ file })
      const { clock } = bench
      const first = await bench.process(
        [workflow('hangs', (ctx) => ctx.step('s', () => new Promise(() => undefined)))],
        { embedded: true },
      )
      const run = await bench.start('hangs')
      await bench.until(async () => (await bench!.get(run)).status === 'running', 5_000)
      first.kill()
      await bench.close()
      bench = await openBench({ file, clock, seed: 9 })
      expect(
        await bench.until(async () => (await bench!.get(run)).status === 'queued', 5_000),
      ).toBeLessThanOrEqual(500)
      expect(await bench.attempts(run)).toMatchObject([{ end: 'lost' }])
      expect(bench.db.prepare('select evidence from sessions').pluck().all().join()).toContain(
        'owner lock',
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('B141 S16 every writing transaction takes its lock when it begins, so that none has to upgrade', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'busy-'))
    try {
      const file = path.join(folder, 'db')
      bench = await openBench({ file })
      const hand = await bench.hand([w], { embedded: true })
      // another connection reads for as long as it likes: nothing here is refused for it
      const reader = new Database(file)
      reader.exec('begin')
      reader.prepare('select count(*) from runs').get()
      const starts = await Promise.all(Array.from({ length: 100 }, () => bench!.start(w)))
      const held = await hand.claim(100)
      await Promise.all(held.map((each) => hand.end(each, complete('done'))))
      expect(bench.count("select count(*) from runs where status = 'succeeded'")).toBe(
        starts.length,
      )
      reader.exec('commit')
      reader.close()
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('what a file outlives', () => {
  const onFile = async (test: (file: string) => Promise<void>): Promise<void> => {
    const folder = mkdtempSync(path.join(tmpdir(), 'outlives-'))
    try {
      await test(path.join(folder, 'db'))
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  it('B076 RUN-19 a process that dies between the row and whatever was to follow leaves a run that the next one claims', () =>
    onFile(async (file) => {
      bench = await openBench({ file, manual: true })
      const { clock } = bench
      await (await bench.hand([w])).close()
      const run = await bench.start(w)
      // no hint, no loop and no queue beside the row has lived
      await bench.close()
      bench = await openBench({ file, clock, seed: 9 })
      await bench.process([workflow('w', () => 'done')])
      await bench.until(async () => (await bench!.get(run)).status === 'succeeded', 1_000)
      expect(await bench.attempts(run)).toMatchObject([{ attempt: 1, end: 'completed' }])
    }))

  it('B126 DAG-11 an approval is decided after a month of new builds, servers and executors, and its run goes on', () =>
    onFile(async (file) => {
      const asks = workflow('asks', async (ctx) => {
        const { decision } = await ctx.approval('ship', { prompt: 'Ship?', deadline: '60d' })
        return ctx.step('after', () => decision)
      })
      bench = await openBench({ file })
      const { clock } = bench
      await bench.process([asks], { build: 'build 1' })
      const run = await bench.start(asks)
      await bench.until(async () => (await bench!.get(run)).waitOn === 'approval', 5_000)
      for (let build = 2; build < 12; build++) {
        await bench.close()
        clock.moveTo(clock.time.now() + 3 * 86_400_000)
        bench = await openBench({ file, clock, seed: build })
        await bench.process([asks], { build: `build ${build}` })
        await bench.settle()
      }
      expect(
        await bench.engine.decide({
          approval: `${run}:ship`,
          decision: 'approved',
          by: 'ana',
          reason: null,
          payload: null,
        }),
      ).toMatchObject({ ok: true })
      await bench.until(async () => (await bench!.get(run)).status === 'succeeded', 5_000)
      expect((await bench.get(run)).output).toBe('approved')
    }))

  it('B143 L9 a full disk refuses what comes by name, loses nothing, and is no matter once there is room', () =>
    onFile(async (file) => {
      bench = await openBench({ file })
      const hand = await bench.hand([w], { embedded: true })
      const kept: string[] = []
      for (let i = 0; i < 20; i++) kept.push(await bench.start(w))
      const held = await hand.claim(5)
      const pages = bench.count('pragma page_count')
      bench.db.pragma(`max_page_count = ${pages}`)
      let refused: unknown
      while (refused === undefined)
        await bench.start(w, 'x'.repeat(10_000)).then(
          (id) => kept.push(id),
          (error: unknown) => {
            refused = error
          },
        )
      expect(refused).toMatchObject({
        code: 'store_full',
        message: expect.stringContaining('free space') as string,
      })
      await bench.advance(20_000)
      bench.db.pragma('max_page_count = 1000000')
      const [first] = held
      expect(await hand.end(first as never, complete('done'))).toMatchObject({ ok: true })
      kept.push(await bench.start(w, 'x'.repeat(10_000)))
      expect(bench.count('select count(*) from runs')).toBe(kept.length)
      await bench.advance(1_000)
      expect((await hand.claim(50)).length).toBe(kept.length - held.length)
      expect(bench.count('pragma integrity_check') as unknown).toBe('ok')
    }))
})

describe('loops that go on for days', () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void

  it('B133 a hundred thousand idle polls leave no listener and no memory behind', async () => {
    const clock = virtualClock(Date.UTC(2026, 0, 1))
    const random = seededRandom(1)
    const ports = {
      time: clock.time,
      timers: clock.timers(),
      random,
      ids: mintIds(clock.time, random),
      log: noLog,
    }
    let polls = 0
    let most = 0
    const signals = new Set<AbortSignal>()
    const port: ExecutorPort = {
      register: (request) =>
        Promise.resolve({
          ok: true,
          session: request.session,
          now: clock.time.now(),
          generation: 1,
          leaseMs: 30_000,
          renewMs: 10_000,
          embedded: true,
          limits: {
            payloadMaxBytes: 1e6,
            entriesMax: 1e4,
            journalMaxBytes: 5e7,
            limitGraceMs: 1e4,
            childrenMax: 1e3,
          },
        }),
      async claim(request, signal) {
        polls += 1
        signals.add(signal!)
        // every third answer fails, so that the executor waits by itself as well
        if (polls % 3 === 0) throw new Error('nobody answers')
        await new Promise<void>((resolve) => {
          const onAbort = (): void => resolve()
          signal!.addEventListener('abort', onAbort, { once: true })
          ports.timers.after(1, () => {
            signal!.removeEventListener('abort', onAbort)
            resolve()
          })
        })
        return {
          ok: true,
          claim: request.claim,
          runs: [],
          now: clock.time.now(),
          leaseUntil: null,
          more: false,
        }
      },
      journal: () => Promise.resolve([]),
      write: () => Promise.reject(new Error('nothing is written')),
      renew: () =>
        Promise.resolve({
          ok: true,
          now: clock.time.now(),
          leaseUntil: null,
          told: [],
          pending: [],
          wantsList: false,
        }),
      close: () => Promise.resolve({ ok: true, handedBack: 0 }),
      logs: () => Promise.resolve({ ok: true, kept: 0 }),
      listen: () => () => undefined,
    }
    const warnings: unknown[] = []
    const note = (warning: unknown): void => void warnings.push(warning)
    process.on('warning', note)
    const executor = makeExecutor({ port, ports, workflows: [workflow('idle', () => 1)] })
    await executor.start()
    const drive = async (until: number): Promise<void> => {
      while (polls < until) {
        await new Promise((resolve) => setImmediate(resolve))
        const next = clock.next()
        if (next !== null) clock.moveTo(next)
        for (const signal of signals)
          most = Math.max(most, getEventListeners(signal, 'abort').length)
      }
    }
    await drive(5_000)
    gc()
    const before = process.memoryUsage().heapUsed
    await drive(105_000)
    gc()
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(1024 ** 2)
    expect(most).toBeLessThanOrEqual(2)
    expect(signals.size).toBe(1)
    expect(warnings).toEqual([])
    process.off('warning', note)
    const stopping = executor.stop()
    for (let i = 0; i < 100; i++) {
      await new Promise((resolve) => setImmediate(resolve))
      const next = clock.next()
      if (next !== null) clock.moveTo(next)
    }
    await stopping
    expect(getEventListeners([...signals][0]!, 'abort')).toHaveLength(0)
  }, 120_000)

  it('B133 long polls that find nothing leave nothing in the engine', async () => {
    bench = await openBench({ manual: true })
    const hand = await bench.hand([w], { embedded: true })
    const stop = new AbortController()
    for (let claim = 1; claim <= 2_000; claim++) {
      const asked = hand.port.claim(
        { session: hand.id, claim, most: 1, except: [], waitMs: 1_000 },
        stop.signal,
      )
      await new Promise((resolve) => setImmediate(resolve))
      expect(getEventListeners(stop.signal, 'abort').length).toBeLessThanOrEqual(1)
      bench.clock.moveTo(bench.clock.time.now() + 1_000)
      expect(await asked).toMatchObject({ ok: true, runs: [] })
    }
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0)
    expect(bench.clock.next()).toBeNull()
  })

  it('B133 a run with hundreds of bodies at once adds no listener for each to anything that lives longer', async () => {
    const warnings: unknown[] = []
    const note = (warning: unknown): void => void warnings.push(warning)
    process.on('warning', note)
    const wide = workflow('wide', (ctx) =>
      ctx.map(
        'all',
        Array.from({ length: 300 }, (_, i) => i),
        (each) =>
          each.step(
            's',
            ({ signal }) =>
              new Promise<boolean>((resolve) =>
                bench!.clock.timers().after(10, () => resolve(signal.aborted)),
              ),
          ),
        { concurrency: 300 },
      ),
    )
    bench = await openBench()
    await bench.process([wide], { embedded: true })
    const run = await bench.start(wide)
    await bench.until(async () => (await bench!.get(run)).status === 'succeeded', 10_000)
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', note)
    expect(warnings).toEqual([])
  })
})
