// Starting, signaling and canceling inside a user's own transaction: the engine's part of `transaction(…)`.
import type Database from 'better-sqlite3'
import { encode } from '../kernel/json.ts'
import { nothing } from '../model/follow.ts'
import type { StartCommand } from '../model/start.ts'
import type { SqliteStore } from '../store/sqlite.ts'
import { inUserTransaction } from '../store/user-transaction.ts'
import type { Engine } from './engine.ts'

/** What a user's transaction can ask of the engine; each takes effect after the commit. */
export interface TransactionVerbs {
  /** The connection that the transaction runs on. */
  readonly db: Database.Database
  /** Answers the id that the run will have; limits and keys are judged when it is applied. */
  start(
    workflow: { readonly name: string } | string,
    input: unknown,
    options?: Omit<StartCommand, 'id' | 'workflow' | 'input'>,
  ): string
  signal(run: string, name: string, payload?: unknown): void
  cancel(run: string, reason?: string): void
}

export const userTransaction = <T>(
  engine: Engine,
  store: SqliteStore,
  work: (tx: TransactionVerbs) => T,
): T => {
  const { ids, time } = engine.ports
  let placed = 0
  const result = inUserTransaction(store.db, time.now(), (db, place) => {
    const order: typeof place = (each) => {
      placed += 1
      place(each)
    }
    return work({
      db,
      start(workflow, input, options = {}) {
        const id = ids.next('run')
        const command: StartCommand = {
          ...options,
          id,
          workflow: typeof workflow === 'string' ? workflow : workflow.name,
          input: encode(input),
        }
        order({ id: `start:${id}`, kind: 'start', run: id, payload: command })
        return id
      },
      signal: (run, name, payload) =>
        order({
          id: ids.next('ord'),
          kind: 'signal',
          run,
          payload: { name, payload: encode(payload), by: 'transaction' },
        }),
      cancel: (run, reason) =>
        order({
          id: ids.next('ord'),
          kind: 'cancel',
          run,
          payload: { by: 'transaction', reason: reason ?? null },
        }),
    })
  })
  if (placed > 0) {
    const follow = nothing()
    follow.orders = true
    engine.follow(follow)
  }
  return result
}
