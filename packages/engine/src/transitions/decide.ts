// A decision on an approval: once, before its deadline by the store's clock, under the run's lock. The second decider is
// told of the first decision; a late one writes the lapse.
import { utc } from '../kernel/time.ts'
import { jsonFault } from '../kernel/json.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { storedTexts } from '../kernel/stored.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import { isHeld, isTerminal } from '../model/run.ts'
import type { Settings } from '../model/settings.ts'
import { follows } from '../store/consequences.ts'
import { lockRuns, runOf } from '../store/move/run-row.ts'
import { writeRuns } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { insertEvents } from '../store/tables/journal.ts'
import type { ApprovalRow } from '../store/tables/waits.ts'
import { approval, decideApprovals, liveWaits, putWaits, waitOf } from '../store/tables/waits.ts'
import { afterFact } from './signal.ts'

export interface DecideCommand {
  readonly approval: string
  readonly decision: 'approved' | 'denied'
  readonly by: string
  readonly reason: string | null
  /** JSON text that the decider adds. */
  readonly payload: string | null
}
export type DecideAnswer = Outcome<{
  readonly approval: string
  readonly run: string
  readonly decision: 'approved' | 'denied'
  readonly by: string
  readonly at: number
}>

export function* decide(
  tx: Tx,
  command: DecideCommand,
  settings: Settings,
): Steps<{ answer: DecideAnswer; follow: Follow }> {
  const follow = nothing()
  const unknown = refuse(
    'not_found',
    `there is no approval ${command.approval}; its id is made of its run and its key, as in run_…:ship`,
    { approval: command.approval },
  )
  const [[first]] = yield* ask(approval(command.approval))
  if (!first) return { answer: unknown, follow }
  const [[row], [asked], waits] = yield* ask(
    lockRuns([first.run]),
    approval(command.approval),
    liveWaits([first.run]),
  )
  if (!row || !asked) return { answer: unknown, follow }
  const run = runOf(row)
  const bytes = Buffer.byteLength(command.payload ?? '') + Buffer.byteLength(command.reason ?? '')
  if (bytes > settings.payloadMaxBytes)
    return {
      answer: refuse(
        'payload_too_large',
        `the decision has ${bytes} bytes; the limit is ${settings.payloadMaxBytes}`,
        { bytes },
      ),
      follow,
    }
  const broken = command.payload === null ? null : jsonFault(command.payload)
  if (broken !== null)
    return {
      answer: refuse('invalid_request', `the payload of the decision cannot be kept: ${broken}`),
      follow,
    }
  if (asked.state !== 'open') return { answer: decidedAlready(asked), follow }
  const deciders = storedTexts(asked.deciders, `the list of deciders of ${asked.id}`)
  if (deciders.length > 0 && !deciders.includes(command.by))
    return {
      answer: refuse(
        'not_allowed',
        `${command.by} may not decide ${asked.id}; allowed: ${deciders.join(', ')}`,
        { by: command.by, deciders },
      ),
      follow,
    }
  if (isTerminal(run.status))
    return {
      answer: refuse('already_ended', `${run.id} is ${run.status}`, {
        run: run.id,
        status: run.status,
      }),
      follow,
    }
  const late = tx.now >= asked.deadline
  const state = late ? 'lapsed' : command.decision
  const result = JSON.stringify({
    decision: command.decision,
    by: command.by,
    reason: command.reason,
    at: tx.now,
    payload: command.payload === null ? null : (JSON.parse(command.payload) as unknown),
  })
  const wait = waits.map(waitOf).find((each) => each.key === asked.key && each.state === 'open')
  const settled = wait
    ? [
        {
          ...wait,
          state: late ? ('lapsed' as const) : ('satisfied' as const),
          result: late ? null : result,
        },
      ]
    : []
  const next = afterFact(run, settled, tx.now)
  follows(follow, run, next)
  if (isHeld(run.status) && settled.length > 0)
    follow.told.push({
      session: run.session ?? '',
      run: run.id,
      attempt: run.attempt,
      directive: 'waits',
      note: null,
    })
  yield* ask(
    decideApprovals([
      {
        id: asked.id,
        state,
        decided_by: late ? null : command.by,
        reason: late ? 'the deadline passed' : command.reason,
        payload: late ? null : command.payload,
        rev: next.rev,
      },
    ]),
    putWaits(settled, () => next.rev),
    writeRuns([next]),
    insertEvents([
      {
        run: run.id,
        rev: next.rev,
        seq: 0,
        kind: late ? 'approval.lapsed' : 'approval.decided',
        actor: command.by,
        data: JSON.stringify({
          approval: asked.id,
          decision: command.decision,
          reason: command.reason,
        }),
      },
    ]),
  )
  if (late)
    return {
      answer: refuse(
        'approval_lapsed',
        `the deadline of ${asked.id} passed at ${utc(asked.deadline)}; it is ${utc(tx.now)} now`,
        { approval: asked.id, deadline: asked.deadline },
      ),
      follow,
    }
  return {
    answer: {
      ok: true,
      approval: asked.id,
      run: run.id,
      decision: command.decision,
      by: command.by,
      at: tx.now,
    },
    follow,
  }
}

const decidedAlready = (asked: ApprovalRow) =>
  asked.state === 'lapsed'
    ? refuse('approval_lapsed', `the deadline of ${asked.id} passed at ${utc(asked.deadline)}`, {
        approval: asked.id,
        deadline: asked.deadline,
      })
    : refuse(
        'already_decided',
        `${asked.id} is ${asked.state}${asked.decided_by === null ? '' : ` by ${asked.decided_by}`} since ${utc(asked.decided_at ?? asked.created_at)}`,
        {
          approval: asked.id,
          decision: asked.state,
          by: asked.decided_by,
          at: asked.decided_at,
          reason: asked.reason,
        },
      )
