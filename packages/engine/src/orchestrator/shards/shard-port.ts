// Several shards as executors see them: one session of the same name on each. Claims go round, what concerns a run goes to
// its shard, and a lease is only as long as the shortest of those that answer.
import { LeaseholdError } from '../../kernel/errors.ts'
import type { Ports } from '../../kernel/ports.ts'
import { sleep } from '../../kernel/timers.ts'
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import { ofShard, shardOfId, shareOf, tooSmall } from '../../model/shard.ts'
import type { Definition } from '../../model/definition.ts'
import type {
  AttemptWrite,
  ClaimAnswer,
  ClaimedRun,
  ClaimOk,
  ClaimRequest,
  ExecutorPort,
  RenewOk,
  RenewRequest,
} from '../../model/work.ts'
import { all, atShard, makeAway, within } from './shard-faults.ts'

export interface ShardedPortOptions extends Pick<Ports, 'time' | 'timers' | 'log'> {
  /** How long a claim waits where it cannot wait on all shards. */
  readonly pollMs: number
  /** A shard that has not answered a claim or a renewal for so long is left out of it. */
  readonly patienceMs: number
}

/** Of its patience so many, for a write: it may wait for a row. Executors give up a request of several after 10 s. */
const WRITE_PATIENCE = 4

/**
 * The ports of all shards in their order, as one. A shard that does not answer costs the others nothing: claims go past
 * it, and a renewal names it as not reached.
 */
export const shardedPort = (
  ports: readonly ExecutorPort[],
  { pollMs, patienceMs, ...clock }: ShardedPortOptions,
): ExecutorPort => {
  const count = ports.length
  const every = ports.map((port, number) => ({ port, number }))
  /** At the shard of a run; one that does not answer holds up what comes with it in one request no longer than that. */
  const of = <T>(run: string, work: (port: ExecutorPort) => Promise<T>): Promise<T> => {
    const port = ofShard(ports, run)
    const number = shardOfId(run)
    const ms = away.has(number) ? patienceMs : WRITE_PATIENCE * patienceMs
    return atShard(number, count, () => within(clock.timers, ms, work(port)))
  }
  let why: unknown = null
  const away = makeAway(clock, patienceMs, (error) => {
    why = error
  })

  /** What each shard holds of a definition: its share of every limit. */
  const divided = (definition: Definition, number: number): Definition => ({
    ...definition,
    limits: definition.limits.map((limit) => ({
      ...limit,
      value: shareOf(limit.value, { number, count }),
    })) as Definition['limits'],
  })

  /**
   * Each shard is asked at most twice for one claim: at once, and then waiting. The two have numbers of their own there, so
   * that a second copy of either is answered with the first's runs. What one has given without being heard it takes back once
   * the session shows what it holds.
   */
  const claim = async (request: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer> => {
    const round = every.map((_each, i) => every[(i + request.claim) % count] as (typeof every)[0])
    const near = round.filter(({ number }) => !away.has(number))
    const order = near.length > 0 ? near : round
    const answers: ClaimOk[] = []
    const reached: typeof order = []
    let left = request.most
    for (const each of order) {
      if (left <= 0) break
      const now = { ...request, claim: request.claim * 2, most: left, waitMs: 0 }
      const come = await away.asked(each.number, each.port.claim(now, signal))
      if (come === null) continue
      reached.push(each)
      const { answer } = come
      if (!answer.ok) {
        // a copy of one that found nothing at once, and waited: what it got is looked up there
        if (answer.code === 'claim_superseded' && answer.detail['claim'] === now.claim + 1) continue
        return answer
      }
      answers.push(answer)
      left -= answer.runs.length
    }
    if (reached.length === 0 && left > 0) throw why
    if (left === request.most && request.waitMs > 0 && left > 0) {
      const asked = reached.slice(0, Math.min(left, count))
      // the next claim begins at another shard, and looks for those that were away
      const waitMs = asked.length < count ? Math.min(request.waitMs, pollMs) : request.waitMs
      const found = new AbortController()
      const leave = (): void => found.abort()
      signal?.addEventListener('abort', leave, { once: true })
      if (signal?.aborted === true) leave()
      try {
        const waited = await Promise.all(
          asked.map(async ({ port, number }, i) => {
            const now = {
              ...request,
              claim: request.claim * 2 + 1,
              most: shareOf(left, { number: i, count: asked.length }) ?? left,
              waitMs,
            }
            // one that says nothing once it is to, holds up what the others have given no longer than any other claim
            const over = sleep(clock.timers, waitMs, found.signal)
            const come = await away.asked(number, port.claim(now, found.signal), over)
            if (come === null) return null
            const { answer } = come
            if (!answer.ok || answer.runs.length > 0) leave()
            return answer
          }),
        )
        for (const answer of waited) {
          if (answer === null) continue
          if (!answer.ok) return answer
          answers.push(answer)
        }
      } finally {
        // where one fails nobody waits for the others, and a claim that went on would take runs for nobody
        leave()
        signal?.removeEventListener('abort', leave)
      }
    }
    const runs: ClaimedRun[] = answers.flatMap((answer) => answer.runs)
    return { ok: true, claim: request.claim, runs, ...shortest(answers) }
  }

  return {
    async register(request) {
      for (const { workflow, limits } of request.definitions)
        for (const { key, value } of limits)
          if (tooSmall(value, count))
            return refuse(
              'invalid_request',
              `${workflow}: the limit ${key} is ${value}, fewer than the ${count} shards that share it, so that runs of some would never start. Raise it to ${count}, or keep such work on one database`,
              { workflow, limit: key, value, shards: count },
            )
      const answers = []
      for (const { port, number } of every) {
        const definitions = request.definitions.map((each) => divided(each, number))
        const answer = await port.register({ ...request, definitions })
        if (!answer.ok) return answer
        answers.push(answer)
      }
      const [first] = answers
      if (!first)
        throw new LeaseholdError('invalid_config', 'there are no shards; name one or more')
      return { ...first, leaseMs: Math.min(...answers.map(({ leaseMs }) => leaseMs)) }
    },

    claim,

    journal: async (session, run, after) => of(run, (port) => port.journal(session, run, after)),

    async write(session, write) {
      return strangers(write) ?? (await of(write.run, (port) => port.write(session, write)))
    },

    /**
     * Renewed is what is renewed on each that answers; others are named, and the executor counts their leases by itself. A digest is over the runs of all shards, which no shard can compare with its own:
     * the list is asked for instead, and each is shown its part.
     */
    async renew(request) {
      const { held, letGo } = request
      const parts = every.map(({ number }): RenewRequest => {
        const here = <T extends { readonly run: string }>(list: readonly T[]): T[] =>
          list.filter(({ run }) => shardOfId(run) === number)
        const { held: _all, ...rest } = request
        return {
          ...rest,
          letGo: here(letGo),
          ...(held && 'runs' in held
            ? { held: { claim: held.claim * 2 + 1, runs: here(held.runs) } }
            : {}),
        }
      })
      const answers = await all(
        every.map(({ port, number }) =>
          away.asked(number, port.renew(parts[number] as RenewRequest)),
        ),
      )
      const good: RenewOk[] = []
      const unreached: number[] = []
      for (const [number, come] of answers.entries()) {
        if (come === null) unreached.push(number)
        else if (!come.answer.ok) return come.answer
        else good.push(come.answer)
      }
      if (good.length === 0) throw why
      return {
        ok: true,
        ...shortest(good),
        told: good.flatMap(({ told }) => told),
        pending: good.flatMap(({ pending }) => pending),
        wantsList:
          (held !== undefined && 'digest' in held) || good.some(({ wantsList }) => wantsList),
        ...(unreached.length > 0 ? { unreached } : {}),
      }
    },

    async close(request) {
      const { logs = [], ...rest } = request
      const answers = await all(
        every.map(({ port, number }) =>
          port.close({ ...rest, logs: logs.filter(({ run }) => shardOfId(run) === number) }),
        ),
      )
      let handedBack = 0
      for (const answer of answers) {
        if (!answer.ok) return answer
        handedBack += answer.handedBack
      }
      return { ok: true, handedBack }
    },

    async logs(session, parts) {
      const answers = await all(
        every.flatMap(({ port, number }) => {
          const here = parts.filter(({ run }) => shardOfId(run) === number)
          return here.length === 0 ? [] : [port.logs(session, here)]
        }),
      )
      let kept = 0
      for (const answer of answers) {
        if (!answer.ok) return answer
        kept += answer.kept
      }
      return { ok: true, kept }
    },

    listen(session, tell, ended) {
      const stops = ports.map((port) => port.listen(session, tell, ended))
      return () => {
        for (const stop of stops) stop()
      }
    },
  }
}

/** The lease that is over first. Clocks of shards differ: what is left of each counts, from the first one's instant. */
const shortest = (
  answers: readonly { readonly now: number; readonly leaseUntil: number | null }[],
): { now: number; leaseUntil: number | null } => {
  const now = answers[0]?.now ?? 0
  const left = answers.flatMap((each) =>
    each.leaseUntil === null ? [] : [each.leaseUntil - each.now],
  )
  return { now, leaseUntil: left.length === 0 ? null : now + Math.min(...left) }
}

/** What a run starts is stored beside it, in the same transaction; an id that says otherwise was minted by another release. */
const strangers = (write: AttemptWrite): Refusal | null => {
  const ids = [
    ...(write.waits ?? []).flatMap(({ child }) => (child ? [child.id] : [])),
    ...(write.spawns ?? []).map(({ id }) => id),
    ...(write.end?.kind === 'continue' ? [write.end.runId] : []),
  ]
  const stranger = ids.find((id) => shardOfId(id) !== shardOfId(write.run))
  return stranger === undefined
    ? null
    : refuse(
        'invalid_request',
        `${stranger} is not an id of the shard of ${write.run}, beside which it is to be stored; upgrade the executor`,
        { run: write.run, id: stranger },
      )
}
