// `leasehold notices`: what people are to see and nothing waits for, newest first.
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
  const page = await client.notices({
    limit: String(most),
    ...(cursor === undefined ? {} : { cursor }),
  })
  const { notices, next } = page
  if (json) out.json(page)
  else if (notices.length === 0) out.note('there is nothing that people are to see')
  else {
    table(
      out,
      ['at', 'notice', 'run', 'says'],
      notices.map(({ at, kind, run: of, sentence }) => [clock(at), kind, of, sentence]),
    )
    if (next !== null) out.note(`more: leasehold notices --cursor ${next}`)
  }
  return exit.ok
}
