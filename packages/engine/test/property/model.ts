// What the store promises of a run, written a second time and as shortly as it can be said: the model that random sequences
// of commands are compared with. It knows no rows, no batches and no SQL.
export type Kind = 'signal' | 'time' | 'approval'
export type EndKind = 'complete' | 'fail' | 'retry' | 'suspend' | 'shutdown' | 'marker' | 'park'

interface ModelWait {
  readonly key: string
  readonly kind: Kind
  readonly dueAt: number | null
  state: 'open' | 'satisfied' | 'lapsed' | 'gone'
}

export interface ModelRun {
  readonly id: string
  readonly limited: boolean
  status: string
  waitOn: string | null
  readyAt: number | null
  attempt: number
  session: string | null
  entries: number
  pause: boolean
  /** Set back by a delay of its own attempts: facts do not make it due. */
  delayed: boolean
  losses: number
  handBacks: number
  waits: ModelWait[]
  signals: { readonly id: string; takenBy: string | null }[]
  readonly ended: Map<number, { session: string; end: string }>
}

const WAIT_ON: Record<Kind, string> = { signal: 'signal', time: 'time', approval: 'approval' }
const REPEATS: Record<string, readonly EndKind[]> = {
  completed: ['complete'],
  failed: ['fail', 'retry'],
  suspended: ['suspend', 'park'],
  handed_back: ['shutdown', 'marker'],
  canceled: ['complete', 'fail', 'retry', 'suspend', 'shutdown', 'marker', 'park'],
}
export const terminal = (run: ModelRun): boolean =>
  ['succeeded', 'failed', 'canceled'].includes(run.status)
export const held = (run: ModelRun): boolean =>
  run.status === 'running' || run.status === 'canceling'
/** A key's slot: while queued or held. */
export const holdsKey = (run: ModelRun): boolean =>
  run.limited && (run.status === 'queued' || held(run))
export const inLine = (run: ModelRun, now: number): boolean =>
  run.status === 'waiting' && run.waitOn === 'slot' && (run.readyAt ?? now) <= now

export const newRun = (id: string, limited: boolean): ModelRun => ({
  id,
  limited,
  status: 'queued',
  waitOn: null,
  readyAt: null,
  attempt: 0,
  session: null,
  entries: 0,
  pause: false,
  delayed: false,
  losses: 0,
  handBacks: 0,
  waits: [],
  signals: [],
  ended: new Map(),
})

const rest = (
  run: ModelRun,
  status: string,
  waitOn: string | null,
  readyAt: number | null,
): void => {
  run.status = status
  run.session = null
  run.waitOn = waitOn
  run.readyAt = readyAt
  if (['succeeded', 'failed', 'canceled'].includes(status))
    for (const wait of run.waits) wait.state = 'gone'
}
/** Due now: straight on without a limit, else in line, since a key's slot is free while its run rests. */
export const due = (run: ModelRun): void => {
  run.delayed = false
  if (run.limited) rest(run, 'waiting', 'slot', null)
  else rest(run, 'queued', null, null)
}
/** Pairs signals with waits and lapses what is due; whether anything came of it. */
export const settle = (run: ModelRun, now: number): boolean => {
  let some = false
  for (const wait of run.waits.filter(({ state }) => state === 'open')) {
    const signal = run.signals.find(({ takenBy }) => takenBy === null)
    if (wait.kind === 'signal' && signal) {
      signal.takenBy = wait.key
      wait.state = 'satisfied'
    } else if (wait.dueAt !== null && wait.dueAt <= now) wait.state = 'lapsed'
    else continue
    some = true
  }
  return some
}
/** A fact came: a waiting run is due where it stood at its waits. */
export const woken = (run: ModelRun, some: boolean): void => {
  if (some && run.status === 'waiting' && run.waitOn !== 'slot' && !run.delayed) due(run)
}
export const live = (run: ModelRun): ModelWait[] =>
  run.waits.filter(({ state }) => state !== 'gone')

const requeue = (run: ModelRun): void => rest(run, run.pause ? 'paused' : 'queued', null, null)
const later = (run: ModelRun, at: number): void => {
  rest(run, run.pause ? 'paused' : 'waiting', 'time', at)
  run.delayed = true
}
const stop = (run: ModelRun): void => {
  run.pause = true
  rest(run, 'paused', null, null)
}

/** An attempt's end; `false` when a suspend finds a satisfied wait and the attempt goes on. */
export const end = (run: ModelRun, kind: EndKind, now: number): boolean => {
  const by = { session: run.session ?? '', end: 'canceled' }
  if (kind === 'suspend') settle(run, now)
  const standing = live(run)
  const parks = kind === 'park' || (kind === 'suspend' && standing.length === 0)
  if (run.status === 'canceling') rest(run, 'canceled', null, null)
  else if (parks) stop(run)
  else if (kind === 'suspend') {
    if (!run.pause && standing.some(({ state }) => state !== 'open')) return false
    const instants = standing.flatMap(({ state, dueAt }) =>
      state === 'open' && dueAt !== null ? [dueAt] : [],
    )
    const on = standing[0] ? WAIT_ON[standing[0].kind] : null
    rest(
      run,
      run.pause ? 'paused' : 'waiting',
      on,
      instants.length > 0 ? Math.min(...instants) : null,
    )
  } else if (kind === 'complete') rest(run, 'succeeded', null, null)
  else if (kind === 'fail') rest(run, run.pause ? 'paused' : 'failed', null, null)
  else if (kind === 'retry') later(run, now + 500)
  else if (kind === 'shutdown') requeue(run)
  else {
    run.handBacks += 1
    if (run.handBacks >= 10) stop(run)
    else if (run.handBacks === 1) requeue(run)
    else later(run, now + 1_000 * 2 ** (run.handBacks - 2))
  }
  const names = {
    complete: 'completed',
    fail: 'failed',
    retry: 'failed',
    suspend: 'suspended',
    park: 'suspended',
    shutdown: 'handed_back',
    marker: 'handed_back',
  }
  run.ended.set(run.attempt, run.status === 'canceled' ? by : { ...by, end: names[kind] })
  return true
}
/** Whether a write by an attempt that does not hold the run is answered as a repeat. */
export const repeats = (
  run: ModelRun,
  attempt: number,
  session: string,
  kind: EndKind,
): boolean => {
  const was = run.ended.get(attempt)
  return was?.session === session && (REPEATS[was.end] ?? []).includes(kind)
}
export const lose = (run: ModelRun): void => {
  run.ended.set(run.attempt, { session: run.session ?? '', end: 'lost' })
  if (run.status === 'canceling') return rest(run, 'canceled', null, null)
  run.losses += 1
  if (run.losses >= 5) rest(run, 'failed', null, null)
  else requeue(run)
}
export const resume = (run: ModelRun, now: number): void => {
  Object.assign(run, { pause: false, losses: 0, handBacks: 0 })
  if (run.status !== 'paused') return
  const some = settle(run, now)
  const satisfied =
    some ||
    live(run).some(({ state }) => state !== 'open') ||
    (run.readyAt !== null && run.readyAt <= now)
  if (run.waitOn === 'slot' && run.readyAt !== null && run.readyAt > now) run.status = 'waiting'
  else if (run.waitOn === null || run.waitOn === 'slot' || satisfied) due(run)
  else {
    run.status = 'waiting'
    run.delayed = false
  }
}
