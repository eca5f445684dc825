// A database that the network takes away, as its process sees it.
import { Fault } from '../../src/kernel/errors.ts'
import type { Opened } from '../../src/orchestrator/open.ts'

export interface Takeable {
  readonly opened: Opened
  /** Whether it is refused at once. */
  away(is: boolean): void
  /** Whether it is open and says nothing: what is asked meanwhile is never answered. */
  silent(is: boolean): void
}

/** A shard whose database can be taken away, as seen from here. */
export const takeable = (real: Opened): Takeable => {
  let gone = false
  let still = false
  const through = <T extends object>(what: T, ways: readonly (keyof T)[]): T =>
    new Proxy(what, {
      get(target, name) {
        const found = Reflect.get(target, name) as unknown
        if (!ways.includes(name as keyof T)) return found
        return async (...given: unknown[]): Promise<unknown> => {
          if (still) return new Promise(() => undefined)
          if (gone) throw new Fault('store_unavailable', 'the database does not answer')
          return (found as (...all: unknown[]) => Promise<unknown>)(...given)
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
  }
}
