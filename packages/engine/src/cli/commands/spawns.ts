// `leasehold spawns`: executors that were started because a queue waited, each with why and what became of it.
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { clock, table } from '../said.ts'
import { reach } from '../server.ts'
import { PAGE, wholeNumber } from '../whole-number.ts'

export const run: Run<{ readonly limit?: string; readonly cursor?: string }> = async ({
  options: { limit, cursor, json },
  out,
  sources,
}) => {
  const most = wholeNumber(limit, '--limit', PAGE) ?? 50
  const { client } = reach(sources)
  const page = await client.spawns({
    limit: String(most),
    ...(cursor === undefined ? {} : { cursor }),
  })
  if (json) out.json(page)
  else if (page.spawns.length === 0)
    out.note(
      'no executor was started so; `leasehold spawn <module>` starts them while a queue waits',
    )
  else {
    table(
      out,
      ['at', 'executor', 'queue', 'state', 'why', 'became'],
      page.spawns.map((each) => [
        clock(each.askedAt),
        each.session,
        each.queue,
        each.state,
        each.reason,
        each.evidence ?? '',
      ]),
    )
    if (page.next !== null) out.note(`more: leasehold spawns --cursor ${page.next}`)
  }
  return exit.ok
}
