// The engine as executors see it, without a wire between: the direct way in. The HTTP routes call the same functions.
import { Fault, LeaseholdError, StaleAttemptError } from '../kernel/errors.ts'
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { mustFit } from '../model/start.ts'
import type {
  AttemptWrite,
  ClaimAnswer,
  ClaimRequest,
  ExecutorPort,
  RegisterAnswer,
  RenewAnswer,
  RenewRequest,
  WriteAnswer,
} from '../model/work.ts'
import { heldDigest, PROTOCOL_VERSION } from '../model/work.ts'
import { attemptWrite } from '../protocol/executor-shapes.ts'
import { ask } from '../store/sql.ts'
import { heldHere, stepsAfter } from '../store/tables/journal.ts'
import { anyQueued, heldBy } from '../store/tables/runs.ts'
import { liveSessions } from '../store/tables/sessions.ts'
import type { Claimed } from '../transitions/claim.ts'
import { claim, entryOf } from '../transitions/claim.ts'
import { closeSession } from '../transitions/end-session.ts'
import { endAttempts } from '../transitions/end-attempts.ts'
import { unpark } from '../transitions/park.ts'
import { register } from '../transitions/register.ts'
import type { Engine } from './engine.ts'
import { faultsOf, invalid } from './faults.ts'
import type { LanePlace } from './lanes.ts'
import { renewOn } from './renewer.ts'
import type { Serves } from '../queries/lines.ts'
import { parseLane, servedLanes, serves, servesOf } from '../queries/lines.ts'

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

export const executorPort = (engine: Engine, options: PortOptions): DirectPort => {
  const { settings, hub, lanes, ports } = engine
  const known = new Map<string, Serves>()
  /** Sessions whose digest differed: their next renewal is to bring the list. A hint, lost with this process. */
  const differs = new Set<string>()

  const servesFor = async (session: string): Promise<Serves | undefined> => {
    const kept = known.get(session)
    if (kept) return kept
    const all = await engine.read(function* () {
      return (yield* ask(liveSessions()))[0]
    })
    for (const row of all) known.set(row.id, servesOf(row))
    return known.get(session)
  }

  const forget = (session: string): void => {
    known.delete(session)
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
  const othersWait = async (session: string, workflows: readonly string[]): Promise<boolean> => {
    const what = await servesFor(session)
    if (!what) return false
    const mine = lanes
      .served(session, what)
      .filter((lane) => workflows.includes(parseLane(lane).workflow))
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
      if (request.protocol !== PROTOCOL_VERSION)
        return refuse(
          'incompatible_protocol',
          `the executor (build ${request.build}) speaks protocol ${request.protocol}, this server ${PROTOCOL_VERSION}; upgrade the ${request.protocol < PROTOCOL_VERSION ? 'executor' : 'server'}`,
          { executor: request.protocol, server: PROTOCOL_VERSION },
        )
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
      known.set(request.session, what)
      await unparkServed(engine, what)
      return {
        ok: true,
        session: request.session,
        now: answer.session.created_at,
        generation: engine.generation,
        leaseMs: settings.leaseMs,
        renewMs: settings.renewMs,
        embedded: options.embedded,
        limits: {
          payloadMax: settings.payloadMax,
          entriesMax: settings.entriesMax,
          journalMax: settings.journalMax,
          limitGraceMs: settings.limitGraceMs,
          childrenMax: settings.childrenMax,
        },
      }
    },

    async claim(request, signal): Promise<ClaimAnswer> {
      const what = await servesFor(request.session)
      if (!what)
        return refuse(
          'session_ended',
          `there is no live session ${request.session}; register anew`,
          { session: request.session },
        )
      const asked = await laneWithWork(engine, request, what, signal)
      const serves = lanes.served(request.session, what)
      const open = request.only
        ? serves.filter((lane) => request.only?.includes(parseLane(lane).workflow))
        : serves
      let answer: Claimed | Refusal
      try {
        answer = await engine.store.run((tx) =>
          claim(tx, { ...request, serves, open, lanes: asked }, settings),
        )
      } catch (error) {
        passOn(engine, asked)
        throw error
      }
      if (!answer.ok) {
        passOn(engine, asked)
        if (answer.code === 'session_ended') forget(request.session)
        return answer
      }
      engine.follow(answer.follow)
      if (!answer.repeated)
        lanes.found(
          { asked, session: request.session, except: request.except, most: request.most },
          { taken: answer.taken, count: answer.runs.length, withheld: answer.withheld },
        )
      passOn(engine, asked)
      for (const run of answer.runs) hub.changed(run.run)
      return {
        ok: true,
        claim: request.claim,
        runs: answer.runs,
        now: ports.time.now(),
        leaseUntil: answer.leaseUntil,
      }
    },

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

    renew: async (request) => renewed(request, await renewOn(engine.store, request)),
    renewed,

    async close(request) {
      const { handedBack } = await engine.act((tx, context) => closeSession(tx, request, context))
      forget(request.session)
      return { ok: true, handedBack }
    },

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

/** How many of those who wait are let look into a lane at a time, beside those who come by themselves. */
const AT_ONCE = 4

/** What a claim has left in a lane, or did not come to look for, is for others who wait. */
const passOn = ({ lanes, hub }: Engine, asked: readonly LanePlace[]): void => {
  lanes.looked(asked)
  for (const { lane } of asked)
    while (lanes.mayHold(lane) && lanes.looking(lane) < AT_ONCE) if (!hub.lane(lane)) break
}

/** Waits until a lane that the session serves may hold something, or the time is over. */
const laneWithWork = (
  engine: Engine,
  request: ClaimRequest,
  what: Serves,
  signal: AbortSignal | undefined,
): Promise<LanePlace[]> => {
  const look = (): LanePlace[] =>
    engine.lanes
      .look(request.session, what, request.except)
      .filter(({ lane }) => !request.only || request.only.includes(parseLane(lane).workflow))
  const takeUp = (places: LanePlace[]): LanePlace[] => {
    engine.lanes.looks(places)
    return places
  }
  const found = look()
  if (found.length > 0 || request.waitMs <= 0 || signal?.aborted === true)
    return Promise.resolve(takeUp(found))
  return new Promise((resolve) => {
    const done = (lanes: LanePlace[]): void => {
      cancel()
      stop()
      signal?.removeEventListener('abort', onAbort)
      resolve(takeUp(lanes))
    }
    const onAbort = (): void => done([])
    const stop = engine.hub.onLane((woken) => {
      // those who look now pass on what they leave
      if (engine.lanes.looking(woken) >= AT_ONCE) return true
      const now = look()
      const mine = now.some(({ lane }) => lane === woken)
      if (mine) done(now)
      return mine
    })
    const cancel = engine.ports.timers.after(request.waitMs, () => done(look()))
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
