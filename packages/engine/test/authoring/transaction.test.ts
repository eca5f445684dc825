import { afterEach, describe, expect, it } from 'vitest'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/workflow.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { OpenedFile } from '../../src/orchestrator/open.ts'
import { openOnSqlite } from '../../src/orchestrator/open.ts'
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
    for (const loop of opened.loops.all) await loop.once()
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
    for (const loop of opened.loops.all) await loop.once()
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
    for (const loop of opened.loops.all) await loop.once()
    await expect(inspect.run(opened.engine, id)).rejects.toMatchObject({ code: 'not_found' })
  })
})
