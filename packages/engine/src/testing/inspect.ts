// What a test may look at: the run, its journal, its attempts, as plain objects.
import { LeaseholdError } from '../kernel/errors.ts'
import { decode } from '../kernel/json.ts'
import type { Entry } from '../model/work.ts'
import type { Engine } from '../orchestrator/engine.ts'
import { readRuns, runOf } from '../store/move/run-row.ts'
import { ask } from '../store/sql.ts'
import { attemptsOf, stepsAfter } from '../store/tables/journal.ts'
import { payloadsOf } from '../store/tables/runs.ts'
import { entryOf } from '../transitions/claim.ts'
import type { RunStatus, WaitOn } from '../model/run.ts'

/** A run as a test looks at it; payloads are decoded. */
export interface RunView {
  readonly id: string
  readonly workflow: string
  readonly version: string
  readonly status: RunStatus
  readonly waitOn: WaitOn | null
  readonly reason: string | null
  readonly note: string | null
  readonly attempt: number
  readonly output: unknown
  readonly error: { readonly name: string; readonly message: string; readonly code?: string } | null
  readonly state: unknown
  readonly readyAt: number | null
}

export const inspect = {
  async run(engine: Engine, id: string): Promise<RunView> {
    const [[row], [payload]] = await engine.read(function* () {
      return yield* ask(readRuns([id]), payloadsOf([id]))
    })
    if (!row || !payload)
      throw new LeaseholdError('not_found', `there is no run ${id}`, { run: id })
    const run = runOf(row)
    return {
      id,
      workflow: run.workflow,
      version: run.version,
      status: run.status,
      waitOn: run.waitOn,
      reason: run.reason,
      note: run.note,
      attempt: run.attempt,
      output: decode(payload.output),
      error: (decode(payload.error) as RunView['error'] | undefined) ?? null,
      state: decode(payload.state),
      readyAt: run.readyAt,
    }
  },

  async journal(engine: Engine, id: string): Promise<Entry[]> {
    const rows = await engine.read(function* () {
      return (yield* ask(stepsAfter(id, 0, 1_000_000)))[0]
    })
    return rows.map(entryOf)
  },

  async attempts(
    engine: Engine,
    id: string,
  ): Promise<{ attempt: number; session: string; end: string; reason: string | null }[]> {
    const rows = await engine.read(function* () {
      return (yield* ask(attemptsOf(id)))[0]
    })
    return rows.map(({ attempt, session, end, reason }) => ({ attempt, session, end, reason }))
  },
}
