// `leasehold executors`: who could drive runs, what they hold, what they could not put in order, and when they renewed last.
// With `--clear` they are told that somebody has seen to what a run left there.
import type { Run } from '../call.ts'
import { LeaseholdError } from '../../kernel/errors.ts'
import { exit } from '../exit.ts'
import type { Output } from '../output.ts'
import { ago, table } from '../said.ts'
import { reach } from '../server.ts'

export const run: Run<{ readonly clear?: string }> = async ({ options, out, sources }) => {
  const { client } = reach(sources)
  if (options.clear !== undefined) return clear(client, options.clear, out, options.json === true)
  const answer = await client.call('listExecutors')
  const { executors, now } = answer
  if (options.json) out.json(answer)
  else if (executors.length === 0)
    out.note('no executor has been here; `leasehold work <module>` starts one')
  else
    table(
      out,
      ['session', 'state', 'process', 'build', 'held', 'lease', 'renewed', 'workflows'],
      executors.map((each) => [
        each.id,
        each.state,
        `${each.pid} on ${each.host}`,
        each.build,
        `${each.held} of ${each.capacity}`,
        each.endedAt !== null
          ? '-'
          : each.leaseUntil === null
            ? 'with the server'
            : ago(each.leaseUntil, now),
        ago(each.renewedAt, now),
        each.endedAt === null
          ? each.workflows.map(({ workflow, version }) => `${workflow}@${version}`).join(' ')
          : `${each.endReason ?? 'ended'}: ${each.evidence ?? 'no evidence recorded'}`,
      ]),
    )
  for (const each of executors)
    for (const { kind, run: left, note } of leftBehind(each.status))
      out.note(
        `${each.id} keeps a slot for ${left} (${kind}): ${note}. When it is seen to: leasehold executors --clear ${left}`,
      )
  return exit.ok
}

type Reached = ReturnType<typeof reach>['client']

/** What an executor says that it could not put in order; whatever its build is, nothing that cannot be read is shown. */
const leftBehind = (status: unknown): { kind: string; run: string; note: string }[] => {
  const { markers, unreleased } = (status ?? {}) as { markers?: unknown; unreleased?: unknown }
  return [markers, unreleased].flatMap((list) =>
    Array.isArray(list)
      ? (list as Record<string, unknown>[]).flatMap((each) =>
          typeof each['run'] === 'string'
            ? { kind: String(each['kind']), run: each['run'], note: String(each['note']) }
            : [],
        )
      : [],
  )
}

/** Tells every executor that keeps something of this run. */
const clear = async (
  client: Reached,
  left: string,
  out: Output,
  json: boolean,
): Promise<number> => {
  const { executors } = await client.call('listExecutors', { query: { endedWithinMs: 0 } })
  const keeping = executors.filter(
    (each) => each.endedAt === null && leftBehind(each.status).some(({ run }) => run === left),
  )
  if (keeping.length === 0)
    throw new LeaseholdError('not_found', `no executor keeps a slot for ${left}`, { run: left })
  for (const { id } of keeping)
    await client.call('clearExecutor', { params: { session: id }, body: { run: left } })
  const sessions = keeping.map(({ id }) => id)
  if (json) out.json({ run: left, sessions })
  else out.line(`${sessions.join(', ')} told that ${left} is seen to`)
  return exit.ok
}
