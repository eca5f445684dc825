import { afterEach, describe, expect, it } from 'vitest'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { RegisterAnswer } from '../../src/model/work.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnSqlite } from '../../src/orchestrator/open.ts'
import { ask } from '../../src/store/sql.ts'
import { liveSessions } from '../../src/store/tables/sessions.ts'

const hello = workflow('hello', () => 'hello')
let opened: Opened
afterEach(() => opened.close())

const live = async (): Promise<string[]> =>
  (
    await opened.engine.read(function* () {
      return (yield* ask(liveSessions()))[0]
    })
  ).map(({ id }) => id)

describe('an executor that is stopped while it registers', () => {
  it('EX-01 closes the session that its registration began, and never runs', async () => {
    opened = await openOnSqlite({
      file: ':memory:',
      ports: systemPorts(),
      synchronous: 'OFF',
      manualLoops: true,
    })
    let answer: (() => void) | null = null
    const executor = makeExecutor({
      port: {
        ...opened.embedded,
        async register(request) {
          const registered = await opened.embedded.register(request)
          return new Promise<RegisterAnswer>((resolve) => {
            answer = () => resolve(registered)
          })
        },
      },
      ports: opened.engine.ports,
      workflows: [hello],
    })
    const starting = executor.start()
    while (answer === null) await new Promise((resolve) => setImmediate(resolve))
    const stopping = executor.stop()
    expect(await live()).toHaveLength(1)
    ;(answer as () => void)()
    await expect(starting).rejects.toThrow(/stopped while it registered/)
    await stopping
    expect(executor.state).toBe('stopped')
    expect(await live()).toEqual([])
  })
})
