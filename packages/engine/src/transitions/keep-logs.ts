// Keeps lines with the attempts that wrote them. It touches no run: a line that comes late is kept with its own attempt, and
// one of an attempt that its sender never had is kept nowhere.
import type { LogPart } from '../model/log.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { insertLogs, trimLogs } from '../store/tables/logs.ts'

export interface KeepLogs {
  readonly session: string
  readonly parts: readonly LogPart[]
  /** Characters of one attempt that are kept. */
  readonly most: number
}

/** The runs of the parts that were new. */
export function* keepLogs(_tx: Tx, { session, parts, most }: KeepLogs): Steps<readonly string[]> {
  const full = parts.filter(({ lines }) => lines.length > 0)
  if (full.length === 0) return []
  const [kept] = yield* ask(insertLogs(session, full))
  if (kept.length > 0)
    yield* finish(...kept.map(({ run, attempt }) => trimLogs(run, attempt, most)))
  return kept.map(({ run }) => run)
}
