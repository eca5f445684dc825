// Lines that attempts have written (attempt_logs), in the parts in which they came.
import { stored } from '../../kernel/stored.ts'
import type { LogLine, LogPart, LogPlace } from '../../model/log.ts'
import type { Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'

const insert = sql<{ run: string; attempt: number }>(
  'logs.insert',
  `insert into attempt_logs (run, attempt, n, upto, place, size, lines)
   select b.run, b.attempt, b.n, b.upto,
          coalesce((select l.place + l.size from attempt_logs l where l.run = b.run and l.attempt = b.attempt order by l.n desc limit 1), 0),
          b.size, b.lines
     from {rows $1 as b: run text, attempt int, n bigint, upto bigint, size int, lines text}
    where exists (select 1 from runs r where r.id = b.run and r.attempt = b.attempt and r.session = $2)
       or exists (select 1 from attempts a where a.run = b.run and a.attempt = b.attempt and a.session = $2)
       on conflict do nothing returning run, attempt`,
)
/** Keeps parts of attempts that this session holds or has held; one that is there already is left as it is. */
export const insertLogs = (
  session: string,
  parts: readonly LogPart[],
): Statement<{ run: string; attempt: number }> =>
  statement(
    insert,
    rows(
      parts.map(({ run, attempt, lines }) => {
        const text = JSON.stringify(lines)
        const [first, last] = [lines[0], lines.at(-1)]
        return {
          run,
          attempt,
          n: first?.n ?? 0,
          upto: last?.n ?? 0,
          size: text.length,
          lines: text,
        }
      }),
    ),
    session,
  )

const trim = sql<{ run: string }>(
  'logs.trim',
  `delete from attempt_logs where run = $1 and attempt = $2 and place >= $3
      and place < (select max(l.place) from attempt_logs l where l.run = $1 and l.attempt = $2) - $3 returning run`,
)
/** Of an attempt that has written more than this, a half of it is kept from the beginning and a half to the end. */
export const trimLogs = (run: string, attempt: number, most: number): Statement<{ run: string }> =>
  statement(trim, run, attempt, Math.floor(most / 2))

export interface LogRow {
  readonly attempt: number
  readonly n: number
  readonly lines: string
}

const after = sql<LogRow>(
  'logs.after',
  `select l.attempt, l.n, l.lines from attempt_logs l
    where l.run = $1 and l.attempt between $2 and $3 and (l.attempt, l.upto) > ($2, $4)
    order by l.attempt, l.n limit $5`,
)
/** Parts with lines after a place, up to and with an attempt. */
export const logsAfter = (
  run: string,
  { attempt, n }: LogPlace,
  last: number,
  most: number,
): Statement<LogRow> => statement(after, run, attempt, last, n, most)

/** The lines of a part. */
export const linesOf = ({ lines }: LogRow): LogLine[] =>
  stored(lines, 'the lines of an attempt') as LogLine[]
