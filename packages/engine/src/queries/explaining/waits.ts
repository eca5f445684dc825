// What a run waits on that is no slot: each of its waits, or the instant at which it goes on.
import { utc as at } from '../../kernel/time.ts'
import type { Run } from '../../model/run.ts'
import type { WaitRow } from '../../store/tables/waits.ts'
import { decidersOf, value } from '../run-view.ts'
import type { Condition, Facts } from './facts.ts'

export const waiting = (facts: Facts): Condition[] => {
  const { run } = facts
  const own = facts.waits.filter((wait) => onOf(wait) === run.waitOn)
  const rest = facts.waits.filter((wait) => !own.includes(wait))
  const stands = [...own, ...rest].map((wait) => waitingAt(wait, facts))
  if (run.waitOn === 'time' && (run.reason === 'retry' || run.reason === 'handed_back'))
    return [later(run), ...stands]
  if (stands.length > 0) return stands
  return run.readyAt === null
    ? [
        {
          code: 'unexplained',
          sentence: `it waits on ${run.waitOn} and nothing of that kind is recorded; look at its events`,
          since: run.progressAt,
          evidence: { waitOn: run.waitOn },
        },
      ]
    : [later(run)]
}

const onOf = (wait: WaitRow): string => (wait.kind === 'retry' ? 'time' : wait.kind)

const later = (run: Run): Condition => {
  const why =
    run.reason === 'retry'
      ? `its last attempt failed (${run.note ?? 'no reason given'}) and it is tried again`
      : run.reason === 'handed_back'
        ? `it was ${run.note ?? 'handed back'}, so the next claim is delayed`
        : 'it sleeps'
  return {
    code:
      run.reason === 'retry'
        ? 'retry_backoff'
        : run.reason === 'handed_back'
          ? 'hand_back_delay'
          : 'sleeping',
    sentence: `${why} ${run.reason === 'retry' ? 'at' : 'until'} ${run.readyAt === null ? 'an unknown time' : at(run.readyAt)}`,
    since: null,
    evidence: { until: run.readyAt, failures: run.failures, handBacks: run.handBacks },
  }
}

export const waitingAt = (
  wait: WaitRow & { readonly created_at: number },
  { approvals, children, now }: Facts,
): Condition => {
  const since = wait.created_at
  const limit = wait.due_at === null ? '' : `, until ${at(wait.due_at)}`
  const evidence = { key: wait.key, dueAt: wait.due_at, state: wait.state }
  if (wait.state !== 'open')
    return {
      code: 'wait_over',
      sentence: `its wait ${wait.key} (${wait.kind}) is ${wait.state}; it goes on with its next attempt`,
      since,
      evidence,
    }
  switch (wait.kind) {
    case 'signal':
      return {
        code: 'signal',
        sentence: `it waits for a signal named ${wait.name} since ${at(since)}${limit}`,
        since,
        evidence: { ...evidence, name: wait.name },
      }
    case 'approval': {
      const asked = approvals.find((each) => each.id === wait.name)
      const deciders = asked ? decidersOf(asked) : []
      return {
        code: 'approval',
        sentence: `it waits for a decision on “${asked?.prompt ?? wait.key}” since ${at(since)}${asked ? `, at the latest at ${at(asked.deadline)}` : ''}; ${deciders.length === 0 ? 'anybody may decide' : `${deciders.join(', ')} may decide`}`,
        since,
        evidence: {
          ...evidence,
          approval: wait.name,
          deadline: asked?.deadline ?? null,
          deciders,
        },
      }
    }
    case 'child': {
      const child = children.find((each) => each.id === wait.name)
      return {
        code: 'child',
        sentence: child
          ? `it waits for its child ${child.id}, which is ${child.status}${child.ended_at === null ? '' : ' and whose end is about to be told'}`
          : `it waits for its child ${wait.name}, which does not exist`,
        since,
        evidence: { ...evidence, child: wait.name, status: child?.status ?? null },
      }
    }
    case 'retry':
      return {
        code: 'step_retry',
        sentence: `the step ${wait.key} failed ${wait.tries} ${wait.tries === 1 ? 'time' : 'times'} and is tried again at ${at(wait.due_at ?? now)}`,
        since,
        evidence: { ...evidence, tries: wait.tries, error: value(wait, 'error') },
      }
    default:
      return {
        code: 'sleeping',
        sentence: `it sleeps (${wait.key}) since ${at(since)}${limit}`,
        since,
        evidence,
      }
  }
}
