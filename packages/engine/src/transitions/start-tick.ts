// Starts the run of a tick, in the transaction that fires it. The run's id follows from the schedule and the tick, so that a
// repeat finds it and starts nothing.
import { idOf } from '../kernel/ids.ts'
import { readOr, storedTexts } from '../kernel/stored.ts'
import type { Refusal } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { merge } from '../model/follow.ts'
import type { Shard } from '../model/shard.ts'
import { marked } from '../model/shard.ts'
import type { PlanContext } from '../model/start.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, within } from '../store/sql.ts'
import { tell } from '../store/tables/notices.ts'
import type { ScheduleRow } from '../store/tables/schedules.ts'
import { settleTick } from '../store/tables/schedules.ts'
import type { StartAnswer, StartItem } from './start.ts'
import { knownStarts, start } from './start.ts'

/** The id of a tick, and of its run, on this shard. */
export const tickId = (schedule: string, tick: number, { number }: Shard): string =>
  marked(idOf('run', tick, `${schedule}/${tick}`), number)

/**
 * Starts the run of a tick that is stored as `started`. Where the start is refused the tick is, and people are told; the
 * refusal is answered.
 */
export function* startTick(
  tx: Tx,
  schedule: ScheduleRow,
  id: string,
  by: string,
  context: PlanContext,
  follow: Follow,
): Steps<Refusal | null> {
  const item: StartItem = {
    command: {
      id,
      command: id,
      workflow: schedule.workflow,
      version: schedule.version,
      input: schedule.input,
      owner: schedule.owner,
      queue: schedule.queue,
      labels: readOr(
        () => storedTexts(schedule.labels, `the labels of the schedule ${schedule.name}`),
        () => [],
      ),
      priority: schedule.priority,
    },
    actor: by,
  }
  const { answers, follow: after } = yield* within(start(tx, [item], context, new Set()))
  merge(follow, after)
  const [first] = answers
  const answer: StartAnswer | undefined =
    first === 'known' ? (yield* within(knownStarts(tx, [item], context)))[0] : first
  if (answer === undefined || answer.ok) return null
  const notice = {
    run: id,
    kind: 'tick_refused' as const,
    occurrence: '',
    sentence: `the schedule ${schedule.name} could not start ${schedule.workflow}: ${answer.message}`,
    data: { schedule: schedule.name, workflow: schedule.workflow, code: answer.code },
  }
  yield* ask(settleTick(id, 'started', 'refused', answer.message), ...tell([notice]))
  follow.notices.push(notice)
  return answer
}
