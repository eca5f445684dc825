// An order failed by its content: trying it again may mend it, when a build is replaced for instance, and will not for ever.
// After so many tries it is set aside, which people are told; it is lost in no case.
import type { Follow } from '../model/follow.ts'
import type { Notice } from '../model/notice.ts'
import { nothing } from '../model/follow.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { tell, toldNow } from '../store/tables/notices.ts'
import { failOrder as fail } from '../store/tables/orders.ts'

/** Puts the order off for `ms`, or aside at its `most`th failure; `aside` says which. */
export function* failOrder(
  _tx: Tx,
  id: string,
  ms: number,
  error: string,
  most: number,
): Steps<{ aside: boolean; follow: Follow }> {
  const follow = nothing()
  const [[failed]] = yield* ask(fail(id, ms, error, most))
  if (!failed || failed.set_aside_at === null) return { aside: false, follow }
  const notice: Notice = {
    run: failed.id,
    kind: 'order_set_aside',
    // one that is tried anew and set aside again is told of again
    occurrence: String(failed.set_aside_at),
    sentence: `the order ${failed.id} (${failed.kind} of ${failed.run}) failed ${failed.failures} times and is set aside: ${error}; mend its cause and call leasehold orders ${failed.id} --retry, or --drop it`,
    data: { order: failed.id, kind: failed.kind, run: failed.run, failures: failed.failures },
  }
  const [, stored] = yield* finish(...tell([notice]))
  follow.notices.push(...toldNow([notice], stored))
  return { aside: true, follow }
}
