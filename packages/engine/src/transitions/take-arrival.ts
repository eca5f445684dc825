// Takes a delivery: claims it by a row of its own, and starts its run or sends its signal, all in one transaction. So of all
// who bring the same delivery one acts, and neither the row nor the run is there without the other.
import { digestOf } from '../kernel/digest.ts'
import { Defect } from '../kernel/errors.ts'
import { encode } from '../kernel/json.ts'
import type { Outcome, Refusal } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { merge, nothing } from '../model/follow.ts'
import type { PlanContext } from '../model/start.ts'
import type { Action, ArrivalOutcome } from '../model/trigger.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, within } from '../store/sql.ts'
import { knownRuns } from '../store/tables/runs.ts'
import { claimArrival, settleArrival } from '../store/tables/triggers.ts'
import { signal } from './signal.ts'
import type { StartAnswer, StartItem } from './start.ts'
import { knownStarts, start } from './start.ts'

export interface Arrival {
  readonly hook: string
  readonly delivery: string
  readonly event: string | null
  /** The id of the run, if one is started. */
  readonly run: string
}

export interface Taken {
  readonly outcome: ArrivalOutcome
  readonly run: string | null
  readonly note: string | null
  /** It had been taken before, and this is what became of it then. */
  readonly repeated: boolean
}

type Became = Outcome<{
  readonly outcome: ArrivalOutcome
  readonly run: string | null
  readonly note: string | null
}>

/** `action` is what the delivery comes to, or why it comes to nothing; what is refused is kept, and may be taken anew. */
export function* takeArrival(
  tx: Tx,
  arrival: Arrival,
  action: Action | Refusal,
  context: PlanContext,
): Steps<{ answer: Outcome<Taken>; follow: Follow }> {
  const follow = nothing()
  // a second copy waits for the first one's commit here, and finds what became of it
  const [[row]] = yield* ask(claimArrival(arrival.hook, arrival.delivery, arrival.event))
  if (row && row.outcome !== 'refused') {
    const { outcome, run, note } = row
    return { answer: { ok: true, outcome, run, note, repeated: true }, follow }
  }
  const became: Became = 'ok' in action ? action : yield* act(tx, arrival, action, context, follow)
  const { outcome, run, note } = became.ok
    ? became
    : { outcome: 'refused' as const, run: null, note: became.message }
  yield* ask(settleArrival(arrival, outcome, run, note))
  return {
    answer: became.ok ? { ok: true, outcome, run, note, repeated: false } : became,
    follow,
  }
}

function* act(
  tx: Tx,
  arrival: Arrival,
  action: Action,
  context: PlanContext,
  follow: Follow,
): Steps<Became> {
  const there = action.signal ? yield* runOfKey(action) : null
  if (action.signal && there !== null)
    return yield* send(tx, arrival, action.signal, there, context, follow)
  if (!action.start)
    return {
      ok: true,
      outcome: 'ignored',
      run: null,
      note: `no run of ${action.workflow} has the key ${action.key}`,
    }
  const started = yield* startRun(tx, arrival, action, context, follow)
  // it was started meanwhile by another delivery of the key
  return started.ok && started.outcome === 'known' && action.signal && started.run !== null
    ? yield* send(tx, arrival, action.signal, started.run, context, follow)
    : started
}

function* runOfKey({ owner, workflow, key }: Action): Steps<string | null> {
  if (key === null) return null
  const [[row]] = yield* ask(
    knownRuns([{ id: '', command: null, owner, workflow, key, parent: null, parent_key: null }]),
  )
  return row?.id ?? null
}

function* send(
  tx: Tx,
  { hook, delivery }: Arrival,
  { name, payload }: NonNullable<Action['signal']>,
  run: string,
  { settings }: PlanContext,
  follow: Follow,
): Steps<Became> {
  const command = {
    run,
    id: `hook:${digestOf(Buffer.from(`${hook}\n${delivery}`))}`,
    name,
    payload: encode(payload),
    by: `trigger:${hook}`,
  }
  const { answer, follow: after } = yield* within(signal(tx, command, settings))
  merge(follow, after)
  if (answer.ok) return { ok: true, outcome: 'signaled', run: answer.run, note: null }
  // an end is final, so that nothing is gained by bringing it again
  return answer.code === 'already_ended'
    ? { ok: true, outcome: 'ignored', run, note: answer.message }
    : answer
}

function* startRun(
  tx: Tx,
  { hook, run }: Arrival,
  { workflow, key, owner, start: rule }: Action,
  context: PlanContext,
  follow: Follow,
): Steps<Became> {
  const item: StartItem = {
    command: {
      id: run,
      workflow,
      input: encode(rule?.input),
      key,
      owner,
      queue: rule?.queue ?? null,
      labels: rule?.labels ?? [],
      priority: rule?.priority ?? 0,
    },
    actor: `trigger:${hook}`,
  }
  const { answers, follow: after } = yield* within(start(tx, [item], context, new Set()))
  merge(follow, after)
  const [first] = answers
  const answer: StartAnswer | undefined =
    first === 'known' ? (yield* within(knownStarts(tx, [item], context)))[0] : first
  if (answer === undefined) throw new Defect('a start has no answer')
  if (!answer.ok && answer.code !== 'key_reused') return answer
  if (answer.ok && answer.started)
    return { ok: true, outcome: 'started', run: answer.id, note: null }
  const known = answer.ok ? answer.id : String(answer.detail['run'])
  return { ok: true, outcome: 'known', run: known, note: `the key ${key} is that of ${known}` }
}
