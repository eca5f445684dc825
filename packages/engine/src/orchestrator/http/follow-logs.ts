// What the attempts of a run write, as it comes. A line's place is its attempt and its number there, so that a reader who comes
// back goes on after the last line that it has.
import { INT_MAX, placeIn } from '../../kernel/numbers.ts'
import { readOr, stored } from '../../kernel/stored.ts'
import type { LogPlace, ShownLine } from '../../model/log.ts'
import type { Message } from '../../protocol/sse.ts'
import { logPage } from '../../queries/logs.ts'
import { awaitChange } from './await-change.ts'
import type { Engine } from '../engine.ts'
import type { Source } from './event-stream.ts'

const LINES_A_TIME = 500
/** After the end of an attempt its last lines may be on their way for so long. */
const LATE_MS = 1_000

/** `attempt:number`, or a number in the attempt that was asked for. */
export const logPlace = (after: string | undefined, attempt: number | null): LogPlace => {
  const [, of, n] = /^(?:(\d+):)?(\d+)$/.exec(after ?? '') ?? []
  const inAttempt = of === undefined ? (attempt ?? 0) : placeIn(of, INT_MAX)
  // what is no place of a line is before the first
  return {
    attempt: inAttempt,
    n: inAttempt === Number(of ?? inAttempt) ? placeIn(n, Number.MAX_SAFE_INTEGER) : 0,
  }
}

/** A line as people get it. */
export const shownLine = (line: ShownLine) => ({
  ...line,
  facts: readOr(
    () => (line.facts === null ? null : stored(line.facts, 'the facts of a line')),
    (sentence): unknown => ({ unreadable: sentence }),
  ),
})

export const followLogs = (
  engine: Engine,
  run: string,
  attempt: number | null,
  after: LogPlace,
): Source =>
  async function* (signal): AsyncGenerator<Message, void, undefined> {
    const { hub, ports, settings } = engine
    let place = after
    let endsAt: number | null = null
    while (!signal.aborted) {
      const change = awaitChange(
        (hear) => {
          const stops = [hub.onLogged(run, hear), hub.onChanged(run, hear)]
          return () => stops.forEach((stop) => stop())
        },
        ports.timers,
        signal,
      )
      const from = place
      const page = await engine.read((tx) => logPage(tx, run, attempt, from, LINES_A_TIME))
      if (!page) return change.drop()
      for (const line of page.lines) {
        place = { attempt: line.attempt, n: line.n }
        yield { event: 'line', id: `${line.attempt}:${line.n}`, data: shownLine(line) }
      }
      if (page.more) {
        change.drop()
        continue
      }
      const now = ports.time.mono()
      if (!page.over) endsAt = null
      else if (endsAt === null || page.lines.length > 0) endsAt = now + LATE_MS
      else if (now >= endsAt) {
        change.drop()
        yield { event: 'end', id: null, data: { status: page.status } }
        return
      }
      await change.wait(endsAt === null ? settings.pollMs : Math.max(1, endsAt - now))
    }
  }
