// The engine as executors see it, without a wire between: the direct way in. The HTTP routes call the same functions.
import { Fault, LeaseholdError, StaleAttemptError } from '../kernel/errors.ts'
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { mustFit } from '../model/start.ts'
import type {
  AttemptWrite,
  ExecutorPort,
  RegisterAnswer,
  RegisterRequest,
  RenewAnswer,
  RenewRequest,
  WriteAnswer,
} from '../model/work.ts'
import { heldDigest, PROTOCOL_VERSION } from '../model/work.ts'
import { attemptWrite } from '../protocol/executor-shapes.ts'
import { ask } from '../store/sql.ts'
import { heldHere, stepsAfter } from '../store/tables/journal.ts'
import { anyQueued, heldBy } from '../store/tables/runs.ts'
import { entryOf } from '../transitions/claim.ts'
import { closeSession } from '../transitions/end-session.ts'
import { endAttempts } from '../transitions/end-attempts.ts'
import { unpark } from '../transitions/park.ts'
import { register } from '../transitions/register.ts'
import { makeClaiming } from './claims/claiming.ts'
import type { Engine } from './engine.ts'
import { faultsOf, invalid } from './faults.ts'
import { keepLines } from './log-keeping.ts'
import type { Offers } from './claims/offers.ts'
import { makeOffers } from './claims/offers.ts'
import { renewOn } from './renewer.ts'
import { makeServed } from './claims/served.ts'
import type { Serves } from '../model/lane.ts'
import { isAmong, parseLane, serves } from '../model/lane.ts'
import { servedLanes } from '../queries/lines.ts'

const JOURNAL_PAGE = 2_000

export interface PortOptions {
  /** Names the process that owns the store; sessions of embedded executors live and die with it. */
  readonly process: string
  readonly embedded: boolean
}

/** The port as this process has it. */
export interface DirectPort extends ExecutorPort {
  /** What follows from a renewal of this port's session that was sent past it; its answer as the port would give it. */
  renewed(request: RenewRequest, answer: RenewAnswer): RenewAnswer
}

/** What a server speaks to: beside the port, what it offers to sessions that wait for it. */
export interface OfferingPort extends DirectPort {
  readonly offers: Offers
}

export const executorPort = (engine: Engine, options: PortOptions): OfferingPort => {
  const { settings, hub, lanes, ports } = engine
  const served = makeServed(engine)
  const claiming = makeClaiming(engine, served)
  /** Sessions whose digest differed: their next renewal is to bring the list. A hint, lost with this process. */
  const differs = new Set<string>()

  const forget = (session: string): void => {
    served.forget(session)
    differs.delete(session)
  }

  /** What a renewal lists, after its answer: hands back what was let go, and compares what is held. */
  const applyRenewal = async (
    request: RenewRequest,
    pending: readonly { readonly run: string; readonly attempt: number }[],
  ): Promise<void> => {
    const still = new Set(pending.map(({ run, attempt }) => `${run}#${attempt}`))
    const letGo = request.letGo.filter(({ run, attempt }) => still.has(`${run}#${attempt}`))
    if (letGo.length > 0)
      await engine.act((tx, context) =>
        endAttempts(
          tx,
          letGo.map(({ run, attempt, reason }) => ({
            run,
            attempt,
            session: request.session,
            end: () => ({ kind: 'hand_back' as const, reason }),
            event: null,
            note: `listed in a renewal: ${reason}`,
          })),
          context,
        ),
      )
    if (!request.held) return
    const { claim: upTo } = request.held
    const held = await engine.read(function* () {
      return (yield* ask(heldBy(request.session, upTo)))[0]
    })
    const here = held.map((row) => ({ run: row.id, attempt: row.attempt }))
    if ('digest' in request.held) {
      if (request.held.digest !== heldDigest(here)) differs.add(request.session)
      return
    }
    const theirs = new Set(request.held.runs.map(({ run, attempt }) => `${run}#${attempt}`))
    const unknown = here.filter(({ run, attempt }) => !theirs.has(`${run}#${attempt}`))
    if (unknown.length > 0)
      await engine.act((tx, context) =>
        endAttempts(
          tx,
          unknown.map(({ run, attempt }) => ({
            run,
            attempt,
            session: request.session,
            end: () => ({ kind: 'hand_back' as const, reason: 'unknown_here' }),
            event: { kind: 'attempt.unknown_here', actor: request.session, data: { attempt } },
            note: 'its session does not know it',
          })),
          context,
        ),
      )
  }

  const renewed = (request: RenewRequest, answer: RenewAnswer): RenewAnswer => {
    if (!answer.ok) {
      forget(request.session)
      return answer
    }
    if (request.held && 'runs' in request.held) differs.delete(request.session)
    if (answer.pending.length > 0 || request.held)
      engine.later('renewal.not_applied', () => applyRenewal(request, answer.pending))
    return { ...answer, wantsList: differs.has(request.session) }
  }

  /** Whether a run of these workflows waits for a slot of this session. */
  const othersWait = async (session: string, versions: readonly string[]): Promise<boolean> => {
    const what = await served.of(session)
    if (!what) return false
    const mine = lanes.served(session, what).filter((lane) => isAmong(versions, lane))
    const [found] = await engine.read(function* () {
      return yield* ask(anyQueued(mine))
    })
    return found.length > 0
  }

  /**
   * A write that the store cannot take is looked at as one from outside is: what its author gave in a shape that no type
   * allows is refused by name, since sending it again would not mend it.
   */
  const storing = async (session: string, item: AttemptWrite): Promise<WriteAnswer> => {
    try {
      return await engine.write(session, item)
    } catch (error) {
      if (error instanceof LeaseholdError) throw error
      const read = attemptWrite.safeParse(item)
      if (read.success) throw error
      return invalid(faultsOf(read.error), 'write')
    }
  }

  return {
    async register(request): Promise<RegisterAnswer> {
      const incompatible = incompatibleProtocol(request)
      if (incompatible) return incompatible
      for (const definition of request.definitions) mustFit(definition)
      const what: Serves = {
        queues: request.queues,
        labels: request.labels,
        workflows: request.definitions.map(({ workflow, version, queue }) => ({
          workflow,
          version,
          queue,
        })),
      }
      const answer = await engine.store.run((tx) =>
        register(
          tx,
          {
            id: request.session,
            embedded: options.embedded ? 1 : 0,
            process: options.embedded ? options.process : `${request.host}:${request.pid}`,
            host: request.host,
            pid: request.pid,
            build: request.build,
            queues: JSON.stringify(what.queues),
            labels: JSON.stringify(what.labels),
            workflows: JSON.stringify(what.workflows),
            capacity: request.capacity,
            lease_ms: settings.leaseMs,
          },
          request.definitions,
          request.queues,
        ),
      )
      if (!answer.ok) return answer
      for (const { workflow, version, changed } of answer.redefined)
        ports.log.warn('workflow.redefined', {
          workflow,
          version,
          changed,
          session: request.session,
          sentence: `${workflow} version ${version} was registered with other ${Object.keys(changed).join(', ')} than it had; from now on this one holds, also for executors that announced the earlier one. Raise the version to keep both`,
        })
      await engine.reload()
      served.put(request.session, what)
      await unparkServed(engine, what)
      return {
        ok: true,
        session: request.session,
        now: answer.session.created_at,
        generation: answer.generation,
        leaseMs: settings.leaseMs,
        renewMs: settings.renewMs,
        embedded: options.embedded,
        limits: {
          payloadMaxBytes: settings.payloadMaxBytes,
          entriesMax: settings.entriesMax,
          journalMaxBytes: settings.journalMaxBytes,
          limitGraceMs: settings.limitGraceMs,
          childrenMax: settings.childrenMax,
        },
      }
    },

    claim: (request, signal) => claiming.claim(request, signal),
    offers: makeOffers(engine, served, claiming),

    async journal(session, run, after) {
      const [held, rows] = await engine.read(function* () {
        return yield* ask(heldHere(run, session), stepsAfter(run, after, JOURNAL_PAGE))
      })
      if (held.length === 0)
        throw new StaleAttemptError(
          `${session} does not hold ${run}, so its journal is not for it. Drop this attempt`,
          { run, session },
        )
      return rows.map(entryOf)
    },

    async write(session, item): Promise<WriteAnswer> {
      if (item.end?.kind !== 'hand_back' || item.end.ifWaiting === undefined)
        return storing(session, item)
      if (await othersWait(session, item.end.ifWaiting)) return storing(session, item)
      const { end: _nobodyWaits, ...rest } = item
      return storing(session, rest)
    },

    renew: async (request) =>
      renewed(request, await engine.timed('renew', () => renewOn(engine.store, request))),
    renewed,

    async close(request) {
      const { handedBack } = await engine.act((tx, context) => closeSession(tx, request, context))
      const { logs = [] } = request
      if (logs.length > 0)
        engine.later('logs.not_kept', async () => {
          await keepLines(engine, request.session, logs)
        })
      forget(request.session)
      return { ok: true, handedBack }
    },

    logs: (session, parts) => keepLines(engine, session, parts),

    listen: (session, tell) => hub.onTold(session, tell),
  }
}

/** Puts back in line what waited for such an executor. The session stands: what a fault leaves parked the sweep finds. */
const unparkServed = async (engine: Engine, what: Serves): Promise<void> => {
  try {
    for (const { lane, parked } of await engine.read(servedLanes)) {
      if (!parked || !serves(what, parseLane(lane))) continue
      for (let count = 500; count === 500;)
        count = (await engine.act((tx) => unpark(tx, lane, 500))).count
    }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    engine.ports.log.warn('lanes.not_unparked', { error })
  }
}

/** Null where this server can talk to such an executor. */
export const incompatibleProtocol = ({
  protocol,
  build,
}: Pick<RegisterRequest, 'protocol' | 'build'>): Refusal | null =>
  protocol === PROTOCOL_VERSION
    ? null
    : refuse(
        'incompatible_protocol',
        `the executor (build ${build}) speaks protocol ${protocol}, this server ${PROTOCOL_VERSION}; upgrade the ${protocol < PROTOCOL_VERSION ? 'executor' : 'server'}`,
        { executor: protocol, server: PROTOCOL_VERSION },
      )
