import { afterEach, describe, expect, it } from 'vitest'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { OpenedFile } from '../../src/orchestrator/open.ts'
import { openOnSqlite } from '../../src/orchestrator/open.ts'
import type { SqliteStore } from '../../src/store/sqlite.ts'
import type { TransactionVerbs } from '../../src/orchestrator/user-transaction.ts'
import { notices as listed } from '../../src/queries/notices.ts'
import { inspect } from '../../src/testing/inspect.ts'

const hello = workflow('hello', (_ctx, input: { name: string }) => `Hello ${input.name}`)
let opened: OpenedFile
afterEach(() => opened.close())

const open = async (): Promise<void> => {
  opened = await openOnSqlite({
    file: ':memory:',
    ports: systemPorts(),
    synchronous: 'OFF',
    manualLoops: true,
  })
  const executor = makeExecutor({
    port: opened.embedded,
    ports: opened.engine.ports,
    workflows: [hello],
  })
  await executor.start()
  await executor.stop()
}

const pass = async (): Promise<void> => {
  for (const loop of opened.loops.all) await loop.once()
}

describe("a user's own transaction", () => {
  it('RUN-21 starts a run with the commit of the user’s rows, and not without it', async () => {
    await open()
    const id = opened.transaction((tx) => {
      tx.db.exec('create table mine (id text primary key, run text)')
      const run = tx.start(hello, { name: 'Ada' })
      tx.db.prepare('insert into mine values (?, ?)').run('a', run)
      return run
    })
    await expect(inspect.run(opened.engine, id)).rejects.toMatchObject({ code: 'not_found' })
    await pass()
    expect(await inspect.run(opened.engine, id)).toMatchObject({
      workflow: 'hello',
      status: 'queued',
    })
  })

  it('RUN-21 never was when it rolls back', async () => {
    await open()
    let id = ''
    expect(() =>
      opened.transaction((tx) => {
        id = tx.start(hello, { name: 'Ada' })
        throw new Error('changed my mind')
      }),
    ).toThrow('changed my mind')
    await pass()
    await expect(inspect.run(opened.engine, id)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('RUN-21 refuses a callback that is not synchronous, and writes nothing', async () => {
    await open()
    let id = ''
    expect(() =>
      opened.transaction(async (tx) => {
        id = tx.start(hello, { name: 'Ada' })
      }),
    ).toThrow(/must be synchronous/)
    await pass()
    await expect(inspect.run(opened.engine, id)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('EX-04 RUN-20 RUN-21 a retry starts the run again with the commit, and one that is refused is a notice', async () => {
    await open()
    const [first, other] = opened.transaction((tx) => [
      tx.start(hello, { name: 'Ada' }),
      tx.start(hello, { name: 'Bob' }),
    ])
    await pass()
    await opened.engine.cancel({ run: first, by: 'ana', reason: null })
    const { again, early } = opened.transaction((tx) => ({
      again: tx.retry(first),
      early: tx.retry(other),
    }))
    await expect(inspect.run(opened.engine, again)).rejects.toMatchObject({ code: 'not_found' })
    await pass()
    const { db } = opened.engine.store as SqliteStore
    expect(db.prepare('select status, retry_of from runs where id = ?').get(again)).toEqual({
      status: 'queued',
      retry_of: first,
    })
    await expect(inspect.run(opened.engine, early)).rejects.toMatchObject({ code: 'not_found' })
    const { notices } = await opened.engine.read((tx) => listed(tx, null, 10))
    expect(notices).toEqual([
      expect.objectContaining({
        run: early,
        kind: 'start_refused',
        sentence: expect.stringContaining(`the retry of ${other} that a transaction asked for`),
        data: expect.objectContaining({ code: 'already_active', retryOf: other }),
      }),
    ])
  })

  it('EX-04 what a transaction has asked for takes no slot, prepares nothing and touches no work before its commit, and never where it is rolled back', async () => {
    await open()
    const prepared: string[] = []
    const began: string[] = []
    const stopped: string[] = []
    const long = workflow(
      { name: 'long', prepare: (_input: unknown, { run }) => void prepared.push(run) },
      (ctx) =>
        ctx.step(
          'until it is told',
          ({ signal }) =>
            new Promise((_resolve, reject) => {
              began.push(ctx.info.run)
              signal.addEventListener('abort', () => {
                stopped.push(ctx.info.run)
                reject(signal.reason)
              })
            }),
        ),
    )
    const executor = makeExecutor({
      port: opened.embedded,
      ports: opened.engine.ports,
      workflows: [long],
      slots: { default: 4 },
      drainMs: 10,
    })
    await executor.start()
    const jobs = (): string[] => executor.status().jobs.map(({ run }) => run)
    const ended = opened.transaction((tx) => tx.start(long, null, { delayMs: 3_600_000 }))
    const running = opened.transaction((tx) => tx.start(long, null))
    await pass()
    await opened.engine.cancel({ run: ended, by: 'ana', reason: null })
    await expect.poll(() => began).toEqual([running])
    const untouched = (): void => {
      expect([jobs(), prepared, began, stopped]).toEqual([[running], [running], [running], []])
      expect(executor.status().slots).toMatchObject([{ used: 1 }])
    }
    const ask = (tx: TransactionVerbs): string[] => {
      tx.cancel(running)
      const asked = [tx.start(long, null), tx.retry(ended)]
      untouched()
      return asked
    }
    expect(() =>
      opened.transaction((tx) => {
        ask(tx)
        throw new Error('changed my mind')
      }),
    ).toThrow('changed my mind')
    await pass()
    await pass()
    untouched()
    const asked = opened.transaction(ask)
    untouched()
    await pass()
    await expect.poll(() => jobs().toSorted()).toEqual(asked.toSorted())
    expect(stopped).toEqual([running])
    expect(prepared.toSorted()).toEqual([running, ...asked].toSorted())
    await executor.stop()
  })
})
