// What a claim would be given now, to be offered: by the rules of the claim itself, with nothing locked and nothing written.
import { ask } from '../store/sql.ts'
import type { Steps, Tx } from '../store/sql.ts'
import type { LaneClaim, OfferRow } from '../store/move/claims.ts'
import { offerStatements } from '../store/move/claims.ts'
import { anyDue, withheldLanes } from '../store/tables/runs.ts'

export interface Claimable {
  /** In the order of their lanes; one that must be driven alone stands alone. */
  readonly rows: readonly OfferRow[]
  /** Lanes with a run that only this session may not have; every lane where a rule keeps it from some anywhere. */
  readonly withheld: ReadonlySet<string> | 'all'
  /** The instant of some run has come: it is to be woken first. */
  readonly due: boolean
}

export interface Claimant extends Omit<LaneClaim, 'lane' | 'from'> {
  readonly lanes: readonly Pick<LaneClaim, 'lane' | 'from'>[]
}

export function* claimable(_tx: Tx, { lanes, ...claim }: Claimant): Steps<Claimable> {
  const [due, kept, ...found] = yield* ask(
    anyDue(),
    withheldLanes(claim.except),
    ...lanes.flatMap((each) => offerStatements({ ...claim, ...each })),
  )
  const suspect = found.find((rows, i) => i % 2 === 0 && rows.length > 0)
  return {
    rows:
      suspect ??
      found
        .filter((_rows, i) => i % 2 === 1)
        .flat()
        .slice(0, claim.most),
    withheld: kept.some(({ lane }) => lane === '') ? 'all' : new Set(kept.map(({ lane }) => lane)),
    due: due.length > 0,
  }
}
