// Being told to stop: the first signal stops in order, a second one at once. A wrapper such as `npm run` or `sh -c` that
// dies without passing its signal on counts as the first one, since nobody could stop this process by it any more.
import { readFileSync } from 'node:fs'
import { systemTimers } from '../kernel/timers.ts'
import { exit } from './exit.ts'
import type { Output } from './output.ts'

const LOOK_MS = 500

/** Runs `stop` at the first signal and answers the exit code; a second signal ends the process. */
export const untilStopped = (stop: () => Promise<void>, out: Output): Promise<number> =>
  new Promise((resolve) => {
    let asked = false
    const end = (why: string): void => {
      if (asked) {
        out.error(`${why} again: exiting at once`)
        process.exit(exit.failed)
      }
      asked = true
      out.note(`${why}: stopping; once more exits at once`)
      stop().then(
        () => resolve(exit.ok),
        (error: unknown) => {
          out.error(`could not stop in order: ${String(error)}`)
          resolve(exit.failed)
        },
      )
    }
    process.on('SIGTERM', () => end('SIGTERM'))
    process.on('SIGINT', () => end('SIGINT'))
    watchWrapper(() => {
      if (!asked) end('the process that started this one has ended')
    })
  })

const watchWrapper = (gone: () => void): void => {
  const parent = process.ppid
  if (parent <= 1 || !isWrapper(parent)) return
  const look = (): void => {
    if (process.ppid === parent) systemTimers.after(LOOK_MS, look)
    else gone()
  }
  look()
}

/** A package manager's script, or a shell that runs one command line: what such a parent starts is to end with it. */
const isWrapper = (parent: number): boolean => {
  if (process.env['npm_lifecycle_event'] !== undefined) return true
  try {
    const [program = '', ...args] = readFileSync(`/proc/${parent}/cmdline`, 'utf8').split('\0')
    return /(^|\/)(ba|da|z|a|k)?sh$/.test(program) && args.some((arg) => /^-[a-z]*c$/.test(arg))
  } catch {
    return false
  }
}
