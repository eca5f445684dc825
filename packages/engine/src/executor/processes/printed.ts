// What an isolated process prints becomes lines of its attempt's log. One that prints faster than anybody could read waits,
// and nobody else does.
import type { Ports } from '../../kernel/ports.ts'
import type { AttemptLog } from '../logs/attempt-log.ts'
import { lineReader } from './line-reader.ts'
import type { BodyProcess, ProcessHears } from './processes.ts'

/** What has inherited the output of a process that has gone is read no longer than this. */
const LEFT_OPEN_MS = 1_000
/** So many characters are read of a process in so long. */
const READ_MAX = 1024 ** 2
const WITHIN_MS = 250

type Outlet = Pick<BodyProcess, 'flow' | 'leaveOutput'>

export interface Printed {
  readonly hear: ProcessHears['printed']
  /** The process whose output it is. */
  of(body: Outlet): void
  /** The process has exited: what it left unread is read now. */
  exited(): void
  /** Nothing of its group is alive. */
  gone(): void
}

export const printed = (
  log: Pick<AttemptLog, 'print'>,
  { timers }: Pick<Ports, 'timers'>,
): Printed => {
  const readers = {
    stdout: lineReader((text, missing) => log.print('stdout', text, missing)),
    stderr: lineReader((text, missing) => log.print('stderr', text, missing)),
  }
  const open = new Set(['stdout', 'stderr'])
  let outlet: Outlet | null = null
  let read = 0
  let cancel: (() => void) | null = null
  const rest = (): void => {
    cancel = timers.after(WITHIN_MS, () => {
      cancel = null
      if (read > READ_MAX) outlet?.flow(true)
      read = 0
    })
  }
  return {
    hear(source, text) {
      if (text === null) {
        open.delete(source)
        return readers[source].end()
      }
      readers[source].read(text)
      const before = read
      read += text.length
      if (!cancel) rest()
      if (before <= READ_MAX && read > READ_MAX) outlet?.flow(false)
    },
    of(body) {
      outlet = body
    },
    exited() {
      read = 0
      outlet?.flow(true)
    },
    gone() {
      if (open.size > 0)
        timers.after(LEFT_OPEN_MS, () => {
          if (open.size > 0) outlet?.leaveOutput()
        })
    },
  }
}
