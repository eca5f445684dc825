// What sinks say of a notice: texts of a bounded length, since what a run failed with can be long.
import type { Message } from '../../model/delivery.ts'

const SENTENCE_MAX = 4_000
const DATA_MAX = 64 * 1024

export const clipped = (text: string, most = SENTENCE_MAX): string =>
  text.length <= most ? text : `${text.slice(0, most)} … (${text.length - most} more)`

/** On one line: nothing in it ends a header, or a subject. */
export const oneLine = (text: string, most: number): string =>
  clipped(text.replace(/\p{C}+/gu, ' ').trim(), most)

/** The notice as JSON, for programs; data that is too long is left out, openly. */
export const payloadOf = (message: Message): Readonly<Record<string, unknown>> => {
  const { run, occurrence, workflow, owner, sentence, data } = message
  const text = JSON.stringify(data ?? null)
  return {
    id: message.id,
    kind: message.kind,
    run,
    occurrence,
    workflow,
    owner,
    sentence: clipped(sentence),
    data: text.length <= DATA_MAX ? data : { omitted: `${text.length} bytes` },
  }
}

const titles: Readonly<Record<Message['kind'], string>> = {
  start_overdue: 'A start is overdue',
  start_refused: 'A start was refused',
  attempt_lost: 'An attempt was lost',
  executor_lost: 'An executor was lost',
  run_failed: 'A run failed',
  run_stuck: 'A run is stuck',
  approval_asked: 'An approval is asked for',
  approval_lapsing: 'An approval is about to lapse',
  on_end_not_started: 'What was to run at an end was not started',
  on_end_failed: 'What ran at an end failed',
  tick_refused: 'A schedule could not start its run',
  order_set_aside: 'An order was set aside',
}

export const titleOf = ({ kind }: Message): string => titles[kind]
