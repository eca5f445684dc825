// How long texts may be that stand in an index: PostgreSQL refuses an index row of more than 2,704 bytes, whole batches with it,
// so what would not fit is refused by name before. Both stores have the one bound.
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'

/** What has keys in what an attempt writes. */
interface Keyed {
  readonly run: string
  readonly entries: readonly { readonly key: string }[]
  readonly waits?: readonly { readonly key: string }[]
  readonly spawns?: readonly { readonly as: string }[]
}

/** Bytes of a key of the journal in UTF-8: names of scopes and of what stands in them, together. */
export const KEY_MAX = 1_999

/** Bytes that the columns of one index may have together; the rest is for their heads and for numbers beside them. */
const INDEXED_MAX = 2_600

/** Where a run's key goes, its id goes twice: a child's key names the run that started it, beside the run that is its parent. */
const keyMax = (run: string): number => Math.min(KEY_MAX, INDEXED_MAX - 2 * Buffer.byteLength(run))

/** The refusal of a write whose keys no index can hold. */
export const keyFault = ({ run, entries, waits, spawns }: Keyed): Refusal | null => {
  const most = keyMax(run)
  const over = (key: unknown): key is string =>
    // a code unit takes three bytes at most: most keys need no count
    typeof key === 'string' && key.length * 3 > most && Buffer.byteLength(key) > most
  const long = [
    ...entries.map(({ key }) => key),
    ...(waits ?? []).map(({ key }) => key),
    ...(spawns ?? []).map(({ as }) => as),
  ].find(over)
  return long === undefined
    ? null
    : refuse(
        'invalid_request',
        `the key ${long.slice(0, 40)}… has ${Buffer.byteLength(long)} bytes; the limit is ${most}. Give its scopes shorter names`,
        { run, limit: most },
      )
}

/** The refusal of a run, of this id, whose lane no index can hold; without one it is that of a lane which could have no run. */
export const laneFault = (lane: string, id = ''): Refusal | null => {
  const bytes = Buffer.byteLength(lane) + Buffer.byteLength(id)
  return bytes <= INDEXED_MAX
    ? null
    : refuse(
        'invalid_request',
        `queue, workflow, version and labels${id === '' ? '' : ', with the id of the run,'} have ${bytes} bytes together; the limit is ${INDEXED_MAX}. Give them shorter names, or fewer labels`,
        { bytes, limit: INDEXED_MAX },
      )
}
