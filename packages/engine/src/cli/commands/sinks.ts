// `leasehold sinks`: where notices are sent, and how far each is behind.
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { ago, span, table } from '../said.ts'
import { reach } from '../server.ts'

export const run: Run = async ({ options: { json }, out, sources }) => {
  const { client } = reach(sources)
  const answer = await client.sinks()
  const { sinks, now } = answer
  if (json) out.json(answer)
  else if (sinks.length === 0)
    out.note('notices are sent nowhere; `sinks` in leasehold.config.json says where')
  else
    table(
      out,
      ['sink', 'type', 'open', 'oldest', 'dead', 'seen', 'kinds'],
      sinks.map((each) => [
        each.name,
        each.type ?? 'removed',
        String(each.open),
        each.oldestAt === null ? '-' : `${span(each.ageMs)}${each.late ? ', late' : ''}`,
        String(each.dead),
        each.seenAt === null ? '-' : `${ago(each.seenAt, now)}${each.gone ? ', gone' : ''}`,
        each.kinds.join(' '),
      ]),
    )
  return exit.ok
}
