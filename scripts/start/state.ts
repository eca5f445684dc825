// What an earlier `npm start` left: whether it came to its end, and which processes it had.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { home } from './flags.ts'

export interface State {
  /** The script's own process. */
  script: number
  url: string | null
  /** All processes that were started. */
  pids: number[]
  /** Names this batch of runs, so that starting it again starts nothing twice. */
  batch: string
  finished: boolean
}

const file = path.join(home, 'start.json')
export const database = path.join(home, 'start.db')
export const output = path.join(home, 'webhooks')

export const readState = (): State | null => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as State
  } catch {
    return null
  }
}

export const writeState = (state: State): void => {
  mkdirSync(home, { recursive: true })
  writeFileSync(`${file}.new`, JSON.stringify(state))
  renameSync(`${file}.new`, file)
}

/** Removes what an earlier start stored. */
export const clean = (): void => {
  for (const end of ['', '-wal', '-shm', '.owner', '.owner.txt', '.owner-journal'])
    rmSync(`${database}${end}`, { force: true })
  rmSync(output, { recursive: true, force: true })
  rmSync(path.join(home, 'start-logs'), { recursive: true, force: true })
}
