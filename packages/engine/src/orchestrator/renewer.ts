// One renewal, written and answered, without what follows from it in the process that serves: a thread with a connection of
// its own may send it too.
import type { RenewAnswer, RenewRequest } from '../model/work.ts'
import type { Store } from '../store/store.ts'
import { renew } from '../transitions/renew.ts'

/** Renews a session's lease; what it lists as let go is only looked up. */
export const renewOn = async (store: Store, request: RenewRequest): Promise<RenewAnswer> => {
  const { session, status, draining, letGo } = request
  const answer = await store.run((tx) => renew(tx, session, status, draining, letGo), 'urgent')
  if (!answer.ok) return answer
  const { now, told, pending } = answer
  return {
    ok: true,
    now,
    leaseUntil: answer.session.lease_until,
    told,
    pending,
    wantsList: false,
  }
}
