// An error that is not the function's: what is stored for this run cannot be read, or a mistake of our own.
import { Defect } from '../../kernel/errors.ts'
import type { Ports } from '../../kernel/ports.ts'
import type { Driver } from './driver.ts'

/** The run ends `failed` with it and the others of this process go on; a mistake is then thrown on, as it came (SLOT-06). */
export const escaped = (
  driver: Pick<Driver, 'claimed' | 'fail' | 'left'>,
  { log, timers }: Pick<Ports, 'log' | 'timers'>,
  error: unknown,
): void => {
  const { run, attempt } = driver.claimed
  log.error('driver.escaped', { run, attempt, error })
  driver.fail('error', error)
  void driver.left.then((left) => {
    if (left.kind === 'dropped')
      log.error('driver.end_not_saved', { run, attempt, reason: left.reason })
    if (error instanceof Defect)
      timers.soon(() => {
        throw error
      })
  })
}
