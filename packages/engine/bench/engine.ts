// An engine on a file or a database of its own, with disk syncs on, and executors in the same process: what all figures begin with.
import path from 'node:path'
import { makeExecutor } from '../src/executor/executor.ts'
import type { ExecutorOptions } from '../src/executor/executor.ts'
import type { AnyWorkflow } from '../src/executor/authoring/context.ts'
import { systemPorts } from '../src/kernel/ports.ts'
import type { StartCommand } from '../src/model/start.ts'
import type { ExecutorPort } from '../src/model/work.ts'
import type { Opened } from '../src/orchestrator/open.ts'
import { openOnPostgres } from '../src/orchestrator/open-postgres.ts'
import { openOnSqlite } from '../src/orchestrator/open.ts'

export const ports = systemPorts()

/** `place` is a folder for a SQLite file, or the URL of a PostgreSQL database. */
export const openIn = (place: string): Promise<Opened> =>
  place.startsWith('postgres:')
    ? openOnPostgres({ url: place, ports })
    : openOnSqlite({ file: path.join(place, 'engine.db'), ports })

export const executorOn = (
  port: ExecutorPort,
  workflows: readonly AnyWorkflow[],
  options: Partial<ExecutorOptions> = {},
) => makeExecutor({ port, ports, workflows, ...options })

/** Makes the workflows known, as an executor that starts and stops does. */
export const registerOn = async (
  { embedded }: Opened,
  workflows: readonly AnyWorkflow[],
): Promise<void> => {
  const executor = executorOn(embedded, workflows)
  await executor.start()
  await executor.stop()
}

/** Starts `count` runs in parts and answers when all are stored. */
export const startAll = async (
  { engine }: Opened,
  workflow: string,
  count: number,
  more: (i: number) => Partial<StartCommand> = () => ({}),
): Promise<void> => {
  for (let done = 0; done < count; done += 500) {
    const part = Array.from({ length: Math.min(500, count - done) }, (_each, i) => ({
      command: { id: ports.ids.next('run'), workflow, input: '{"n":1}', ...more(done + i) },
    }))
    for (const answer of await engine.startMany(part))
      if (!answer.ok) throw new Error(answer.message)
  }
}

/** The port, calling `ended` whenever the end of a run has been acknowledged. */
export const counting = (port: ExecutorPort, ended: () => void): ExecutorPort => ({
  ...port,
  async write(session, write) {
    const answer = await port.write(session, write)
    if (answer.ok && answer.ended !== null) ended()
    return answer
  },
})

/** Drives what is queued until `count` runs have ended, and answers when the last end was acknowledged. */
export const drainedBy = async (
  { embedded }: Opened,
  workflows: readonly AnyWorkflow[],
  count: number,
  slots: number,
): Promise<number> => {
  const all = signal()
  let ended = 0
  const port = counting(embedded, () => {
    ended += 1
    if (ended === count) all.give()
  })
  const executor = executorOn(port, workflows, { slots: { default: slots } })
  await executor.start()
  await all.came
  const at = performance.now()
  await executor.stop()
  return at
}

/** A promise and the function that settles it. */
export const signal = <T = void>(): {
  readonly came: Promise<T>
  readonly give: (value: T) => void
} => {
  let give: (value: T) => void = () => undefined
  const came = new Promise<T>((resolve) => {
    give = resolve
  })
  return { came, give }
}
