// A second record of the store, kept beside it: what each committed transaction wrote, read back row by row. The rules
// compare it with what came before, and the audit compares the whole of it with the store at the end.
import type Database from 'better-sqlite3'
import type { Commit, Touch } from './commit.ts'

const COLUMNS =
  'id, workflow, queue, lane, owner, key, status, wait_on, reason, note, attempt, session, claim, leased_at, entries, rev, ready_at, ended_at, deadline, attempt_deadline, cancel_requested_at, pause_requested_at, losses, suspect_since, hand_backs, failures, parent, parent_key, awaited, on_parent_end, series, retry_of, on_end, on_end_of, limit_owner, limit_global, limit_a, limit_b, units_a, units_b, rank, resumed, output, error'

export interface RunRow {
  readonly id: string
  readonly workflow: string
  readonly queue: string
  readonly lane: string
  readonly owner: string
  readonly key: string | null
  readonly status: string
  readonly wait_on: string | null
  readonly reason: string | null
  readonly note: string | null
  readonly attempt: number
  readonly session: string | null
  readonly claim: number | null
  readonly leased_at: number | null
  readonly entries: number
  readonly rev: number
  readonly ready_at: number | null
  readonly ended_at: number | null
  readonly deadline: number | null
  readonly attempt_deadline: number | null
  readonly cancel_requested_at: number | null
  readonly pause_requested_at: number | null
  readonly losses: number
  readonly suspect_since: number | null
  readonly hand_backs: number
  readonly failures: number
  readonly parent: string | null
  readonly parent_key: string | null
  readonly awaited: number
  readonly on_parent_end: string
  readonly series: string
  readonly retry_of: string | null
  readonly on_end: string | null
  readonly on_end_of: string | null
  readonly limit_owner: string | null
  readonly limit_global: string | null
  readonly limit_a: string | null
  readonly limit_b: string | null
  readonly units_a: number
  readonly units_b: number
  readonly rank: number
  readonly resumed: number
  readonly output: string | null
  readonly error: string | null
}

export interface WaitRow {
  readonly run: string
  readonly key: string
  readonly kind: string
  readonly name: string | null
  readonly dueAt: number | null
  readonly state: string
  readonly result: string | null
  readonly tries: number
}

export interface SignalRow {
  run: string
  readonly id: string
  readonly seq: number
  readonly name: string
  readonly payload: string | null
  takenBy: string | null
  read: boolean
}

export interface ApprovalRow {
  readonly id: string
  readonly run: string
  readonly key: string
  readonly deadline: number
  readonly state: string
  readonly by: string | null
}

export interface SessionRow {
  readonly id: string
  readonly state: string
  readonly claim_no: number
  readonly lease_ms: number
  readonly lease_until: number | null
  /** True time of the last write that extended the lease. */
  renewedAt: number
}

export interface AttemptRow {
  readonly run: string
  readonly attempt: number
  readonly session: string
  readonly end: string
  readonly reason: string | null
}

export interface EntryRow {
  readonly run: string
  readonly key: string
  readonly n: number
  readonly kind: string
  readonly attempt: number
  readonly output: string | null
  readonly error: string | null
}

/** What one commit changed, as pairs of before and after. */
export interface Change {
  readonly now: number
  readonly runs: { readonly before: RunRow | undefined; readonly after: RunRow }[]
  readonly waits: { readonly before: WaitRow | undefined; readonly after: WaitRow }[]
  readonly approvals: { readonly before: ApprovalRow | undefined; readonly after: ApprovalRow }[]
  readonly sessions: { readonly before: SessionRow | undefined; readonly after: SessionRow }[]
  readonly attempts: AttemptRow[]
  readonly entries: EntryRow[]
  /** Of those, entries whose key their run had already. */
  readonly repeated: EntryRow[]
  /** Signals as they were when this commit took them. */
  readonly taken: { readonly signal: SignalRow; readonly by: string }[]
  readonly read: SignalRow[]
  readonly sent: SignalRow[]
  readonly released: SignalRow[]
  /** Orders that this commit took away, and receipts that it wrote. */
  readonly orders: Set<string>
  readonly receipts: { readonly run: string; readonly kind: string; readonly recipient: string }[]
  readonly events: { readonly run: string; readonly kind: string }[]
  readonly locks: readonly Touch[]
  readonly writes: readonly Touch[]
}

const EMPTY: ReadonlyMap<string, never> = new Map<string, never>()

export class Shadow {
  readonly runs = new Map<string, RunRow>()
  /** Ids of runs that have not ended. */
  readonly active = new Set<string>()
  readonly heldBy = new Map<string, Set<string>>()
  readonly childrenOf = new Map<string, Set<string>>()
  /** Series to the ids of its runs, the first included once it is continued. */
  readonly series = new Map<string, string[]>()
  readonly sessions = new Map<string, SessionRow>()
  /** `run#attempt` to the session that held it. */
  readonly holders = new Map<string, string>()
  readonly attemptEnds = new Map<string, string>()
  readonly entries = new Map<string, Map<string, EntryRow>>()
  readonly waits = new Map<string, Map<string, WaitRow>>()
  readonly signals = new Map<string, Map<string, SignalRow>>()
  readonly approvals = new Map<string, ApprovalRow>()
  readonly limits = new Map<string, { mode: string; value: number | null }>()
  readonly pauses = new Map<string, number | null>()
  readonly #runById: Database.Statement
  readonly #sessionById: Database.Statement
  readonly #limitRows: Database.Statement
  readonly #pauseRows: Database.Statement
  readonly #orderById: Database.Statement

  constructor(db: Database.Database) {
    this.#runById = db.prepare(`select ${COLUMNS} from runs where id = ?`)
    this.#sessionById = db.prepare(
      'select id, state, claim_no, lease_ms, lease_until from sessions where id = ?',
    )
    this.#limitRows = db.prepare('select key, mode, code_value, operator_value from limits')
    this.#pauseRows = db.prepare('select kind, name, until from pauses')
    this.#orderById = db.prepare('select 1 from orders where id = ?')
  }

  waitsOf(run: string): ReadonlyMap<string, WaitRow> {
    return this.waits.get(run) ?? EMPTY
  }

  signalsOf(run: string): ReadonlyMap<string, SignalRow> {
    return this.signals.get(run) ?? EMPTY
  }

  entriesOf(run: string): ReadonlyMap<string, EntryRow> {
    return this.entries.get(run) ?? EMPTY
  }

  hasOrder(id: string): boolean {
    return this.#orderById.get(id) !== undefined
  }

  /** Takes in a commit at this true time, and tells what it changed. */
  take(commit: Commit, trueNow: number): Change {
    const change: Change = {
      now: commit.now,
      runs: [],
      waits: [],
      approvals: [],
      sessions: [],
      attempts: [],
      entries: [],
      repeated: [],
      taken: [],
      read: [],
      sent: [],
      released: [],
      orders: new Set(),
      receipts: [],
      events: [],
      locks: commit.locks,
      writes: commit.writes,
    }
    const runs = new Map<string, Row[]>()
    const sessions = new Set<string>()
    let limits = false
    /** Runs whose plain end was stored: of the others that were sent with it nothing was. */
    const plain = new Set<string>()
    for (const touch of commit.writes) {
      switch (touch.table) {
        case 'runs':
          this.#runsOf(touch, runs)
          break
        case 'sessions':
          if (touch.name === 'sessions.claim') {
            if (touch.rows.length > 0) sessions.add(String(touch.params[0]))
          } else for (const row of touch.rows) sessions.add(String(row['id']))
          break
        case 'limits':
          limits ||= touch.rows.length > 0
          break
        case 'pauses':
          this.#readPauses()
          break
        case 'steps':
          this.#steps(touch, change, plain)
          break
        case 'attempts':
          if (touch.name === 'attempts.complete_plainly') {
            for (const row of touch.rows) plain.add(String(row['run']))
            for (const row of listed(touch))
              if (plain.has(String(row['run'])))
                change.attempts.push({
                  run: String(row['run']),
                  attempt: Number(row['attempt']),
                  session: String(row['session']),
                  end: 'completed',
                  reason: null,
                })
            break
          }
          for (const row of listed(touch))
            change.attempts.push({
              run: String(row['run']),
              attempt: Number(row['attempt']),
              session: String(row['session']),
              end: String(row['how']),
              reason: row['reason'] as string | null,
            })
          break
        case 'waits':
          this.#waits(touch, change)
          break
        case 'signals':
          this.#signals(touch, change)
          break
        case 'approvals':
          this.#approvals(touch, change)
          break
        case 'orders':
          if (touch.name === 'orders.remove')
            for (const row of touch.rows) change.orders.add(String(row['id']))
          break
        case 'receipts':
          for (const row of listed(touch))
            change.receipts.push({
              run: String(row['run']),
              kind: String(row['kind']),
              recipient: String(row['recipient']),
            })
          break
        case 'events':
          for (const row of listed(touch))
            change.events.push({ run: String(row['run']), kind: String(row['kind']) })
          break
      }
    }
    if (limits) this.#readLimits()
    for (const id of sessions) this.#session(id, commit, trueNow, change)
    for (const [id, states] of runs) this.#run(id, states, change)
    for (const attempt of change.attempts)
      this.attemptEnds.set(`${attempt.run}#${attempt.attempt}`, attempt.end)
    return change
  }

  /** The runs that a statement wrote, each with the states that this commit gave it before its last. */
  #runsOf(touch: Touch, runs: Map<string, Row[]>): void {
    const items = touch.name === 'runs.write' || touch.name === 'runs.bear' ? listed(touch) : []
    const written = touch.name === 'runs.bear' ? items : touch.rows
    for (const { id } of written) {
      const states = runs.get(String(id)) ?? []
      if (touch.name === 'runs.write') states.push(items.find((item) => item['id'] === id) ?? {})
      runs.set(String(id), states)
    }
  }

  #run(id: string, states: readonly Row[], change: Change): void {
    let before = this.runs.get(id)
    const after = this.#runById.get(id) as RunRow | undefined
    if (!after) {
      this.forget(id)
      return
    }
    const first = before
    for (const state of states) {
      if (!before || Number(state['rev']) >= after.rev) break
      const between: RunRow = { ...before, ...state }
      change.runs.push({ before, after: between })
      before = between
    }
    this.runs.set(id, after)
    change.runs.push({ before, after })
    if (first?.session !== after.session) {
      if (first?.session) this.heldBy.get(first.session)?.delete(id)
      if (after.session) setOf(this.heldBy, after.session).add(id)
    }
    if (after.session !== null) this.holders.set(`${id}#${after.attempt}`, after.session)
    if (after.ended_at === null) this.active.add(id)
    else this.active.delete(id)
    if (before?.parent !== after.parent) {
      if (before?.parent) this.childrenOf.get(before.parent)?.delete(id)
      if (after.parent) setOf(this.childrenOf, after.parent).add(id)
    }
    if (!before) {
      const list = this.series.get(after.series)
      if (list) list.push(id)
      else this.series.set(after.series, [id])
    }
  }

  /** Retention removed the run. */
  forget(id: string): void {
    this.runs.delete(id)
    this.active.delete(id)
    this.waits.delete(id)
    this.signals.delete(id)
    this.entries.delete(id)
  }

  #session(id: string, commit: Commit, trueNow: number, change: Change): void {
    const before = this.sessions.get(id)
    const row = this.#sessionById.get(id) as Omit<SessionRow, 'renewedAt'> | undefined
    if (!row) {
      this.sessions.delete(id)
      return
    }
    const extended = commit.writes.some(
      (touch) =>
        /^sessions\.(insert|renew|recount|retire)$/.test(touch.name) &&
        touch.rows.some((each) => each['id'] === id),
    )
    const after = { ...row, renewedAt: extended ? trueNow : (before?.renewedAt ?? trueNow) }
    this.sessions.set(id, after)
    change.sessions.push({ before, after })
  }

  #readLimits(): void {
    for (const row of this.#limitRows.all() as {
      key: string
      mode: string
      code_value: number | null
      operator_value: number | null
    }[])
      this.limits.set(row.key, { mode: row.mode, value: row.operator_value ?? row.code_value })
  }

  #readPauses(): void {
    this.pauses.clear()
    for (const row of this.#pauseRows.all() as {
      kind: string
      name: string
      until: number | null
    }[])
      this.pauses.set(`${row.kind}:${row.name}`, row.until)
  }

  #steps(touch: Touch, change: Change, plain: ReadonlySet<string>): void {
    if (touch.name === 'steps.copy') {
      const [from, to, before] = touch.params
      const copy = new Map<string, EntryRow>()
      for (const entry of this.entriesOf(String(from)).values())
        if (entry.n < Number(before)) copy.set(entry.key, { ...entry, run: String(to) })
      this.entries.set(String(to), copy)
      return
    }
    const guarded = touch.name === 'steps.before_end'
    for (const row of listed(touch)) {
      if (guarded && !plain.has(String(row['run']))) continue
      const entry: EntryRow = {
        run: String(row['run']),
        key: String(row['key']),
        n: Number(row['n']),
        kind: String(row['kind']),
        attempt: Number(row['attempt']),
        output: row['output'] as string | null,
        error: row['error'] as string | null,
      }
      change.entries.push(entry)
      const known = mapOf(this.entries, entry.run)
      if (known.has(entry.key)) change.repeated.push(entry)
      known.set(entry.key, entry)
    }
  }

  #waits(touch: Touch, change: Change): void {
    if (touch.name === 'waits.close') {
      for (const run of new Set(touch.rows.map((row) => String(row['run']))))
        for (const [key, before] of this.waitsOf(run))
          if (before.state !== 'taken' && before.state !== 'closed')
            this.#wait({ ...before, key, state: 'closed' }, change)
      return
    }
    for (const row of listed(touch))
      this.#wait(
        {
          run: String(row['run']),
          key: String(row['key']),
          kind: String(row['kind']),
          name: row['name'] as string | null,
          dueAt: row['due_at'] as number | null,
          state: String(row['state']),
          result: row['result'] as string | null,
          tries: Number(row['tries']),
        },
        change,
      )
  }

  #wait(after: WaitRow, change: Change): void {
    const all = mapOf(this.waits, after.run)
    change.waits.push({ before: all.get(after.key), after })
    all.set(after.key, after)
  }

  #signals(touch: Touch, change: Change): void {
    switch (touch.name) {
      case 'signals.insert': {
        if (touch.rows.length === 0) return
        const [run, id, seq, name, payload, , , takenBy] = touch.params
        const signal: SignalRow = {
          run: String(run),
          id: String(id),
          seq: Number(seq),
          name: String(name),
          payload: payload as string | null,
          takenBy: takenBy as string | null,
          read: false,
        }
        mapOf(this.signals, signal.run).set(signal.id, signal)
        change.sent.push(signal)
        return
      }
      case 'signals.take':
        for (const row of listed(touch)) {
          const signal = this.signals.get(String(row['run']))?.get(String(row['id']))
          if (!signal) continue
          const by = row['taken_by'] as string | null
          if (by !== null) change.taken.push({ signal: { ...signal }, by })
          signal.takenBy = by
        }
        return
      case 'signals.read':
      case 'signals.release':
        for (const row of listed(touch))
          for (const signal of this.signalsOf(String(row['run'])).values()) {
            if (signal.takenBy !== row['key'] || signal.read) continue
            if (touch.name === 'signals.read') {
              signal.read = true
              change.read.push(signal)
            } else {
              signal.takenBy = null
              change.released.push(signal)
            }
          }
        return
      case 'signals.inherit': {
        const [from, to] = touch.params
        for (const signal of this.signalsOf(String(from)).values()) {
          if (signal.read) continue
          this.signals.get(String(from))?.delete(signal.id)
          signal.run = String(to)
          signal.takenBy = null
          mapOf(this.signals, signal.run).set(signal.id, signal)
        }
        return
      }
      default:
    }
  }

  #approvals(touch: Touch, change: Change): void {
    if (touch.name === 'approvals.insert') {
      for (const row of listed(touch))
        this.#approval(
          {
            id: String(row['id']),
            run: String(row['run']),
            key: String(row['key']),
            deadline: Number(row['deadline']),
            state: 'open',
            by: null,
          },
          change,
        )
      return
    }
    const states = new Map(
      touch.name === 'approvals.decide' ? listed(touch).map((row) => [String(row['id']), row]) : [],
    )
    for (const row of touch.rows) {
      const id = String(row['id'])
      const before = this.approvals.get(id)
      if (!before) continue
      const decided = states.get(id)
      this.#approval(
        {
          ...before,
          state: decided ? String(decided['state']) : 'canceled',
          by: (decided?.['decided_by'] as string | null | undefined) ?? null,
        },
        change,
      )
    }
  }

  #approval(after: ApprovalRow, change: Change): void {
    change.approvals.push({ before: this.approvals.get(after.id), after })
    this.approvals.set(after.id, after)
  }
}

type Row = Readonly<Record<string, unknown>>

/** The items of a batch. */
export const listed = (touch: Touch): readonly Row[] => {
  const [first] = touch.params
  return typeof first === 'object' && first !== null ? (first.items as readonly Row[]) : []
}

const setOf = (map: Map<string, Set<string>>, key: string): Set<string> => {
  let set = map.get(key)
  if (!set) map.set(key, (set = new Set()))
  return set
}

const mapOf = <T>(map: Map<string, Map<string, T>>, key: string): Map<string, T> => {
  let inner = map.get(key)
  if (!inner) map.set(key, (inner = new Map()))
  return inner
}
