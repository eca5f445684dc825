// `leasehold runs`: a page of runs, newest first, or how many there are of each status.
import { milliseconds } from '../../kernel/duration.ts'
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { ago, statusPaint, table } from '../said.ts'
import { reach } from '../server.ts'

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
  readonly quiet?: boolean
  readonly counts?: boolean
}

export const run: Run<Options> = async ({ options, out, sources }) => {
  const since =
    options.since === undefined ? undefined : Date.now() - milliseconds(options.since, '--since')
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
  const { status, workflow, owner, queue, label, waitOn, reason, text, limit, cursor } = options
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
        limit,
        cursor,
        startedAfter: since,
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
  now: Date.now(),
})
