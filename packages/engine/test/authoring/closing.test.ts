// The end of an engine inside one process, while its callers wait.
import { expect, it } from 'vitest'
import { embedded, workflow } from '../../src/entry/index.ts'
import { noLog } from '../../src/kernel/log.ts'
import { gate } from '../support/executor.ts'

it('EX-17 DX-02 a close ends what waits for the engine, and what is asked later is refused by name; neither is a defect', async () => {
  const errors: string[] = []
  const log = { ...noLog, error: (event: string) => void errors.push(event) }
  const waits = gate()
  const w = workflow('w', async (ctx) => {
    waits.open()
    await ctx.signal('never')
  })
  const engine = await embedded({ file: ':memory:', workflows: [w], log })
  const { id } = await engine.start(w, null)
  const changed = gate()
  const result = engine.result(id)
  const followed = (async () => {
    for await (const _each of engine.events(id)) changed.open()
  })()
  const ends = Promise.allSettled([result, followed])
  await Promise.all([waits.opened, changed.opened])
  await engine.close()
  const closed = { code: 'engine_closed', message: expect.stringContaining('close() was called') }
  expect(await ends).toMatchObject([
    { status: 'rejected', reason: closed },
    { status: 'rejected', reason: closed },
  ])
  await expect(engine.start(w, null)).rejects.toMatchObject(closed)
  await expect(engine.list()).rejects.toMatchObject(closed)
  expect(() => engine.transaction(() => null)).toThrow(expect.objectContaining(closed))
  await engine.close()
  expect(errors).toEqual([])
})
