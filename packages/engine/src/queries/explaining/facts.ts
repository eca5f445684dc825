// What is read to explain one run: the rows that the scheduler decides by.
import type { Run } from '../../model/run.ts'
import type { Settings } from '../../model/settings.ts'
import { limitKeys, limitUses } from '../../model/slots.ts'
import { runOf } from '../../store/move/run-row.ts'
import type { Steps, Tx } from '../../store/sql.ts'
import { ask } from '../../store/sql.ts'
import { aheadInLane } from '../../store/tables/lanes.ts'
import type { HolderRow, PauseRow } from '../../store/tables/limits.ts'
import { allPauses, holdersOf } from '../../store/tables/limits.ts'
import type { SlotRow } from '../../store/tables/lines.ts'
import { aheadInLine, slotsOf, valueInForce } from '../../store/tables/lines.ts'
import type { SessionRow } from '../../store/tables/sessions.ts'
import { liveSessions, sessionById } from '../../store/tables/sessions.ts'
import type { ViewRow } from '../../store/tables/views.ts'
import { approvalsOf, viewsOf } from '../../store/tables/views.ts'
import type { ApprovalRow, WaitRow } from '../../store/tables/waits.ts'
import { waitsOf } from '../../store/tables/waits.ts'

/** One thing that holds a run back, in words and with its evidence. */
export interface Condition {
  readonly code: string
  readonly sentence: string
  readonly since: number | null
  readonly evidence: Readonly<Record<string, unknown>>
}

export interface Facts {
  readonly run: Run
  readonly now: number
  readonly settings: Settings
  readonly holder: SessionRow | undefined
  readonly live: readonly SessionRow[]
  readonly pauses: readonly PauseRow[]
  readonly waits: readonly (WaitRow & { readonly created_at: number })[]
  readonly approvals: readonly ApprovalRow[]
  readonly children: readonly ViewRow[]
  readonly slots: readonly (SlotRow & { readonly ahead: number })[]
  readonly holders: ReadonlyMap<string, readonly HolderRow[]>
  readonly aheadInLane: number
}

/** Reads them; undefined where there is no such run. */
export function* readFacts(tx: Tx, id: string, settings: Settings): Steps<Facts | undefined> {
  const [[row]] = yield* ask(viewsOf([id]))
  if (!row) return undefined
  const run = runOf(row)
  const keys = run.status === 'waiting' && run.waitOn === 'slot' ? limitKeys(run) : []
  const [[holder], live, pauses, waits, approvals, slots, ahead, [lane]] = yield* ask(
    sessionById(run.session ?? ''),
    liveSessions(),
    allPauses(),
    waitsOf(id),
    approvalsOf(id),
    slotsOf(keys),
    aheadInLine(keys, run.resumed, run.rank, run.id),
    aheadInLane(run.status === 'queued' ? run.lane : '', run.rank, run.id),
  )
  const open = waits.filter((wait) => LIVE.includes(wait.state))
  const lines = slots.map((slot) => ({
    ...slot,
    ahead: ahead.find((each) => each.key === slot.key)?.n ?? 0,
  }))
  const full = lines.filter((slot) => !hasRoom(slot, run))
  const named = open.filter((wait) => wait.kind === 'child').map((wait) => wait.name ?? '')
  const [children, ...holders] = yield* ask(
    viewsOf(named),
    ...full.map((slot) => holdersOf(slot.key, slot.mode, HOLDERS_SHOWN)),
  )
  return {
    run,
    now: tx.now,
    settings,
    holder,
    live,
    pauses,
    waits: open,
    approvals,
    children,
    slots: lines,
    holders: new Map(full.map((slot, i) => [slot.key, holders[i] ?? []])),
    aheadInLane: lane?.n ?? 0,
  }
}

const LIVE: readonly string[] = ['open', 'satisfied', 'lapsed']
const HOLDERS_SHOWN = 10

/** How many slots of a limit a run takes. */
export const unitsOf = (run: Run, key: string): number =>
  limitUses(run).find((use) => use.key === key)?.units ?? 1

/** Whether a limit has room for it. */
export const hasRoom = (slot: SlotRow, run: Run): boolean => {
  const value = valueInForce(slot)
  return value === null || slot.used + unitsOf(run, slot.key) <= value
}
