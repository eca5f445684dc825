// Judges a history that is over against the rows that are left of it. Pure: what breaks is a list, each with the run that
// shows it. Order within a run is told by its `rev`, which every write raises, and never by clocks.
import { isDeepStrictEqual } from 'node:util'
import type { History } from './history.ts'
import { endOf, LIMITS, outputOf, signalTo } from './load.ts'
import type { Attempt, Rows, Run } from './rows.ts'

export interface Violation {
  readonly rule: string
  readonly run: string | null
  readonly what: string
}

type Found = Omit<Violation, 'rule'>
type Rule = (history: History, rows: Rows) => Found[]

const each = <T>(items: Iterable<T>, judge: (item: T) => Found | Found[] | null): Found[] =>
  [...items].flatMap((item) => judge(item) ?? [])

const found = (run: string | null, what: string): Found => ({ run, what })
const shown = (value: unknown): string => JSON.stringify(value) ?? 'nothing'

/** What was acknowledged is there. */
const kept: Rule = (history, rows) => [
  ...each(history.started, (run) =>
    rows.runs.has(run) ? null : found(run, 'its start was acknowledged, and it is not there'),
  ),
  ...each(history.rolledBack, (run) =>
    rows.runs.has(run) ? found(run, 'its start was rolled back, and it is there') : null,
  ),
  ...each(history.keys, ([key, runs]) =>
    // a run that is continued is named by the newest of its series
    new Set([...runs].map((run) => rows.runs.get(run)?.series ?? run)).size > 1
      ? found(null, `the key ${key} names ${[...runs].join(' and ')}`)
      : null,
  ),
  ...signalsKept(history, rows),
  ...each(history.canceled, (run) => {
    const status = rows.runs.get(run)?.status
    return status === 'canceled'
      ? null
      : found(run, `its cancel was acknowledged, and it is ${status}`)
  }),
  ...approvalsKept(history, rows),
]

const signalsKept: Rule = (history, rows) => {
  const there = new Set(rows.signals.map(({ run, id }) => `${run} ${id}`))
  return each(history.signaled, ({ run, id }) =>
    there.has(`${run} ${id}`)
      ? null
      : found(run, `its signal ${id} was acknowledged, and is not there`),
  )
}

const approvalsKept: Rule = (history, rows) => {
  const states = new Map(rows.approvals.map((approval) => [approval.id, approval]))
  return each(history.approved, (id) => {
    const approval = states.get(id)
    return approval?.state === 'approved'
      ? null
      : found(approval?.run ?? null, `${id} was decided, and is ${approval?.state ?? 'not there'}`)
  })
}

/** Every run ends, once, as its workflow says, and with the result that its journal makes. */
const ended: Rule = (history, rows) =>
  each(rows.runs.values(), (run) => {
    if (run.endedAt === null)
      return found(run.id, `it has not ended: ${run.status}, ${run.note ?? run.reason ?? ''}`)
    const completed = rows.attemptsOf(run.id).filter(({ end }) => end === 'completed').length
    if (completed !== (run.status === 'succeeded' ? 1 : 0))
      return found(run.id, `it is ${run.status}, and ${completed} attempts completed it`)
    if (run.status === 'canceled' && wasCanceled(run, history, rows)) return null
    const expected = endOf(run.workflow)
    if (run.status !== expected)
      return found(run.id, `it is ${run.status} (${run.note ?? run.reason}) and not ${expected}`)
    if (run.status !== 'succeeded') return null
    const output = outputOf(run, rows)
    return isDeepStrictEqual(run.output, output)
      ? null
      : found(run.id, `its result is ${shown(run.output)} and not ${shown(output)}`)
  })

const wasCanceled = (run: Run, history: History, rows: Rows): boolean => {
  const parent = run.parent === null ? undefined : rows.runs.get(run.parent)
  return history.cancelAsked.has(run.id) || (parent !== undefined && parent.status !== 'succeeded')
}

/** What a client was told of an end is what stands there. */
const told: Rule = (history, rows) =>
  each(history.told, ({ run, status, output }) => {
    const row = rows.runs.get(run)
    return row?.status === status && isDeepStrictEqual(row.output, output)
      ? null
      : found(run, `a client was told ${status} with ${shown(output)}, and it is ${row?.status} with ${shown(row?.output)}`) // prettier-ignore
  })

/** A recorded result is what the body returned, under the very attempt that is named beside it; and it is recorded once. */
const bodies: Rule = (history, rows) => {
  const did = new Map(history.did.map((each) => [each.value, each]))
  const seen = new Set<unknown>()
  return each(rows.entries, (entry) => {
    const { run, key, attempt, output } = entry
    if (entry.kind !== 'step' || entry.failed || typeof output !== 'string') return null
    if (seen.has(output)) return found(run, `the effect ${output} counts twice, last as ${key}`)
    seen.add(output)
    const body = did.get(output)
    return body && body.run === run && body.attempt === attempt
      ? null
      : found(run, `${key} of attempt ${attempt} has the result ${output}, which its body never returned: ${shown(body)}`) // prettier-ignore
  })
}

/** An entry stands between the end of the attempt before its own and the end of its own: its attempt held the run. */
const fenced: Rule = (_history, rows) => {
  const revs = new Map(rows.attempts.map(({ run, attempt, rev }) => [`${run} ${attempt}`, rev]))
  return each(rows.entries, ({ run, key, attempt, rev }) => {
    const before = revs.get(`${run} ${attempt - 1}`) ?? 0
    const own = revs.get(`${run} ${attempt}`)
    if (own === undefined)
      return found(run, `${key} was recorded by attempt ${attempt}, which it has not had`)
    return rev > before && rev <= own
      ? null
      : found(run, `${key} was recorded by attempt ${attempt} at rev ${rev}, and that attempt held it from rev ${before} to ${own}`) // prettier-ignore
  })
}

/** The attempts of a run are numbered without a gap, and each ended before the next began. */
const numbered: Rule = (_history, rows) =>
  each(rows.runs.values(), (run) => {
    const attempts = rows.attemptsOf(run.id)
    const gap = attempts.findIndex(({ attempt }, i) => attempt !== i + 1)
    if (gap !== -1) return found(run.id, `its attempt ${gap + 1} is missing`)
    const back = attempts.findIndex(({ rev }, i) => i > 0 && rev <= (attempts[i - 1]?.rev ?? 0))
    return back === -1 ? null : found(run.id, `its attempt ${back + 1} ended before the one before`)
  })

/** How much a clock that was read at the beginning of a transaction may be older than what the transaction saw, in ms. */
const SLACK_MS = 250

/** At no instant do recorded attempts hold more of a limit than it lets in. */
const limited: Rule = (_history, rows) => {
  const held = new Map<string, { run: string; from: number; to: number }[]>()
  const hold = (key: string, run: string, from: number, to: number): void =>
    void (held.get(key)?.push({ run, from, to }) ?? held.set(key, [{ run, from, to }]))
  for (const run of rows.runs.values()) {
    const attempts = rows.attemptsOf(run.id)
    // a run lets go of all that it has while it waits for a child, or in line for a limit that it needs to be driven
    const whole = run.workflow !== 'family' && run.limits.every((key) => limitOf(key)?.whole)
    for (const key of run.limits)
      if (whole) hold(key, run.id, attempts[0]?.leasedAt ?? Infinity, wholeEnd(run, attempts))
      else for (const { leasedAt, endedAt } of attempts) hold(key, run.id, leasedAt, endedAt)
  }
  return [...held].flatMap(([key, spans]) => tooMany(key, spans) ?? [])
}

export const limitOf = (key: string): (typeof LIMITS)[number] | undefined =>
  LIMITS.find(({ prefix }) => key.startsWith(prefix))

/** A run that is being canceled has let go of what it held for the whole of its life. */
const wholeEnd = ({ status, endedAt }: Run, attempts: readonly Attempt[]): number =>
  status === 'canceled' ? (attempts[0]?.leasedAt ?? 0) : (endedAt ?? Infinity)

const tooMany = (
  key: string,
  spans: readonly { readonly run: string; readonly from: number; readonly to: number }[],
): Found | null => {
  const most = limitOf(key)?.value ?? Infinity
  const sorted = spans.toSorted((a, b) => a.from - b.from)
  for (const span of sorted) {
    const at = span.from + SLACK_MS
    const holders = sorted.filter(({ from, to }) => from <= span.from && to > at)
    if (holders.length > most)
      return found(span.run, `${key} lets in ${most}, and at ${span.from} it was held by ${holders.map(({ run }) => run).join(', ')}`) // prettier-ignore
  }
  return null
}

/** After the end nothing is held, open, ordered or alive. */
const nothingLeft: Rule = (_history, rows) => [
  ...each(rows.runs.values(), ({ id, session }) =>
    session === null ? null : found(id, `it is held by ${session}`),
  ),
  ...each(rows.openWaits, ({ run, key }) =>
    found(run, `its wait ${key} is open, and it has ended`),
  ),
  ...each(rows.approvals, ({ id, run, state }) =>
    state === 'open' ? found(run, `its approval ${id} is open`) : null,
  ),
  ...each(rows.orders, ({ id, kind, run }) => found(run, `the order ${id} (${kind}) is left`)),
  ...each(rows.sessions, ({ id, state }) => found(null, `the session ${id} is ${state}`)),
]

/** A signal is taken once, and what was waited for is what was sent. */
const signalsTaken: Rule = (_history, rows) =>
  each(rows.entries, ({ run, kind, key, output }) => {
    if (kind !== 'signal' || typeof output !== 'string') return null
    const { payload } = signalTo(run)
    return output === payload ? null : found(run, `${key} took ${output} and not ${payload}`)
  })

export const rules: Readonly<Record<string, Rule>> = {
  kept,
  ended,
  told,
  bodies,
  fenced,
  numbered,
  limited,
  'nothing left': nothingLeft,
  signals: signalsTaken,
}

export const check = (history: History, rows: Rows): Violation[] =>
  Object.entries(rules).flatMap(([rule, judge]) =>
    judge(history, rows).map((violation) => ({ rule, ...violation })),
  )
