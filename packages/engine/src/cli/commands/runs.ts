// `leasehold runs`: a page of runs, newest first, or how many there are of each status.
import { runMachine } from '../../model/run.ts'
import type { Run } from '../call.ts'
import { durationOption } from '../duration-option.ts'
import { exit, UsageError } from '../exit.ts'
import { ago, statusPaint, table } from '../said.ts'
import { reach } from '../server.ts'
import { wholeNumber } from '../whole-number.ts'
import { systemTime } from '../../kernel/time.ts'

interface Options {
  readonly status?: string
  readonly workflow?: string
  readonly owner?: string
  readonly queue?: string
  readonly label?: string
  readonly waitOn?: string
  readonly reason?: string
  readonly text?: string
  readonly since?: string
  readonly limit?: string
  readonly cursor?: string
  readonly roots?: boolean
  readonly quiet?: boolean
  readonly counts?: boolean
}

const STATUSES: readonly string[] = runMachine.states

export const run: Run<Options> = async ({ options, out, sources }) => {
  const sinceMs = durationOption(options.since, '--since')
  const since = sinceMs === undefined ? undefined : systemTime.now() - sinceMs
  const limit = wholeNumber(options.limit, '--limit', { least: 1, most: 200 })
  const stranger = options.status?.split(',').find((each) => !STATUSES.includes(each))
  if (stranger !== undefined)
    throw new UsageError(
      `--status has ${JSON.stringify(stranger)}; known are ${STATUSES.join(', ')}`,
    )
  const { client } = reach(sources)
  if (options.counts) {
    const counts = await client.counts()
    if (options.json) out.json({ counts })
    else
      table(
        out,
        ['status', 'runs'],
        counts.map(({ status, count, more }) => [status, `${count}${more ? ' and more' : ''}`]),
        (cell, column) => (column === 0 ? statusPaint(out, cell) : cell),
      )
    return exit.ok
  }
  const { status, workflow, owner, queue, label, waitOn, reason, text, cursor } = options
  const { answer, now } = await answered(() =>
    client.call('listRuns', {
      query: {
        status,
        workflow,
        owner,
        queue,
        label,
        waitOn,
        reason,
        text,
        limit: limit?.toString(),
        cursor,
        startedAfter: since,
        ...(options.roots ? { roots: 'true' as const } : {}),
      },
    }),
  )
  const { runs, next } = answer
  if (options.json) out.json(answer)
  else if (options.quiet) for (const { id } of runs) out.line(id)
  else {
    if (runs.length === 0) out.note('no run fits; `leasehold start <workflow>` makes one')
    else
      table(
        out,
        ['run', 'status', 'workflow', 'attempt', 'started', 'why'],
        runs.map((each) => [
          each.id,
          each.status,
          `${each.workflow}@${each.version}`,
          String(each.attempt),
          ago(each.createdAt, now),
          each.note ?? each.reason ?? (each.waitOn === null ? '' : `waits for: ${each.waitOn}`),
        ]),
        (cell, column) => (column === 1 ? statusPaint(out, cell) : cell),
      )
    if (next !== null) out.note(`more: leasehold runs --cursor ${next}`)
  }
  return exit.ok
}

const answered = async <T>(ask: () => Promise<T>): Promise<{ answer: T; now: number }> => ({
  answer: await ask(),
  now: systemTime.now(),
})
