// `leasehold executors`: who could drive runs, what they hold, and when they renewed last.
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { ago, table } from '../said.ts'
import { reach } from '../server.ts'

export const run: Run = async ({ options, out, sources }) => {
  const { client } = reach(sources)
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
  return exit.ok
}
