// What a server of several databases answers: for each route which of them is asked. A route is of a run, of an owner, of all of
// them put together, done on each, looked for, or refused; every one has its line here, or this does not compile.
import { byBytes } from '../../kernel/byte-order.ts'
import type { Family } from '../../kernel/meters.ts'
import { EXPOSITION, expose, gauge } from '../../kernel/meters.ts'
import type { Outcome, Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import type { Timers } from '../../kernel/timers.ts'
import { sleep } from '../../kernel/timers.ts'
import { besideOf, marked, ofShard, shardOfId, shardOfOwner } from '../../model/shard.ts'
import type { AnswerOf, ParamsOf, Route } from '../../protocol/route.ts'
import type { RouteName, Routes } from '../../protocol/routes.ts'
import type { Message } from '../../protocol/sse.ts'
import { noSchedule } from '../../transitions/set-schedule.ts'
import { invalid } from '../faults.ts'
import { figuresOf } from '../http/answer-operations.ts'
import type { AnswersTo, Asked, Reply } from '../http/answers.ts'
import { paged, placeOf } from '../http/cursor.ts'
import type { Engine } from '../engine.ts'
import type { Source } from '../http/event-stream.ts'
import { all as settledAll, atShard, isAway, within } from './shard-faults.ts'
import {
  mergeCounts,
  mergeExecutors,
  mergeFamilies,
  mergeInvariants,
  mergeOrders,
  mergePages,
  mergePauses,
  mergeQueue,
  mergeQueues,
  mergeRunPages,
  mergeSchedules,
  mergeSinks,
  mergeSlot,
  mergeSlots,
  mergeSweeps,
  mergeTrigger,
  mergeWorkflows,
} from './shard-merges.ts'
import type { Shards } from './shards.ts'

export interface ShardAnswersOf {
  readonly shards: Shards
  /** One set for each shard, in their order. */
  readonly answers: readonly AnswersTo<RouteName>[]
  /** The set of what is not of one shard: its executor port is over all of them, and deliveries go to their owners’. */
  readonly whole: AnswersTo<RouteName>
  /** Figures of the process around the engines. */
  readonly figures: () => readonly Family[]
}

type Changes<R extends Route> = Partial<Pick<Asked<R>, 'body' | 'query' | 'stream' | 'lastEventId'>>
type Way<N extends RouteName> = (asked: Asked<Routes[N]>) => Promise<Reply<Routes[N]>>
/** Routes whose path names a run. */
type OfRun = {
  [N in RouteName]: Routes[N]['path'] extends `/v1/runs/:id${string}` ? N : never
}[RouteName]

const NONE_YET =
  'a store of several databases does not do that yet: see the guide, Beyond one database'

export const shardAnswers = ({
  shards,
  answers,
  whole,
  figures,
}: ShardAnswersOf): AnswersTo<RouteName> => {
  const { engines, patienceMs } = shards
  const [home] = engines as readonly [Engine, ...Engine[]]
  const count = engines.length
  const { ids, timers } = home.ports

  /** The answer of one shard; what is to be done once is done once there. */
  const at = <N extends RouteName>(
    shard: number,
    name: N,
    asked: Asked<Routes[N]>,
    changes: Changes<Routes[N]> = {},
    withinMs: number | null = null,
  ): Promise<Reply<Routes[N]>> => {
    const engine = engines[shard] as Engine
    const there = Object.assign(Object.create(asked) as Asked<Routes[N]>, {
      ...changes,
      once: ((transition) => asked.onceAt(engine, transition)) satisfies Asked<Route>['once'],
    })
    const answer = answers[shard]?.[name] as unknown as Way<N>
    return atShard(shard, count, () =>
      withinMs === null ? answer(there) : within(timers, withinMs, answer(there)),
    )
  }

  /** A shard that says nothing is not waited for where the others will do. */
  const soon = <T>(shard: number, work: () => Promise<T>): Promise<T> =>
    atShard(shard, count, () => within(timers, patienceMs, work()))

  /** What is read of all is not waited for longer than who asks for it waits; what is done may wait for a row. */
  const patienceOf = (name: RouteName): number | null =>
    /^(?:list|get|count)[A-Z]/.test(name) ? READ_PATIENCE * patienceMs : null

  /** All are asked, also where one does not answer; a refusal of one is that of all. */
  const each = async <N extends RouteName>(
    name: N,
    asked: Asked<Routes[N]>,
    changes: (shard: number) => Changes<Routes[N]> = () => ({}),
  ): Promise<Outcome<{ readonly all: readonly AnswerOf<Routes[N]>[] }>> => {
    const replies = await settledAll(
      engines.map((_engine, shard) => at(shard, name, asked, changes(shard), patienceOf(name))),
    )
    const no = replies.find(isRefusal)
    return no ?? { ok: true, all: replies as unknown as readonly AnswerOf<Routes[N]>[] }
  }

  const ofRun =
    <N extends OfRun>(name: N): Way<N> =>
    async (asked) => {
      const { id } = asked.params as ParamsOf<Routes[N]> & { readonly id: string }
      ofShard(engines, id)
      return at(shardOfId(id), name, asked)
    }

  const together =
    <N extends RouteName>(
      name: N,
      merge: (all: readonly AnswerOf<Routes[N]>[]) => AnswerOf<Routes[N]>,
    ): Way<N> =>
    async (asked) => {
      const done = await each(name, asked)
      return done.ok ? merge(done.all) : done
    }

  /** Done on each, and answered as by the first. */
  const onEach = <N extends RouteName>(name: N): Way<N> =>
    together(name, ([first]) => first as AnswerOf<Routes[N]>)

  const atHome =
    <N extends RouteName>(name: N): Way<N> =>
    (asked) =>
      at(0, name, asked)

  /** Each has the same: the first that answers will do. */
  const anywhere =
    <N extends RouteName>(name: N): Way<N> =>
    async (asked) => {
      let lost: { readonly error: unknown } | null = null
      for (const shard of engines.keys())
        try {
          return await soon(shard, () => at(shard, name, asked))
        } catch (error) {
          if (!isAway(error)) throw error
          lost ??= { error }
        }
      throw lost?.error
    }

  /** Where it is nothing tells: each is asked until one has it. */
  const looked =
    <N extends RouteName>(name: N): Way<N> =>
    async (asked) => {
      let none: Reply<Routes[N]> | null = null
      let lost: { readonly error: unknown } | null = null
      // an id that begins with a run's is most likely where that run is
      const { id } = asked.params as { readonly id: string }
      const likely = Number(/~(\d{1,3}):/.exec(id)?.[1] ?? 0)
      const order = [...engines.keys()].sort(
        (a, b) => Number(b === likely) - Number(a === likely) || a - b,
      )
      for (const shard of order)
        try {
          const reply = await at(shard, name, asked)
          if (!(isRefusal(reply) && reply.code === 'not_found')) return reply
          none = reply
        } catch (error) {
          if (!isAway(error)) throw error
          lost = { error }
        }
      // it may be where nobody could look
      if (lost !== null) throw lost.error
      return none as Reply<Routes[N]>
    }

  /** What those have that know of it, or the refusal of all. */
  const known = async <N extends RouteName>(
    name: N,
    asked: Asked<Routes[N]>,
  ): Promise<
    Outcome<{ readonly all: readonly [AnswerOf<Routes[N]>, ...AnswerOf<Routes[N]>[]] }>
  > => {
    const replies = await settledAll(
      engines.map((_engine, shard) => at(shard, name, asked, {}, patienceOf(name))),
    )
    const found = replies.filter((reply) => !(isRefusal(reply) && reply.code === 'not_found'))
    const no = found.find(isRefusal) ?? (found.length === 0 ? replies.find(isRefusal) : undefined)
    return no ?? { ok: true, all: found as never }
  }

  const notYet =
    <N extends RouteName>(_name: N, what: string): Way<N> =>
    async () =>
      refuse('invalid_request', `${what}: ${NONE_YET}`)

  /** Of each shard the messages as they come; what is down is listened to again when it is back. */
  const streams = async <N extends RouteName>(
    name: N,
    asked: Asked<Routes[N]>,
    changes: (shard: number) => Changes<Routes[N]> = () => ({}),
    anew: Message | null = null,
  ): Promise<Response | Refusal> => {
    const sources: Source[] = []
    const hold = (source: Source): Response => {
      sources.push(source)
      return new Response(null)
    }
    const done = await each(name, asked, (shard) => ({ ...changes(shard), stream: hold }))
    return done.ok ? asked.stream(mergedSource(sources, timers, anew)) : done
  }

  /** The shard that has a schedule of this name, or null. */
  const shardOfSchedule = async (
    asked: Asked<Route>,
    name: string,
  ): Promise<{ readonly shard: number; readonly owner: string } | null> => {
    const get = Object.assign(Object.create(asked) as Asked<Routes['getSchedule']>, {
      params: { name },
    })
    let lost: { readonly error: unknown } | null = null
    const replies = await Promise.all(
      engines.map(async (_engine, shard) => {
        try {
          return await soon(shard, () => at(shard, 'getSchedule', get))
        } catch (error) {
          if (!isAway(error)) throw error
          lost ??= { error }
          return null
        }
      }),
    )
    const shard = replies.findIndex((reply) => reply !== null && !isRefusal(reply))
    if (shard < 0) {
      const away = lost as { readonly error: unknown } | null
      // it may be where nobody could look
      if (away !== null) throw away.error
      return null
    }
    return {
      shard,
      owner: (replies[shard] as unknown as AnswerOf<Routes['getSchedule']>).schedule.owner,
    }
  }
  const ofSchedule =
    <
      N extends
        | 'getSchedule'
        | 'changeSchedule'
        | 'pauseSchedule'
        | 'resumeSchedule'
        | 'runSchedule'
        | 'deleteSchedule',
    >(
      name: N,
      changes: (asked: Asked<Routes[N]>, shard: number) => Changes<Routes[N]> = () => ({}),
    ): Way<N> =>
    async (asked) => {
      const { name: schedule } = asked.params as { readonly name: string }
      const found = await shardOfSchedule(asked as unknown as Asked<Route>, schedule)
      if (found === null) return noSchedule(schedule)
      return at(found.shard, name, asked, changes(asked, found.shard))
    }

  return {
    async startRun(asked) {
      const { body } = asked
      const shard = shardOfOwner(body.owner ?? '', count)
      return at(shard, 'startRun', asked, {
        body: { ...body, id: marked(body.id ?? ids.next('run'), shard) },
      })
    },

    async startRuns(asked) {
      const parts = engines.map((): { item: unknown; at: number }[] => [])
      asked.body.items.forEach((item, place) => {
        const { owner, id } = (item ?? {}) as { owner?: unknown; id?: unknown }
        const shard = shardOfOwner(typeof owner === 'string' ? owner : '', count)
        const named =
          isObject(item) && (id === undefined || id === null || typeof id === 'string')
            ? { ...item, id: marked(id ?? ids.next('run'), shard) }
            : item
        parts[shard]?.push({ item: named, at: place })
      })
      const done = await settledAll(
        parts.map(async (part, shard) =>
          part.length === 0
            ? null
            : at(shard, 'startRuns', asked, {
                body: { ...asked.body, items: part.map(({ item }) => item) } as never,
              }),
        ),
      )
      const no = done.find((reply) => reply !== null && isRefusal(reply))
      if (no) return no
      type Part = AnswerOf<Routes['startRuns']>
      const merged: Part['answers'][number][] = []
      done.forEach((reply, shard) => {
        const { answers: own } = (reply ?? { answers: [] }) as Part
        parts[shard]?.forEach((each, i) => {
          // a fault of an item says where it stood in what its shard was sent
          merged[each.at] = renumbered(own[i] as Part['answers'][number], i, each.at)
        })
      })
      const started = merged.filter((answer) => answer.ok && answer.started).length
      return { started, answers: merged }
    },

    async listRuns(asked) {
      const done = await each('listRuns', asked)
      if (!done.ok) return done
      const pages = done.all.map(({ runs, next }) => ({ runs, next: placeBehind('runs', next) }))
      return paged('runs', mergeRunPages(pages as never, asked.query.limit) as never)
    },
    countRuns: together('countRuns', mergeCounts),

    getRun: ofRun('getRun'),
    explainRun: ofRun('explainRun'),
    readJournal: ofRun('readJournal'),
    resultOfRun: ofRun('resultOfRun'),
    followRun: ofRun('followRun'),
    followStream: ofRun('followStream'),
    readLogs: ofRun('readLogs'),
    followLogs: ofRun('followLogs'),
    signalRun: ofRun('signalRun'),
    cancelRun: ofRun('cancelRun'),
    pauseRun: ofRun('pauseRun'),
    resumeRun: ofRun('resumeRun'),
    handBackRun: ofRun('handBackRun'),
    moveRun: ofRun('moveRun'),
    async retryRun(asked) {
      const { id } = asked.params
      ofShard(engines, id)
      return at(shardOfId(id), 'retryRun', asked, {
        body: { ...asked.body, id: besideOf(id, asked.body.id ?? ids.next('run')) },
      })
    },
    // who comes back is told once to read all anew
    followRuns: (asked) =>
      streams(
        'followRuns',
        asked,
        (shard) => (shard === 0 ? {} : { lastEventId: null }),
        // what has changed meanwhile, nobody has heard
        { event: 'reset', id: null, data: {} },
      ),

    async listApprovals(asked) {
      const { run } = asked.query
      // they are where their run is
      if (run !== undefined && engines[shardOfId(run)] !== undefined)
        return at(shardOfId(run), 'listApprovals', asked)
      const done = await each('listApprovals', asked)
      if (!done.ok) return done
      const { items, next } = mergePages(
        done.all.map((page) => ({ items: page.approvals, more: page.next !== null })),
        asked.query.limit,
        (a, b) => a.createdAt - b.createdAt || byBytes(a.id, b.id),
        ({ createdAt, id }) => `${createdAt}:${id}`,
      )
      return paged('approvals', { approvals: items, next })
    },
    // an approval's id may be of its author's making
    decideApproval: looked('decideApproval'),

    listSchedules: together('listSchedules', mergeSchedules),
    async createSchedule(asked) {
      const { name, owner } = asked.body
      const shard = shardOfOwner(owner ?? '', count)
      const found = await shardOfSchedule(asked as unknown as Asked<Route>, name)
      if (found !== null && found.shard !== shard)
        return refuse(
          'schedule_exists',
          `there is a schedule ${name} already, of ${found.owner === '' ? 'no owner' : found.owner}; change it, or choose another name`,
          { name },
        )
      return at(shard, 'createSchedule', asked)
    },
    getSchedule: ofSchedule('getSchedule'),
    changeSchedule: ofSchedule('changeSchedule'),
    pauseSchedule: ofSchedule('pauseSchedule'),
    resumeSchedule: ofSchedule('resumeSchedule'),
    runSchedule: ofSchedule('runSchedule', ({ body }, shard) => ({
      body: { ...body, id: marked(body.id ?? ids.next('run'), shard) },
    })),
    deleteSchedule: ofSchedule('deleteSchedule'),

    // on each, since only a delivery says whose it is
    listTriggers: anywhere('listTriggers'),
    async getTrigger(asked) {
      const done = await known('getTrigger', asked)
      return done.ok ? mergeTrigger(done.all) : done
    },
    setTrigger: onEach('setTrigger'),
    pauseTrigger: onEach('pauseTrigger'),
    resumeTrigger: onEach('resumeTrigger'),
    tryTrigger: anywhere('tryTrigger'),
    deleteTrigger: onEach('deleteTrigger'),
    takeDelivery: whole.takeDelivery,

    listExecutors: together('listExecutors', mergeExecutors),
    async clearExecutor(asked) {
      const { run } = asked.body
      ofShard(engines, run)
      return at(shardOfId(run), 'clearExecutor', asked)
    },
    listSlots: together('listSlots', mergeSlots),
    async getSlot(asked) {
      const done = await known('getSlot', asked)
      return done.ok ? mergeSlot(done.all) : done
    },
    async setSlot(asked) {
      const { params, body, actor } = asked
      const set = await shards.setLimit({
        key: params.key,
        value: body.value,
        mode: body.mode ?? 'whole_run',
        weight: body.weight ?? null,
        by: actor,
      })
      if (!set.ok) return set
      const done = await known('getSlot', asked as unknown as Asked<Routes['getSlot']>)
      return done.ok ? mergeSlot(done.all) : done
    },
    listQueues: together('listQueues', mergeQueues),
    getQueue: together('getQueue', (all) => mergeQueue(all as never)),
    listPauses: together('listPauses', mergePauses),
    pauseLine: onEach('pauseLine'),
    resumeLine: onEach('resumeLine'),
    listWorkflows: together('listWorkflows', mergeWorkflows),
    setCurrentVersion: onEach('setCurrentVersion'),
    async listNotices(asked) {
      const done = await each('listNotices', asked)
      if (!done.ok) return done
      type Notice = AnswerOf<Routes['listNotices']>['notices'][number]
      const rest = ({ kind, run, occurrence }: Notice): string => `${kind}:${run}\n${occurrence}`
      const { items, next } = mergePages<Notice>(
        done.all.map((page) => ({ items: page.notices, more: page.next !== null })),
        asked.query.limit,
        (a, b) => b.at - a.at || byBytes(rest(b), rest(a)),
        (each) => `${each.at}:${rest(each)}`,
      )
      return paged('notices', { notices: items, next })
    },
    listOrders: together('listOrders', mergeOrders),
    retryOrder: looked('retryOrder'),
    dropOrder: looked('dropOrder'),
    listSweeps: together('listSweeps', mergeSweeps),
    async audit(asked) {
      const { after } = asked.query
      if (after === undefined) {
        const done = await each('audit', asked)
        if (!done.ok) return done
        const invariants = mergeInvariants(done.all.flatMap((each) => each.invariants))
        return { healthy: done.all.every(({ healthy }) => healthy), invariants, next: '' }
      }
      // one shard after the other: a place is an id, whose mark says of which, or the beginning of a shard
      const begins = /^begin~(\d+)$/.exec(after)?.[1]
      const shard = begins === undefined ? shardOfId(after) : Number(begins)
      if (engines[shard] === undefined)
        return invalid(
          [{ path: 'query.after', message: 'is not a place that the answer before named as next' }],
          'request',
        )
      const reply = await at(shard, 'audit', asked, {
        query: { ...asked.query, after: begins === undefined ? after : '' },
      })
      if (isRefusal(reply)) return reply
      const page = reply as AnswerOf<Routes['audit']>
      const more = page.next ?? (shard + 1 < count ? `begin~${shard + 1}` : null)
      return { ...page, next: more }
    },
    async metrics() {
      const found = await Promise.all(
        engines.map((engine) =>
          within(timers, READ_PATIENCE * patienceMs, figuresOf(engine)).catch((error: unknown) => {
            if (isAway(error)) return null
            throw error
          }),
        ),
      )
      const up = gauge(
        'leasehold_shard_up',
        'Whether the database answers, by the number of its shard.',
        found.map((each, shard) => ({
          labels: { shard: String(shard) },
          value: each === null ? 0 : 1,
        })),
      )
      const all = [...mergeFamilies(found.map((each) => each ?? [])), up, ...figures()]
      return new Response(expose(all), {
        headers: { 'content-type': EXPOSITION, 'cache-control': 'no-store' },
      })
    },
    alive: atHome('alive'),
    /** A server is of use while one of its databases is. */
    async ready(asked) {
      type Ready = AnswerOf<Routes['ready']>
      const asking = engines.map(async (_engine, shard): Promise<Ready> => {
        const reply = (await at(shard, 'ready', asked)) as Response
        return (await reply.json()) as Ready
      })
      const came: (Ready | null)[] = engines.map(() => null)
      const all = Promise.all(
        asking.map(async (each, shard) => {
          came[shard] = await each.catch((error: unknown) => {
            if (isAway(error)) return null
            throw error
          })
        }),
      )
      const one = new Promise<void>((resolve) => {
        for (const each of asking)
          each.then(
            ({ ready }) => {
              if (ready) resolve()
            },
            () => undefined,
          )
      })
      // whoever asks gives up soon: once one is ready, those that say nothing for longer are not waited for
      const over = new AbortController()
      const patience = sleep(timers, patienceMs, over.signal)
      await Promise.race([all, Promise.all([one, patience])]).finally(() => over.abort())
      const replies = came.map(
        (reply): Ready =>
          reply ?? {
            ready: false,
            faults: [`the store does not answer: it has not within ${patienceMs} ms`],
            store: null,
            warnings: [],
          },
      )
      const saying = (shard: number, texts: readonly string[]): string[] =>
        texts.map((text) => `shard ${shard}: ${text}`)
      const faults = replies.flatMap((reply, shard) => saying(shard, reply.faults))
      const ready = replies.some((reply) => reply.ready)
      return Response.json(
        {
          ready,
          faults: ready ? [] : faults,
          store: replies.find(({ store }) => store !== null)?.store ?? null,
          warnings: [
            ...(ready ? faults : []),
            ...replies.flatMap((reply, shard) => saying(shard, reply.warnings ?? [])),
          ],
        },
        { status: ready ? 200 : 503 },
      )
    },
    drained: atHome('drained'),

    listSinks: together('listSinks', mergeSinks),
    async listDeliveries(asked) {
      const done = await each('listDeliveries', asked)
      if (!done.ok) return done
      const { items, next } = mergePages(
        done.all.map((page) => ({ items: page.deliveries, more: page.next !== null })),
        asked.query.limit,
        (a, b) => b.createdAt - a.createdAt || byBytes(b.id, a.id),
        ({ createdAt, id }) => `${createdAt}:${id}`,
      )
      return paged('deliveries', { deliveries: items, next })
    },
    retryDelivery: looked('retryDelivery'),
    dropDelivery: looked('dropDelivery'),

    register: whole.register,
    claim: whole.claim,
    write: whole.write,
    renew: whole.renew,
    close: whole.close,
    logs: whole.logs,
    journal: whole.journal,
    async grant(asked) {
      const { run } = asked.body
      ofShard(engines, run)
      return at(shardOfId(run), 'grant', asked)
    },
    async adopt(asked) {
      const { run } = asked.body
      ofShard(engines, run)
      return at(shardOfId(run), 'adopt', asked)
    },
    async exited(asked) {
      const done = await known('exited', asked)
      return done.ok ? { ok: true, ended: done.all.some(({ ended }) => ended) } : done
    },
    listen: (asked) => streams('listen', asked),

    beginSpawn: notYet('beginSpawn', 'spawners'),
    settleSpawn: notYet('settleSpawn', 'spawners'),
    listSpawns: atHome('listSpawns'),
  }
}

const isRefusal = (reply: unknown): reply is Refusal =>
  (reply as { readonly ok?: unknown } | null)?.ok === false

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The place that a cursor of ours names. */
const placeBehind = (list: 'runs', cursor: string | null): string | null => {
  const read = placeOf(list, cursor ?? undefined)
  return read.ok ? read.place : null
}

const renumbered = <T>(answer: T, from: number, to: number): T =>
  isRefusal(answer)
    ? (JSON.parse(JSON.stringify(answer).replaceAll(`$.items[${from}]`, `$.items[${to}]`)) as T)
    : answer

const AGAIN_MS = 1_000
/** Of its patience so many, for lists and figures: they are read from whole tables, and who asks for them gives up after 10 s. */
const READ_PATIENCE = 5

/**
 * The messages of all sources as they come, each kept until it is taken. One whose shard is down begins anew, and says so with
 * `anew`.
 */
const mergedSource = (sources: readonly Source[], timers: Timers, anew: Message | null): Source =>
  async function* (signal): AsyncGenerator<Message, void, undefined> {
    const waiting: { readonly message: Message; readonly taken: () => void }[] = []
    const left = new AbortController()
    const leave = (): void => {
      left.abort()
      wake()
    }
    let wake: () => void = () => undefined
    let running = sources.length
    let failed: { readonly error: unknown } | null = null
    const put = (message: Message): Promise<void> =>
      new Promise((taken) => {
        waiting.push({ message, taken })
        wake()
      })
    const pump = async (source: Source): Promise<void> => {
      while (!left.signal.aborted)
        try {
          for await (const message of source(left.signal)) {
            if (left.signal.aborted) return
            await put(message)
          }
          return
        } catch (error) {
          if (!isAway(error)) throw error
          await sleep(timers, AGAIN_MS, left.signal)
          if (anew !== null && !left.signal.aborted) await put(anew)
        }
    }
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    for (const source of sources)
      void pump(source)
        .catch((error: unknown) => {
          failed ??= { error }
        })
        .finally(() => {
          running -= 1
          wake()
        })
    const fault = (): { readonly error: unknown } | null => failed
    try {
      while (!left.signal.aborted) {
        const next = waiting.shift()
        const lost = fault()
        if (next) {
          yield next.message
          next.taken()
        } else if (lost !== null) throw lost.error
        else if (running === 0) return
        else
          await new Promise<void>((resolve) => {
            wake = resolve
            if (waiting.length > 0 || left.signal.aborted || running === 0) resolve()
          })
      }
    } finally {
      signal.removeEventListener('abort', leave)
      left.abort()
      for (const { taken } of waiting) taken()
    }
  }
