// Several engines as one: a seam over what single databases do, each of which keeps its own transactions, loops and lines.
// What concerns one run goes to its shard; what concerns all is asked of each and put together. Nothing spans two shards in
// one transaction.
import { LeaseholdError } from '../../kernel/errors.ts'
import type { Outcome } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import type { Membership, Shard } from '../../model/shard.ts'
import {
  besideOf,
  marked,
  membershipOf,
  membershipText,
  notThisShard,
  ofShard,
  shardOfId,
  shardOfOwner,
  SHARDS_MAX,
  shareOf,
  tooSmall,
} from '../../model/shard.ts'
import type { ExecutorPort } from '../../model/work.ts'
import type { RunPage, StatusCount } from '../../queries/run-list.ts'
import { runCounts, runList } from '../../queries/run-list.ts'
import { ask } from '../../store/sql.ts'
import { allMeta, MEMBERSHIP, putMetaOnce } from '../../store/tables/orders.ts'
import type { RunFilter } from '../../store/tables/run-lists.ts'
import { NO_FILTER } from '../../store/tables/run-lists.ts'
import type { DecideAnswer } from '../../transitions/decide.ts'
import type { SetLimit } from '../../transitions/set-limit.ts'
import { setLimit } from '../../transitions/set-limit.ts'
import type { StartAnswer, StartItem } from '../../transitions/start.ts'
import type { Engine } from '../engine.ts'
import type { Opened } from '../open.ts'
import { all, atShard, isAway, PATIENCE_MS } from './shard-faults.ts'
import { mergeRunPages } from './shard-merges.ts'
import { shardedPort } from './shard-port.ts'

type OfRun = Pick<Engine, 'pause' | 'resume' | 'reversion' | 'takeFrom'>

export interface Shards
  extends OfRun, Pick<Engine, 'start' | 'startMany' | 'signal' | 'cancel' | 'retry' | 'decide'> {
  /** In their order. */
  readonly engines: readonly Engine[]
  /** The executor port over all of them. */
  readonly port: ExecutorPort
  /** How long a shard is waited for where the others have answered, in ms. */
  readonly patienceMs: number
  /** The engine of a run's shard. */
  engineOf(run: string): Engine
  /** An owner's limit is set where the owner is, any other by shares; a value that leaves a shard without one is refused. */
  setLimit(command: SetLimit): Promise<Outcome<{ readonly key: string }>>
  /** Newest first; `cursor` is the `next` of the page before. */
  listRuns(filter: RunFilter, cursor: string | null, limit: number): Promise<RunPage>
  countRuns(): Promise<readonly StatusCount[]>
}

/**
 * Joins engines that were opened as shards, in their order. The first time each database keeps its number, how many there are, and
 * which set it is of; throws `invalid_config` where one is of another set, or has runs and is of none.
 * A shard that has not answered a claim or a renewal for `patienceMs` (default 1 s) is left out of it.
 */
export const joinShards = async (
  opened: readonly Pick<Opened, 'engine' | 'remote'>[],
  { patienceMs = PATIENCE_MS }: { readonly patienceMs?: number } = {},
): Promise<Shards> => {
  const engines = opened.map(({ engine }) => engine)
  const [first] = engines
  if (!first || engines.length > SHARDS_MAX)
    throw new LeaseholdError(
      'invalid_config',
      `there are ${engines.length} shards; expected 1 to ${SHARDS_MAX}`,
    )
  const count = engines.length
  await settleIdentity(engines, first.ports.ids.next('own'))

  const engineOf = (run: string): Engine => ofShard(engines, run)
  /** Asks the shard of a run. */
  const ofRun = async <T>(run: string, work: (engine: Engine) => Promise<T>): Promise<T> => {
    const engine = engineOf(run)
    return atShard(shardOfId(run), count, () => work(engine))
  }
  const at = <T>(shard: number, work: (engine: Engine) => Promise<T>): Promise<T> =>
    atShard(shard, count, () => work(engines[shard] as Engine))
  /** All are asked, also where one does not answer; then its fault is thrown. */
  const ofEach = async <T>(work: (engine: Engine, number: number) => Promise<T>): Promise<T[]> =>
    all(engines.map((_engine, number) => at(number, (engine) => work(engine, number))))

  /** Where a start goes, with the id that says so. */
  const placed = (item: StartItem): { item: StartItem; shard: number } | StartAnswer => {
    const { command } = item
    const shard = shardOfOwner(command.owner ?? '', count)
    const said = shardOfId(command.id)
    if (said !== 0 && said !== shard)
      return refuse(
        'invalid_request',
        `the id ${command.id} names shard ${said}, and runs of ${command.owner ? `the owner ${command.owner}` : 'no owner'} are on shard ${shard}; leave the mark out`,
        { id: command.id, shard },
      )
    return { item: { ...item, command: { ...command, id: marked(command.id, shard) } }, shard }
  }

  const startMany = async (items: readonly StartItem[]): Promise<readonly StartAnswer[]> => {
    const answers: StartAnswer[] = []
    const parts = engines.map((): { item: StartItem; at: number }[] => [])
    items.forEach((given, at) => {
      const place = placed(given)
      if ('ok' in place) answers[at] = place
      else parts[place.shard]?.push({ item: place.item, at })
    })
    await ofEach(async (engine, shard) => {
      const part = parts[shard] ?? []
      if (part.length === 0) return
      const done = await engine.startMany(part.map(({ item }) => item))
      part.forEach((each, i) => {
        answers[each.at] = done[i] as StartAnswer
      })
    })
    return answers
  }

  return {
    engines,
    patienceMs,
    port: shardedPort(
      opened.map(({ remote }) => remote),
      { ...first.ports, pollMs: first.settings.pollMs, patienceMs },
    ),
    engineOf,
    async start(given) {
      const place = placed(given)
      if ('ok' in place) return place
      return at(place.shard, (engine) => engine.start(place.item))
    },
    startMany,
    signal: async (command) => ofRun(command.run, (engine) => engine.signal(command)),
    cancel: async (command) => ofRun(command.run, (engine) => engine.cancel(command)),
    retry: async (command) =>
      ofRun(command.run, (engine) =>
        engine.retry({ ...command, id: besideOf(command.run, command.id) }),
      ),
    pause: async (run, by, why) => ofRun(run, (engine) => engine.pause(run, by, why)),
    resume: async (run, by) => ofRun(run, (engine) => engine.resume(run, by)),
    reversion: async (run, version, by) =>
      ofRun(run, (engine) => engine.reversion(run, version, by)),
    takeFrom: async (run, by, reason) => ofRun(run, (engine) => engine.takeFrom(run, by, reason)),
    async decide(command) {
      // an approval's id may be of the author's making, and says nothing of its run
      let none: DecideAnswer | null = null
      let lost: { readonly error: unknown } | null = null
      for (const number of engines.keys())
        try {
          const answer = await at(number, (engine) => engine.decide(command))
          if (answer.ok || answer.code !== 'not_found') return answer
          none = answer
        } catch (error) {
          if (!isAway(error)) throw error
          lost = { error }
        }
      // it may be where nobody could look
      if (lost !== null) throw lost.error
      return none as DecideAnswer
    },
    async setLimit(command) {
      const { key, value } = command
      const owner = /^owner:(.+)$/s.exec(key)?.[1]
      if (owner !== undefined) {
        await at(shardOfOwner(owner, count), (engine) => engine.act((tx) => setLimit(tx, command)))
        return { ok: true, key }
      }
      if (tooSmall(value, count))
        return refuse(
          'invalid_request',
          `the limit ${key} cannot be ${value}: ${count} shards share it, and runs of some would never start. Set ${count} or more, or 0 for none`,
          { key, value, shards: count },
        )
      await ofEach(async (engine, number) => {
        const share = shareOf(value, { number, count })
        await engine.act((tx) => setLimit(tx, { ...command, value: share }))
        // runs carry the global limit's key only while it is in force
        if (key === 'global') await engine.reload()
      })
      return { ok: true, key }
    },
    async listRuns(filter, cursor, limit) {
      const pages = await ofEach((engine) =>
        engine.read((tx) => runList(tx, filter, cursor, limit)),
      )
      return mergeRunPages(pages, limit)
    },
    async countRuns() {
      const sums = new Map<StatusCount['status'], StatusCount>()
      for (const counts of await ofEach((engine) => engine.read(runCounts)))
        for (const { status, count: more, more: beyond } of counts) {
          const before = sums.get(status)
          sums.set(status, {
            status,
            count: (before?.count ?? 0) + more,
            more: beyond || before?.more === true,
          })
        }
      return [...sums.values()]
    },
  }
}

/** Keeps in each database which shard it is of which set, and compares the sets where they are kept already. */
const settleIdentity = async (engines: readonly Engine[], fresh: string): Promise<void> => {
  const count = engines.length
  let set: string | null = null
  const kept: { readonly member: Membership | null; readonly empty: boolean }[] = []
  for (const [number, engine] of engines.entries()) {
    const { shard } = engine
    if (shard.number !== number || shard.count !== count)
      throw wrong(
        number,
        `was opened as shard ${shard.number} of ${shard.count}; expected ${number} of ${count}`,
        { number, count },
      )
    const { member, empty } = await engine.read(function* (tx) {
      const [rows] = yield* ask(allMeta())
      const member = membershipOf(rows.find(({ name }) => name === MEMBERSHIP)?.value)
      const { runs } = yield* runList(tx, NO_FILTER, null, 1)
      return { member, empty: runs.length === 0 }
    })
    kept.push({ member, empty })
    if (member === null) {
      if (!empty && count > 1)
        throw wrong(
          number,
          'has runs and is of no set of shards; begin a set with empty databases',
          { number, count },
        )
      continue
    }
    if (set !== null && member.set !== set)
      throw wrong(number, 'is of another set than those before it; name the databases of one set', {
        number,
        count,
        found: member.set,
      })
    set = member.set
  }
  // all of a set are joined before one of them has runs: what is of none then was put in the place of one that is
  const blank = kept.findIndex(({ member }) => member === null)
  if (count > 1 && blank >= 0 && kept.some(({ empty }) => !empty))
    throw wrong(
      blank,
      'is of no set of shards, and others have runs already: what was in its place is missing; name that database',
      { number: blank, count },
    )
  // another server may join them at this moment: what the first of them kept holds for all
  for (const [number, engine] of engines.entries()) {
    if (kept[number]?.member) continue
    const value = membershipText({ number, count, set: set ?? fresh })
    const rows = await engine.store.run(function* () {
      yield* ask(putMetaOnce(MEMBERSHIP, value))
      return (yield* ask(allMeta()))[0]
    })
    const now = membershipOf(rows.find(({ name }) => name === MEMBERSHIP)?.value)
    const no = notThisShard(now, { number, count })
    if (no !== null) throw new LeaseholdError('invalid_config', no, { number, count })
    if (set !== null && now !== null && now.set !== set)
      throw wrong(number, 'is of another set than those before it; name the databases of one set', {
        number,
        count,
        found: now.set,
      })
    set = now?.set ?? set
  }
}

const wrong = (
  number: number,
  what: string,
  detail: Shard & { readonly found?: string },
): LeaseholdError =>
  new LeaseholdError('invalid_config', `the database at place ${number} ${what}`, { ...detail })
