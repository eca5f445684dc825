// The whole engine inside one process: store, loops and one executor on a SQLite file, called through the same client that
// programs elsewhere use, without a socket.
import { hostname } from 'node:os'
import type { Client } from '../client/client.ts'
import { connect } from '../client/client.ts'
import type { Executor } from '../executor/executor.ts'
import { makeExecutor } from '../executor/executor.ts'
import type { AnyWorkflow } from '../executor/context.ts'
import type { Log } from '../kernel/log.ts'
import { noLog } from '../kernel/log.ts'
import { systemPorts } from '../kernel/ports.ts'
import type { Settings } from '../model/settings.ts'
import { makeHandler } from '../orchestrator/handler.ts'
import { openOnSqlite } from '../orchestrator/open.ts'
import type { TransactionVerbs } from '../orchestrator/user-transaction.ts'

export interface EmbeddedOptions {
  /** Path of the database file. One process owns it; a second one is refused with a sentence. */
  readonly file: string
  /** What its executor drives. */
  readonly workflows: readonly AnyWorkflow[]
  /** Runs at once by slot class. Default `{ default: 10 }`. */
  readonly slots?: Readonly<Record<string, number>>
  /** Labels that its executor has. Default: none. */
  readonly labels?: readonly string[]
  /** Numbers of the engine that differ from their defaults. */
  readonly settings?: Partial<Settings>
  /** Default: silent. */
  readonly log?: Log
}

/** The engine of this process, with all that a client can do. */
export interface Embedded extends Client {
  readonly executor: Executor
  /** Starts, signals or cancels inside a transaction of the caller's own; `work` must be synchronous. */
  transaction<T>(work: (tx: TransactionVerbs) => T): T
  /** Lets steps end, hands back what is left, closes the file. */
  close(): Promise<void>
}

export const openEmbedded = async (options: EmbeddedOptions): Promise<Embedded> => {
  const ports = systemPorts(options.log ?? noLog)
  const opened = await openOnSqlite({
    file: options.file,
    ports,
    ...(options.settings ? { settings: options.settings } : {}),
  })
  const executor = makeExecutor({
    port: opened.embedded,
    ports,
    workflows: options.workflows,
    host: hostname(),
    pid: process.pid,
    ...(options.slots ? { slots: options.slots } : {}),
    ...(options.labels ? { labels: options.labels } : {}),
  })
  try {
    await executor.start()
  } catch (error) {
    await opened.close()
    throw error
  }
  const handler = makeHandler(opened.engine)
  const client = connect({
    url: 'http://localhost',
    fetch: (url, init) => handler.fetch(new Request(url, init)),
  })
  return {
    ...client,
    executor,
    transaction: (work) => opened.transaction(work),
    async close() {
      await executor.stop({ exiting: false })
      handler.stop()
      await opened.close()
    },
  }
}
