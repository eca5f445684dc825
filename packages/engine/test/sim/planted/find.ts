// Sends the simulator after planted bugs, each in a process of its own.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Bug } from './bugs.ts'
import { buildWith } from './build.ts'

export interface Hunted {
  readonly worlds: number
  readonly faults: number
  readonly rule: string | null
  readonly message: string | null
  readonly hash: string
}

const start = promisify(execFile)

/** Hunts a bug, or nothing, within a budget of faults. */
export const hunted = async (bug: Bug | null, seed: number, faults: number): Promise<Hunted> => {
  const program = await buildWith(bug)
  const { stdout } = await start(process.execPath, [program, String(seed), String(faults)], {
    maxBuffer: 16 * 1024 ** 2,
  })
  return JSON.parse(stdout) as Hunted
}
