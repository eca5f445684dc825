// An executor's session: registered, renewed, told things, and dropped when the engine has ended it or when its lease can
// no longer be trusted.
import { codes } from '../../kernel/codes.ts'
import type { ErrorCode } from '../../kernel/codes.ts'
import { errorOf, LeaseholdError } from '../../kernel/errors.ts'
import { growingDelayMs } from '../../kernel/growing-delay.ts'
import { jittered } from '../../kernel/random.ts'
import { sleep } from '../../kernel/timers.ts'
import { shardOfId } from '../../model/shard.ts'
import type { RenewAnswer, RenewRequest, Told } from '../../model/work.ts'
import { heldDigest, PROTOCOL_VERSION } from '../../model/work.ts'
import { clearMarkers } from '../preparing/clean-up.ts'
import { close, closeLocally } from './closing.ts'
import type { Core, Session } from '../core.ts'
import { driversOf, heldBy, RETRY } from '../core.ts'
import type { Sent } from './renewals.ts'
import { elapsedSince, startRenewals } from './renewals.ts'
import { definitionsOf } from '../authoring/workflow.ts'

export const register = async (core: Core): Promise<Session> => {
  const { coordinator, options } = core
  const { port, ports } = options
  const { ids, log, time } = ports
  const id = options.session ?? ids.next('ses')
  // the lease runs from when the store answers, which is after this
  const sent: Sent = { wall: time.now(), mono: time.mono() }
  const answer = await port.register({
    protocol: PROTOCOL_VERSION,
    session: id,
    build: options.build ?? 'unknown',
    host: options.host ?? 'localhost',
    pid: options.pid ?? 0,
    queues: options.queues ?? [],
    labels: options.labels ?? [],
    capacity: coordinator.capacity(),
    definitions: definitionsOf(options.workflows),
  })
  if (!answer.ok) throw errorOf(answer)
  const made: Session = {
    id,
    answer,
    renewals: (options.renewals ?? startRenewals)({
      ports,
      session: id,
      renewMs: answer.renewMs,
      send: (request) => port.renew(request),
      say: () => renewal(core, made),
      heard: (heard, request, at) => {
        try {
          renewed(core, made, heard, request, at)
        } catch (error) {
          // an answer that cannot be read is no answer: the lease is not trusted for it
          log.warn('renewal.unreadable', { session: id, error })
        }
      },
    }),
    unlisten: port.listen(
      id,
      (told) => pass(core, told),
      (why) => {
        log.warn('session.lost', { session: id, message: why })
        void loseSession(core, made, why)
      },
    ),
    lastSent: sent,
    behind: new Map(),
    apart: new Set(),
    lastRenewalAt: null,
    claimNo: 0,
    received: 0,
    letGo: [],
    digestAt: sent.mono,
    wantsList: false,
    fenced: false,
    over: false,
  }
  return made
}

/** What the engine tells of a run goes to the attempt that it names, if that is here. */
const pass = (core: Core, { run, attempt, directive, note }: Told): void => {
  if (directive === 'clear') clearMarkers(core, run)
  else core.coordinator.holding(run, attempt)?.work?.driver.told(directive, note)
}

const renewal = (core: Core, of: Session): RenewRequest => {
  const now = core.options.ports.time.mono()
  const digest = now - of.digestAt >= of.answer.leaseMs
  if (digest) of.digestAt = now
  return {
    session: of.id,
    draining: core.state === 'draining',
    status: core.statusText(),
    letGo: of.letGo,
    ...(of.wantsList
      ? { held: { claim: of.received, runs: heldBy(core) } }
      : digest
        ? { held: { claim: of.received, digest: heldDigest(heldBy(core)) } }
        : {}),
  }
}

const renewed = (
  core: Core,
  of: Session,
  answer: RenewAnswer,
  request: RenewRequest,
  sent: Sent,
): void => {
  const { log, time, timers } = core.options.ports
  if (of.over || core.session !== of) return
  if (!answer.ok) {
    log.warn('session.lost', { session: of.id, message: answer.message })
    void loseSession(core, of, answer.message)
    return
  }
  const pending = new Set(answer.pending.map(({ run, attempt }) => `${run}#${attempt}`))
  const unreached = new Set(answer.unreached)
  for (const shard of of.behind.keys()) if (!unreached.has(shard)) of.behind.delete(shard)
  for (const shard of unreached) of.behind.set(shard, of.behind.get(shard) ?? of.lastSent)
  of.lastSent = sent
  of.lastRenewalAt = time.now()
  of.letGo = of.letGo.filter(
    (each) =>
      !request.letGo.includes(each) ||
      unreached.has(shardOfId(each.run)) ||
      pending.has(`${each.run}#${each.attempt}`),
  )
  of.wantsList = answer.wantsList
  if (answer.wantsList) of.renewals.soon()
  for (const told of answer.told) pass(core, told)
  const waiting = new Set(of.letGo.map(({ run }) => shardOfId(run)))
  for (const shard of of.apart)
    if (!unreached.has(shard) && !waiting.has(shard)) {
      of.apart.delete(shard)
      log.info('session.trusted_again', { session: of.id, shard })
    }
  if (of.fenced && of.letGo.length === 0) {
    of.fenced = false
    log.info('session.trusted_again', { session: of.id })
    core.wakePoll?.()
  } else if (of.fenced || [...of.apart].some((shard) => !unreached.has(shard)))
    // what was listed is applied after the answer: ask again when it may have been
    timers.after(RETRY.firstMs, () => of.renewals.soon())
}

/** The session was ended by the engine: what it held is somebody else's. Drop it all and register anew. */
export const loseSession = async (core: Core, of: Session, why: string): Promise<void> => {
  const { log, random, timers } = core.options.ports
  if (of.over) return
  closeLocally(of)
  for (const driver of driversOf(core)) driver.drop(`the session was ended: ${why}`)
  if (!isRunning(core)) return
  core.session = null
  if (core.options.session !== undefined)
    return core.stopForGood(
      'session.lost',
      new LeaseholdError('session_ended', `the session was ended: ${why}`, { session: of.id }),
    )
  for (let failures = 1; isRunning(core); failures++) {
    try {
      const made = await register(core)
      if (!isRunning(core)) return await close(core, made, [])
      core.session = made
      log.info('session.registered', { session: made.id, after: of.id })
      core.wakePoll?.()
      return
    } catch (error) {
      if (isFinalNo(error)) return core.stopForGood('executor.refused', error)
      log.warn('session.not_registered', { error })
      await sleep(timers, jittered(random, growingDelayMs(failures, RETRY)), core.stopping.signal)
    }
  }
}

const isRunning = (core: Core): boolean => core.state === 'running'

/**
 * Stops trusting a lease before anyone else can be given its runs (RUN-08): lets go of everything, or of what is on the shards that
 * renewals do not reach. A main loop that was busy for long finds its timers due before the messages of the thread that has renewed
 * meanwhile: what is overdue is looked at again (`again`) a turn later.
 */
export const watchLease = (core: Core, again = false): void => {
  const { options, session: of } = core
  const { time, timers } = options.ports
  if (of && !of.over && !of.answer.embedded && !of.fenced) {
    const overdue = (sent: Sent): boolean => elapsedSince(sent, time) >= 0.8 * of.answer.leaseMs
    const all = overdue(of.lastSent)
    const shards = [...of.behind].flatMap(([shard, sent]) =>
      !of.apart.has(shard) && overdue(sent) ? [shard] : [],
    )
    if ((all || shards.length > 0) && !again) {
      core.cancelFence = timers.after(0, () => watchLease(core, true))
      return
    }
    if (all) {
      of.fenced = true
      letGoOf(core, of, null)
    } else
      for (const shard of shards) {
        of.apart.add(shard)
        letGoOf(core, of, shard)
      }
  }
  if (core.state === 'running' || core.state === 'draining')
    core.cancelFence = timers.after(Math.max(50, (of?.answer.leaseMs ?? 30_000) / 20), () =>
      watchLease(core),
    )
}

/** Drops what is held of this shard, or of all, and lists it to be handed back. */
const letGoOf = (core: Core, of: Session, shard: number | null): void => {
  const jobs = [...core.coordinator.jobs].filter(
    ({ left, run }) => !left && (shard === null || shardOfId(run) === shard),
  )
  core.options.ports.log.warn('session.fenced', {
    session: of.id,
    leaseMs: of.answer.leaseMs,
    held: jobs.length,
    ...(shard === null ? {} : { shard }),
  })
  for (const { run, attempt, work } of jobs) {
    of.letGo.push({ run, attempt, reason: 'lease_lost' })
    work?.driver.stop('lease_lost', 'the lease could not be renewed in time')
    work?.driver.drop('lease_lost')
  }
  of.renewals.soon()
}

/** Refusals of a registration that another try may not meet. */
const PASSING: readonly ErrorCode[] = ['draining', 'session_ended']

/** Whether a server has said no in a way that no repeat of the registration changes. */
const isFinalNo = (error: unknown): boolean =>
  error instanceof LeaseholdError &&
  codes[error.code].kind === 'refusal' &&
  !PASSING.includes(error.code)
