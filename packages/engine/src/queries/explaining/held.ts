// What is to be said of a run that somebody holds: who, since when, and what is asked of the holder.
import { inWords } from '../../kernel/duration.ts'
import { utc as at } from '../../kernel/time.ts'
import { noProgressSince } from '../run-view.ts'
import type { Condition, Facts } from './facts.ts'

export const heldBy = (facts: Facts): Condition[] => {
  const { run, now, settings } = facts
  const held = holding(facts)
  const progress: Condition = {
    code: 'no_progress_since',
    sentence: `no new entry since ${at(noProgressSince(run) ?? now)}, held by ${run.session}`,
    since: noProgressSince(run),
    evidence: { session: run.session, entries: run.entries, progressAt: run.progressAt },
  }
  if (run.status === 'canceling') {
    const until = (run.cancelRequestedAt ?? now) + settings.cancelGraceMs
    return [
      {
        code: 'canceling',
        sentence: `canceled by ${run.cancelBy ?? 'somebody'} at ${at(run.cancelRequestedAt ?? now)}; its holder has until ${at(until)} to settle`,
        since: run.cancelRequestedAt,
        evidence: { by: run.cancelBy, graceUntil: until, session: run.session },
      },
      held,
      progress,
    ]
  }
  const asked: Condition[] =
    run.pauseRequestedAt === null
      ? []
      : [
          {
            code: 'pause_asked',
            sentence: `${run.pauseBy ?? 'somebody'} asked for a pause at ${at(run.pauseRequestedAt)}; it takes effect at the next end of a step or attempt, and a run that ends by then keeps its end`,
            since: run.pauseRequestedAt,
            evidence: { by: run.pauseBy },
          },
        ]
  return [held, ...asked, progress]
}

const holding = ({ run, now, holder, settings }: Facts): Condition => {
  const since = run.leasedAt ?? 0
  const evidence = {
    session: run.session,
    attempt: run.attempt,
    leasedAt: run.leasedAt,
    host: holder?.host ?? null,
    pid: holder?.pid ?? null,
    build: holder?.build ?? null,
    state: holder?.state ?? 'missing',
    renewedAt: holder?.renewed_at ?? null,
    leaseUntil: holder?.lease_until ?? null,
    attemptDeadline: run.attemptDeadline,
    deadline: run.deadline,
  }
  const who = `attempt ${run.attempt} of ${run.session}`
  if (!holder || holder.state === 'ended')
    return {
      code: 'holder_ended',
      sentence: `${who} holds it, but that session ${holder ? `was ended (${holder.end_reason}: ${holder.evidence})` : 'does not exist'}; a sweep takes it back within ${inWords(settings.sweepMs)}`,
      since,
      evidence,
    }
  const where = `${holder.host}, process ${holder.pid}`
  const lease =
    holder.lease_until === null
      ? 'for as long as that process lives'
      : holder.lease_until < now
        ? `; the lease lapsed at ${at(holder.lease_until)} and a sweep is due`
        : `; the lease runs until ${at(holder.lease_until)}`
  return {
    code: 'held',
    sentence: `${who} (${where}) has held it since ${at(since)}${lease.startsWith(';') ? '' : ' '}${lease}`,
    since,
    evidence,
  }
}
