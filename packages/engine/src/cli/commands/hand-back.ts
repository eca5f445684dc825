// `leasehold hand-back`: takes a run from its holder, so that another executor can claim it at once.
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { reach, runNamed } from '../server.ts'

export const run: Run<{ readonly reason?: string }> = async ({
  args: [given],
  options,
  out,
  sources,
}) => {
  const { client } = reach(sources)
  const answer = await client.handBack(await runNamed(client, given), options.reason)
  if (options.json) out.json(answer)
  else out.line(`${answer.run} ${answer.status}: attempt ${answer.attempt} was handed back`)
  return exit.ok
}
