// Pause and resume. A pause is a fact on the run: at once where nobody holds it, at the next end of a step or attempt else.
import { utc } from '../kernel/time.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Run, RunStatus } from '../model/run.ts'
import { isTerminal, moved } from '../model/run.ts'
import { due } from '../model/settle.ts'
import type { Wait } from '../model/wait.ts'
import { settleWaits } from '../model/wait.ts'
import { approvalsSettled, follows } from '../store/consequences.ts'
import { lockCurrent } from '../store/current.ts'
import { writeRuns } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { insertEvents } from '../store/tables/journal.ts'
import {
  liveWaits,
  putWaits,
  signalOf,
  takeSignals,
  unreadSignals,
  waitOf,
} from '../store/tables/waits.ts'

export type PauseAnswer = Outcome<{ readonly run: string; readonly status: RunStatus }>

export function* pause(
  tx: Tx,
  id: string,
  by: string,
  why: string | null,
): Steps<{ answer: PauseAnswer; follow: Follow }> {
  const follow = nothing()
  const run = yield* lockCurrent(id)
  if (!run) return { answer: refuse('not_found', `there is no run ${id}`, { run: id }), follow }
  if (isTerminal(run.status)) return { answer: ended(run), follow }
  if (run.pauseRequestedAt !== null)
    return { answer: { ok: true, run: run.id, status: run.status }, follow }
  const asked = { pauseRequestedAt: tx.now, pauseBy: by }
  const note = `paused by ${by}${why === null ? '' : `: ${why}`}`
  const held = run.status === 'running' || run.status === 'canceling'
  const next = held
    ? moved(run, 'askPause', run.status, tx.now, asked)
    : moved(run, 'pause', 'paused', tx.now, {
        ...asked,
        waitOn: run.waitOn,
        readyAt: run.readyAt,
        reason: 'paused',
        note,
      })
  follows(follow, run, next)
  if (held)
    follow.told.push({
      session: run.session ?? '',
      run: run.id,
      attempt: run.attempt,
      directive: 'pause',
      note,
    })
  yield* ask(
    writeRuns([next]),
    insertEvents([
      {
        run: run.id,
        rev: next.rev,
        seq: 0,
        kind: 'run.pause_requested',
        actor: by,
        data: JSON.stringify({ why, was: run.status }),
      },
    ]),
  )
  return { answer: { ok: true, run: run.id, status: next.status }, follow }
}

/** Whether it was set back by a delay of its own attempts: at that instant none of its waits is due. */
const standsBack = (run: Run, live: readonly Wait[]): boolean =>
  run.waitOn === 'time' && !live.some((wait) => wait.state === 'open' && wait.dueAt === run.readyAt)

export function* resume(
  tx: Tx,
  id: string,
  by: string,
): Steps<{ answer: PauseAnswer; follow: Follow }> {
  const follow = nothing()
  const run = yield* lockCurrent(id)
  if (!run) return { answer: refuse('not_found', `there is no run ${id}`, { run: id }), follow }
  if (isTerminal(run.status)) return { answer: ended(run), follow }
  if (run.pauseRequestedAt === null)
    return {
      answer: refuse('not_paused', `${run.id} is ${run.status} and no pause was asked`, {
        run: run.id,
        status: run.status,
      }),
      follow,
    }
  const clear = {
    pauseRequestedAt: null,
    pauseBy: null,
    losses: 0,
    suspectSince: null,
    handBacks: 0,
  }
  const event = (rev: number) =>
    insertEvents([
      {
        run: run.id,
        rev,
        seq: 0,
        kind: 'run.resumed',
        actor: by,
        data: JSON.stringify({ was: run.status, reason: run.reason }),
      },
    ])
  if (run.status !== 'paused') {
    // the pause had not taken effect yet
    const next = moved(
      run,
      run.status === 'running' || run.status === 'canceling' ? 'askPause' : 'note',
      run.status,
      tx.now,
      clear,
    )
    follows(follow, run, next)
    yield* ask(writeRuns([next]), event(next.rev))
    return { answer: { ok: true, run: run.id, status: next.status }, follow }
  }
  const [waits, signals] = yield* ask(liveWaits([run.id]), unreadSignals([run.id]))
  const live = waits.map(waitOf)
  const settled = settleWaits(live, signals.map(signalOf), tx.now)
  const satisfied =
    settled.waits.length > 0 ||
    live.some((wait) => wait.state !== 'open') ||
    (run.readyAt !== null && run.readyAt <= tx.now)
  const cleared: Run = { ...run, ...clear }
  const keeps = run.waitOn !== null && !satisfied && run.waitOn !== 'slot'
  const next = keeps
    ? moved(cleared, 'resume', 'waiting', tx.now, {
        waitOn: run.waitOn,
        readyAt: run.readyAt,
        reason: standsBack(run, live) ? (run.failures > 0 ? 'retry' : 'handed_back') : null,
        note: null,
      })
    : run.waitOn === 'slot' && run.readyAt !== null && run.readyAt > tx.now
      ? moved(cleared, 'resume', 'waiting', tx.now, {
          waitOn: 'slot',
          readyAt: run.readyAt,
          reason: 'delayed',
          note: null,
        })
      : due(cleared, 'resume', tx.now)
  follows(follow, run, next)
  yield* ask(
    writeRuns([next]),
    putWaits(settled.waits, () => next.rev),
    takeSignals(settled.signals),
    ...approvalsSettled(settled.waits, () => next.rev),
    event(next.rev),
  )
  return { answer: { ok: true, run: run.id, status: next.status }, follow }
}

const ended = (run: Run) =>
  refuse(
    'already_ended',
    `${run.id} is ${run.status} since ${utc(run.endedAt ?? run.createdAt)}; an end is final`,
    {
      run: run.id,
      status: run.status,
    },
  )
