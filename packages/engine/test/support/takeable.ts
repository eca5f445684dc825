// A database that the network takes away, as its process sees it.
import { Fault } from '../../src/kernel/errors.ts'
import type { Opened } from '../../src/orchestrator/open.ts'

export interface Takeable {
  readonly opened: Opened
  /** Whether it is refused at once. */
  away(is: boolean): void
  /** Whether it is open and says nothing: what is asked meanwhile is never answered. */
  silent(is: boolean): void
  /** What is asked from now on is answered after this. */
  hold(until: Promise<unknown>): void
  /** How much it was asked and is about to answer, in its own time. */
  readonly asked: number
}

/** A shard whose database can be taken away, as seen from here. */
export const takeable = (real: Opened): Takeable => {
  let gone = false
  let still = false
  let held: Promise<unknown> = Promise.resolve()
  let asked = 0
  const through = <T extends object>(what: T, ways: readonly (keyof T)[]): T =>
    new Proxy(what, {
      get(target, name) {
        const found = Reflect.get(target, name) as unknown
        if (!ways.includes(name as keyof T)) return found
        return async (...given: unknown[]): Promise<unknown> => {
          if (still) return new Promise(() => undefined)
          await held
          if (gone) throw new Fault('store_unavailable', 'the database does not answer')
          asked += 1
          try {
            return await (found as (...all: unknown[]) => Promise<unknown>)(...given)
          } finally {
            asked -= 1
          }
        }
      },
    })
  const { engine, remote } = real
  return {
    opened: {
      ...real,
      engine: through(engine, [
        'act',
        'read',
        'start',
        'startMany',
        'signal',
        'decide',
        'cancel',
        'pause',
        'resume',
        'retry',
      ]),
      remote: through(remote, ['register', 'claim', 'journal', 'write', 'renew', 'close', 'logs']),
    },
    away(is) {
      gone = is
    },
    silent(is) {
      still = is
    },
    hold(until) {
      held = until
    },
    get asked() {
      return asked
    },
  }
}
