// Players in processes of their own, and the hunt for planted bugs with one.
import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { seedOf } from '../../../src/kernel/random.ts'
import type { Asked, Struck } from '../crash-points.ts'
import type { Player, Tally } from '../run.ts'
import { run } from '../run.ts'
import type { Bug } from './bugs.ts'
import { buildWith } from './build.ts'

export interface Away {
  readonly play: Player
  /** Plays one scenario of the crash points with each of these. */
  readonly strike: (asked: Asked) => Promise<Struck>
  stop(): void
}

/** Starts a process that plays worlds with this bug, or without one. */
export const startPlayer = async (bug: Bug | null): Promise<Away> => {
  const child = fork(await buildWith(bug), { execArgv: [] })
  return {
    play: (seed, chunk) => asked<Tally>(child, { seed, chunk }),
    strike: (what) => asked<Struck>(child, what),
    stop: () => void child.kill(),
  }
}

const asked = <T>(child: ChildProcess, what: object): Promise<T> =>
  new Promise((resolve, reject) => {
    const over = (code: number | null): void =>
      reject(new Error(`the player of ${JSON.stringify(what).slice(0, 200)} ended with ${code}`))
    child.once('exit', over)
    child.once('message', (answer) => {
      child.off('exit', over)
      resolve(answer as T)
    })
    child.send(what)
  })

/** Hunts a bug, or nothing, within a budget of faults. */
export const hunted = async (bug: Bug | null, seed: number, faults: number): Promise<Tally> => {
  const player = await startPlayer(bug)
  try {
    return await run(seed, faults, [player.play])
  } finally {
    player.stop()
  }
}

/** What came of a world that is no part of a batch. */
interface Verdict {
  readonly rule: string | null
  readonly message?: string | null
  readonly faults: number
}

/** Hunts a bug in worlds of their own, by the program that plays these, within a budget of faults. */
export const huntedIn = async (
  entry: string,
  bug: Bug,
  seed: number,
  budget: number,
): Promise<Pick<Tally, 'worlds' | 'faults' | 'failed'>> => {
  const child = fork(await buildWith(bug, entry), { execArgv: [] })
  let [worlds, faults] = [0, 0]
  try {
    while (faults < budget) {
      const verdict = await asked<Verdict>(child, { seed: seedOf(`${seed}/${worlds}`) })
      worlds += 1
      faults += verdict.faults
      const { rule, message } = verdict
      if (rule !== null)
        return { worlds, faults, failed: { world: worlds - 1, rule, message: message ?? rule } }
    }
    return { worlds, faults, failed: null }
  } finally {
    child.kill()
  }
}
