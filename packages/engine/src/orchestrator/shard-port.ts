// Several shards as executors see them: one session of the same name on each. Claims go round, what concerns a run goes to
// its shard, and a lease is only as long as the shortest of them.
import { LeaseholdError } from '../kernel/errors.ts'
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { ofShard, shardOfId, shareOf, tooSmall } from '../model/shard.ts'
import type { Definition } from '../model/definition.ts'
import type {
  AttemptWrite,
  ClaimAnswer,
  ClaimedRun,
  ClaimOk,
  ClaimRequest,
  ExecutorPort,
  RenewOk,
  RenewRequest,
} from '../model/work.ts'

/** The ports of all shards in their order, as one. `pollMs` is how long a claim waits where it cannot wait on all of them. */
export const shardedPort = (ports: readonly ExecutorPort[], pollMs: number): ExecutorPort => {
  const count = ports.length
  const every = ports.map((port, number) => ({ port, number }))
  const of = (run: string): ExecutorPort => ofShard(ports, run)

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
   * that a second copy of either is answered with the first's runs.
   */
  const claim = async (request: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer> => {
    const order = every.map((_each, i) => every[(i + request.claim) % count] as (typeof every)[0])
    const answers: ClaimOk[] = []
    let left = request.most
    for (const { port } of order) {
      if (left <= 0) break
      const now = { ...request, claim: request.claim * 2, most: left, waitMs: 0 }
      const answer = await port.claim(now, signal)
      if (!answer.ok) {
        // a copy of one that found nothing at once, and waited: what it got is looked up there
        if (answer.code === 'claim_superseded' && answer.detail['claim'] === now.claim + 1) continue
        return answer
      }
      answers.push(answer)
      left -= answer.runs.length
    }
    if (left === request.most && request.waitMs > 0 && left > 0) {
      const asked = order.slice(0, Math.min(left, count))
      const found = new AbortController()
      const leave = (): void => found.abort()
      signal?.addEventListener('abort', leave, { once: true })
      if (signal?.aborted === true) leave()
      try {
        const waited = await Promise.all(
          asked.map(async ({ port }, number) => {
            const answer = await port.claim(
              {
                ...request,
                claim: request.claim * 2 + 1,
                most: shareOf(left, { number, count: asked.length }) ?? left,
                // the next claim begins at another shard
                waitMs: asked.length < count ? Math.min(request.waitMs, pollMs) : request.waitMs,
              },
              found.signal,
            )
            if (!answer.ok || answer.runs.length > 0) leave()
            return answer
          }),
        )
        for (const answer of waited) {
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
            throw new LeaseholdError(
              'invalid_config',
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

    journal: async (session, run, after) => of(run).journal(session, run, after),

    async write(session, write) {
      return strangers(write) ?? (await of(write.run).write(session, write))
    },

    /**
     * Renewed is what is renewed everywhere. A digest is over the runs of all shards, which no shard can compare with its own:
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
      const answers = await all(ports.map((port, i) => port.renew(parts[i] as RenewRequest)))
      const good: RenewOk[] = []
      for (const answer of answers) {
        if (!answer.ok) return answer
        good.push(answer)
      }
      return {
        ok: true,
        ...shortest(good),
        told: good.flatMap(({ told }) => told),
        pending: good.flatMap(({ pending }) => pending),
        wantsList:
          (held !== undefined && 'digest' in held) || good.some(({ wantsList }) => wantsList),
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
      let kept = 0
      for (const { port, number } of every) {
        const here = parts.filter(({ run }) => shardOfId(run) === number)
        if (here.length === 0) continue
        const answer = await port.logs(session, here)
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

/** Every one is waited for, also where one fails: the others have been done by then. */
const all = async <T>(asked: readonly Promise<T>[]): Promise<T[]> => {
  const done = await Promise.allSettled(asked)
  return done.map((each) => {
    if (each.status === 'rejected') throw each.reason
    return each.value
  })
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
