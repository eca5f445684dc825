// A signal: kept until a wait of its name takes it, first in, first out; the sender's id removes duplicates.
import { jsonFault, shown } from '../kernel/json.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { isName, NAME_EXPECTED } from '../model/definition.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Run } from '../model/run.ts'
import { isHeld, isTerminal, moved } from '../model/run.ts'
import { due } from '../model/settle.ts'
import type { Settings } from '../model/settings.ts'
import type { Wait } from '../model/wait.ts'
import { settleWaits } from '../model/wait.ts'
import { approvalsSettled, follows } from '../store/consequences.ts'
import { lockCurrent } from '../store/current.ts'
import { writeRuns } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import {
  addSignal,
  liveWaits,
  putWaits,
  signalById,
  signalOf,
  signalTotals,
  takeSignals,
  unreadSignals,
  waitOf,
} from '../store/tables/waits.ts'

export interface SignalCommand {
  readonly run: string
  /** The sender's own id; minted by the client where none is given. */
  readonly id: string
  readonly name: string
  /** JSON text. */
  readonly payload: string | null
  readonly by: string | null
}
export type SignalAnswer = Outcome<{
  readonly run: string
  readonly id: string
  readonly duplicate: boolean
}>

export function* signal(
  tx: Tx,
  command: SignalCommand,
  settings: Settings,
): Steps<{ answer: SignalAnswer; follow: Follow }> {
  const follow = nothing()
  const run = yield* lockCurrent(command.run)
  if (!run)
    return {
      answer: refuse('not_found', `there is no run ${command.run}`, { run: command.run }),
      follow,
    }
  const [[known], [totals], waits, unread] = yield* ask(
    signalById(run.id, run.series, command.id),
    signalTotals(run.id),
    liveWaits([run.id]),
    unreadSignals([run.id]),
  )
  if (known) return { answer: { ok: true, run: run.id, id: known.id, duplicate: true }, follow }
  if (isTerminal(run.status))
    return {
      answer: refuse('already_ended', `${run.id} is ${run.status}; it takes no more signals`, {
        run: run.id,
        status: run.status,
      }),
      follow,
    }
  const fault = commandFault(command)
  if (fault) return { answer: fault, follow }
  const bytes = Buffer.byteLength(command.payload ?? '')
  const sums = totals ?? { seq: 0, unread: 0, bytes: 0 }
  if (bytes > settings.payloadMaxBytes)
    return {
      answer: refuse(
        'payload_too_large',
        `the signal has ${bytes} bytes; the limit is ${settings.payloadMaxBytes}`,
        { bytes, limit: settings.payloadMaxBytes },
      ),
      follow,
    }
  if (sums.unread >= settings.signalsMax || sums.bytes + bytes > settings.signalsMaxBytes)
    return {
      answer: refuse(
        'signals_full',
        `${run.id} has ${sums.unread} unread signals of ${sums.bytes} bytes; the limits are ${settings.signalsMax} and ${settings.signalsMaxBytes}`,
        { run: run.id, unread: sums.unread },
      ),
      follow,
    }
  const mine = {
    run: run.id,
    id: command.id,
    seq: sums.seq + 1,
    name: command.name,
    payload: command.payload,
    takenBy: null,
  }
  const live = waits.map(waitOf)
  const settled = settleWaits(live, [...unread.map(signalOf), mine], tx.now)
  const next = afterFact(run, settled.waits, tx.now)
  follows(follow, run, next)
  if (isHeld(run.status) && settled.waits.length > 0)
    follow.told.push({
      session: run.session ?? '',
      run: run.id,
      attempt: run.attempt,
      directive: 'waits',
      note: null,
    })
  yield* ask(
    addSignal(mine, bytes, command.by),
    takeSignals(settled.signals),
    putWaits(settled.waits, () => next.rev),
    ...approvalsSettled(settled.waits, () => next.rev),
    writeRuns([next]),
  )
  return { answer: { ok: true, run: run.id, id: command.id, duplicate: false }, follow }
}

const commandFault = ({ id, name, payload }: SignalCommand) => {
  for (const [what, text] of Object.entries({ id, name }))
    if (!isName(text))
      return refuse(
        'invalid_request',
        `the ${what} of the signal is ${shown(text)}; expected ${NAME_EXPECTED}`,
        { what },
      )
  const broken = payload === null ? null : jsonFault(payload)
  return broken === null
    ? undefined
    : refuse('invalid_request', `the payload of the signal cannot be kept: ${broken}`)
}

/** A run after a fact was recorded that satisfies these of its waits: due where it stood at them, else only its `rev` is raised. */
export const afterFact = (run: Run, satisfied: readonly Wait[], now: number): Run => {
  if (run.status === 'waiting' && satisfied.length > 0 && standsAtWaits(run))
    return due(run, 'wake', now)
  if (isHeld(run.status)) return moved(run, 'checkpoint', run.status, now)
  return moved(run, 'note', run.status, now, {
    waitOn: run.waitOn,
    readyAt: run.readyAt,
    reason: run.reason,
    note: run.note,
  })
}

/** In line for a slot, or set back by a delay of its own attempts, a run is not waiting for what came. */
const standsAtWaits = (run: Run): boolean =>
  run.waitOn !== 'slot' &&
  !(run.waitOn === 'time' && (run.reason === 'retry' || run.reason === 'handed_back'))
