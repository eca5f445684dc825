// Several databases as one store: which of them a run belongs to, how its id says so, and what part of a limit each has.
// The owner decides, so that an owner's keys, limit and places in line are those of one database; the id carries it, so that
// whoever has an id asks one database. Pure.
import { digest } from '../kernel/digest.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Ids } from '../kernel/ids.ts'

/** One of several databases: `number` counts from 0. */
export interface Shard {
  readonly number: number
  readonly count: number
}

/** Of a database that is a store by itself. */
export const ALONE: Shard = { number: 0, count: 1 }

/** What a database keeps of itself once it was joined with others: which of how many it is, and of which set. */
export interface Membership extends Shard {
  readonly set: string
}

/** Null where it was never joined. */
export const membershipOf = (said: string | undefined): Membership | null => {
  const [, number, count, set] = /^(\d+) of (\d+) in (.+)$/.exec(said ?? '') ?? []
  return set === undefined ? null : { number: Number(number), count: Number(count), set }
}

export const membershipText = ({ number, count, set }: Membership): string =>
  `${number} of ${count} in ${set}`

/** Why a database that keeps `kept` is not to be opened as `asked`; null where it may be. */
export const notThisShard = (kept: Shard | null, asked: Shard): string | null => {
  if (kept === null || (kept.number === asked.number && kept.count === asked.count)) return null
  const all = `name all ${kept.count} databases, in the order in which they were joined`
  return asked.count === 1
    ? `this database is shard ${kept.number} of ${kept.count} and is not opened alone: its runs would be started twice, and those of other owners would be looked for in vain; ${all}`
    : `this database is shard ${kept.number} of ${kept.count}; expected ${asked.number} of ${asked.count}: ${all}`
}

/** An id carries one to three digits at most. */
export const SHARDS_MAX = 999

/** What the ids of a shard end in: nothing on the first one, else such as `~1`. */
export const markOf = (number: number): string => (number === 0 ? '' : `~${number}`)

const MARK = /~([1-9]\d{0,2})$/

/** The shard that an id names; 0 where it has no mark, as ids of a single database have none. */
export const shardOfId = (id: string): number => Number(MARK.exec(id)?.[1] ?? 0)

/** Of what there is one for each shard, in their order, the one of a run; throws `not_found` where there is no such shard. */
export const ofShard = <T>(shards: readonly T[], run: string): T => {
  const number = shardOfId(run)
  const found = shards[number]
  if (found === undefined)
    throw new LeaseholdError(
      'not_found',
      `there is no run ${run}: its shard is ${number}, of ${shards.length} that are numbered from 0`,
      { run },
    )
  return found
}

/** The id as it stands on its shard, such as `run_0k3v1hm2s001c4u8t1q~1`; one that has a mark is left as it is, and refused elsewhere. */
export const marked = (id: string, shard: number): string =>
  shardOfId(id) !== 0 ? id : `${id}${markOf(shard)}`

/** Names runs as those of this shard. */
export const shardIds = (ids: Ids, { number }: Shard): Ids => ({
  next(noun) {
    const id = ids.next(noun)
    return noun === 'run' ? marked(id, number) : id
  },
})

/** An id that follows from another one, on its shard. */
export const withTail = (id: string, tail: string): string =>
  marked(`${id.replace(MARK, '')}${tail}`, shardOfId(id))

/** A new id on the shard of another one: children and what continues a run stay beside it. */
export const besideOf = (kin: string, id: string): string => marked(id, shardOfId(kin))

/** The shard of an owner's runs. Those without an owner are together on one. */
export const shardOfOwner = (owner: string, count: number): number => {
  const [a = 0, b = 0, c = 0, d = 0] = digest(owner)
  return (((a << 24) | (b << 16) | (c << 8) | d) >>> 0) % count
}

/** A shard's part of a limit across owners; all parts add up to the limit. Null is no limit. */
export const shareOf = (value: number | null, { number, count }: Shard): number | null =>
  value === null ? null : Math.floor(value / count) + (number < value % count ? 1 : 0)

/** Whether some shard would have nothing of it for ever, where others have something. */
export const tooSmall = (value: number | null, count: number): boolean =>
  value !== null && value > 0 && value < count
