// How the store is, as this process finds it: what keeps it from being written, and when each sweep has passed by a clock that
// does not jump. Both are asked for by `/readyz`.
import { Fault } from '../kernel/errors.ts'
import type { FaultCode } from '../kernel/codes.ts'
import type { Time } from '../kernel/time.ts'
import type { SincePass } from '../queries/operations.ts'
import type { Store } from '../store/store.ts'

export interface Refusal {
  readonly code: FaultCode
  readonly message: string
}

const OF_THE_STORE: readonly FaultCode[] = [
  'store_unavailable',
  'store_full',
  'store_read_only',
  'store_damaged',
  'store_moved',
]

/** On a full disk small writes go through where large ones do not: one that did proves nothing so soon. */
const FULL_MS = 10_000

/** The store, and what its last write was refused for; null once one went through. Sweeps write each second. */
export const noted = <S extends Store>(
  store: S,
  time: Time,
): { readonly store: S; refusal(): Refusal | null } => {
  let refused: Refusal | null = null
  let until = Number.NEGATIVE_INFINITY
  const asked: Pick<Store, 'run'> = {
    async run(transaction, manner, behind) {
      try {
        const answer = await store.run(transaction, manner, behind)
        if (refused && time.mono() >= until) refused = null
        return answer
      } catch (error) {
        if (error instanceof Fault && OF_THE_STORE.includes(error.code as FaultCode)) {
          refused = { code: error.code as FaultCode, message: error.message }
          until = time.mono() + (error.code === 'store_full' ? FULL_MS : 0)
        }
        throw error
      }
    },
  }
  return { store: Object.assign(Object.create(store) as S, asked), refusal: () => refused }
}

export interface Passes {
  passed(sweep: string): void
  readonly since: SincePass
}

/** A file has one process that sweeps; of a database others may have swept later, as its rows say. */
export const makePasses = (time: Time, alone: boolean): Passes => {
  const opened = time.mono()
  const passes = new Map<string, number>()
  return {
    passed: (sweep) => void passes.set(sweep, time.mono()),
    since(sweep, byStoreMs) {
      const own = passes.get(sweep) ?? (alone ? opened : undefined)
      if (own === undefined) return byStoreMs
      const ms = time.mono() - own
      return alone ? ms : Math.min(ms, byStoreMs)
    },
  }
}
