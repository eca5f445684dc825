// What must hold of two databases that are one store: after each act of a world of them, and at its end.
import { shardOfId, shardOfOwner } from '../../src/model/shard.ts'

export interface ShardRow {
  readonly id: string
  readonly workflow: string
  readonly owner: string
  readonly key: string | null
  readonly status: string
  readonly parent: string | null
  readonly retry_of: string | null
  readonly on_end_of: string | null
  readonly on_end: string | null
  readonly series: string
}

export interface ShardRows {
  readonly runs: readonly ShardRow[]
  readonly notices: readonly { readonly run: string; readonly kind: string }[]
}

export interface Acknowledged {
  readonly id: string
  readonly owner: string
  readonly key: string | null
}

/** No more of these than so many are held at once, over all databases. */
export const LIMIT = 3
const OVER = ['succeeded', 'failed', 'canceled']

/** What is wrong at any time, in a sentence; null where nothing is. */
export const brokenNow = (shards: readonly ShardRows[]): string | null => {
  const count = shards.length
  const keys = new Set<string>()
  let limited = 0
  for (const [number, { runs, notices }] of shards.entries()) {
    const here = new Map(runs.map((run) => [run.id, run]))
    for (const run of runs) {
      if (shardOfId(run.id) !== number)
        return `${run.id} is on shard ${number}, where nobody looks for it`
      const from = run.parent ?? run.retry_of ?? run.on_end_of
      if (from !== null && !here.has(from)) return `${run.id} is not beside ${from}`
      if (from === null && run.series === run.id && shardOfOwner(run.owner, count) !== number)
        return `${run.id} of the owner ${run.owner} is on shard ${number}`
      if (run.key !== null && run.series === run.id && run.retry_of === null) {
        const key = `${run.owner} ${run.workflow} ${run.key}`
        if (keys.has(key)) return `two runs have the key ${key}`
        keys.add(key)
      }
      if (run.workflow === 'limited' && ['queued', 'running', 'canceling'].includes(run.status))
        limited += 1
    }
    const lost = notices.find(({ run }) => run.startsWith('run_') && !here.has(run))
    if (lost)
      return `the notice ${lost.kind} of ${lost.run} is on shard ${number}, and the run is not`
  }
  return limited > LIMIT ? `${limited} runs hold a limit of ${LIMIT}` : null
}

/** What is wrong when all has come to rest. */
export const brokenAtEnd = (
  shards: readonly ShardRows[],
  started: readonly Acknowledged[],
): string | null => {
  for (const { id, owner, key } of started) {
    const rows = shards[shardOfId(id)]
    if (!rows?.runs.some((run) => run.id === id))
      return `the start of ${id} by ${owner} (${key ?? 'no key'}) was acknowledged, and it is not where its id leads`
  }
  for (const { runs, notices } of shards)
    for (const run of runs) {
      if (!OVER.includes(run.status)) return `${run.id} is ${run.status} for ever`
      if (run.status === 'failed' && run.workflow !== 'fails')
        return `${run.id} of ${run.workflow} failed, which nothing in this world gives it reason to`
      if (run.on_end !== null && run.status !== 'succeeded') {
        if (!runs.some(({ on_end_of }) => on_end_of === run.id))
          return `nothing runs at the end of ${run.id}`
      }
      if (run.status === 'failed' && !notices.some((each) => each.run === run.id))
        return `nobody is told that ${run.id} failed`
    }
  return null
}
