// What was asked, what was acknowledged, and what bodies did: recorded outside of the engine, in the order in which it was
// seen. A thing counts as acknowledged only when an answer of the engine said so.
import { existsSync, readFileSync } from 'node:fs'

/** A start that was asked for, whatever became of it. */
export interface Asked {
  readonly run: string
  readonly workflow: string
  readonly input: unknown
  readonly by: 'client' | 'transaction' | 'program'
}

/** A body that came to its end, under an attempt that may have been the holder's or not. */
export interface Did {
  readonly run: string
  readonly attempt: number
  readonly step: string
  /** What it returned; no two bodies return the same. */
  readonly value: string
}

/** The end of a run as a client was told it. */
export interface Told {
  readonly run: string
  readonly status: string
  readonly output: unknown
}

export interface History {
  readonly asked: Map<string, Asked>
  readonly started: Set<string>
  /** Asked for in a transaction that was rolled back. */
  readonly rolledBack: Set<string>
  /** The runs that were named for each key: all of one series. */
  readonly keys: Map<string, Set<string>>
  /** Acknowledged signals, by run and the sender's id. */
  readonly signaled: { readonly run: string; readonly id: string }[]
  readonly cancelAsked: Set<string>
  readonly canceled: Set<string>
  /** Approvals whose decision was acknowledged. */
  readonly approved: Set<string>
  readonly told: Told[]
  readonly did: Did[]
  stalls: number
}

export const newHistory = (): History => ({
  asked: new Map(),
  started: new Set(),
  rolledBack: new Set(),
  keys: new Map(),
  signaled: [],
  cancelAsked: new Set(),
  canceled: new Set(),
  approved: new Set(),
  told: [],
  did: [],
  stalls: 0,
})

type Line =
  | ({ readonly what: 'did' } & Did)
  | {
      readonly what: 'asked'
      readonly run: string
      readonly workflow: string
      readonly input: unknown
    }
  | { readonly what: 'started' | 'not started' | 'stalled'; readonly run: string }

/** Takes in what the processes have written. A line is one write of theirs, so that a kill leaves it out or whole. */
export const takeIn = (history: History, file: string): void => {
  if (!existsSync(file)) return
  for (const text of readFileSync(file, 'utf8').split('\n')) {
    if (text === '') continue
    const line = JSON.parse(text) as Line
    switch (line.what) {
      case 'did':
        history.did.push(line)
        break
      case 'asked':
        history.asked.set(line.run, { ...line, by: 'program' })
        break
      case 'started':
        history.started.add(line.run)
        break
      case 'stalled':
        history.stalls += 1
        break
      case 'not started':
    }
  }
}
