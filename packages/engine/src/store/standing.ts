// Whether the files that a SQLite store has open still stand at their paths. The system lets a program write on into a file
// that was moved, replaced or deleted, where nobody will look for it: so a store that has lost its file refuses all work.
import { Fault } from '../kernel/errors.ts'
import type { Files } from '../kernel/files.ts'
import type { Time } from '../kernel/time.ts'
import type { Store } from './store.ts'

/** A look costs some ten microseconds; the engine asks the store for something each second by itself. */
const LOOK_MS = 1_000

export interface Standing {
  /** Throws `store_moved` while a file is not the one that was opened; looks at most once a second. */
  check(): void
}

export interface StandingOptions {
  /** The path of the file through all links, beside which its other files stand. */
  readonly place: string
  readonly files: Files
  readonly time: Time
  /** Called at a loss: writes what is acknowledged into the file that was opened and leaves its log empty. */
  readonly settle: () => void
  /** Hears once of each loss. */
  readonly onLost: (fault: Fault) => void
}

/** To be asked when the store has been opened and used, so that all of its files are there. */
export const standing = (
  file: string,
  { place, files, time, settle, onLost }: StandingOptions,
): Standing => {
  const opened = [file, `${place}-wal`, `${place}-shm`, `${place}.owner`].flatMap((path) => {
    const identity = files.identity(path)
    return typeof identity === 'string' ? [{ path, identity }] : []
  })
  let looked = time.mono()
  let lost: Fault | null = null

  const look = (): Fault | null => {
    for (const { path, identity } of opened) {
      const found = files.identity(path)
      if (found === undefined || found === identity) continue
      return new Fault(
        'store_moved',
        `${path} ${found === null ? 'is not there any more' : 'is another file'} (expected file ${identity}, found ${found ?? 'none'}): it was moved, replaced or deleted while this process had it open. ` +
          (path === file
            ? 'All that was acknowledged is in the one that was opened: put it back and start again; to take another one, stop the process first'
            : `All that was acknowledged is in ${file}: start again, and leave the files beside it alone while a process has them`),
        { detail: { path, expected: identity, found } },
      )
    }
    return null
  }

  return {
    check() {
      const now = time.mono()
      if (now - looked >= LOOK_MS) {
        looked = now
        const found = look()
        if (found && !lost) {
          tried(settle)
          onLost(found)
        }
        lost = found
      }
      if (lost) throw lost
    },
  }
}

/** What the store cannot do any more is said by the loss itself. */
const tried = (settle: () => void): void => {
  try {
    settle()
  } catch {
    return
  }
}

/** The store, asked through `check` each time. */
export const whileStanding = <S extends Store>(store: S, { check }: Standing): S => {
  const asked: Pick<Store, 'run' | 'read'> = {
    async run(transaction, manner, behind) {
      check()
      return store.run(transaction, manner, behind)
    },
    async read(transaction) {
      check()
      return store.read(transaction)
    },
  }
  return Object.assign(Object.create(store) as S, asked)
}
