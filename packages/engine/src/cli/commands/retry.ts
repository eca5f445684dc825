// `leasehold retry`: an ended run starts again as a new run, from the beginning or from a step.
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { reach, runNamed } from '../server.ts'

interface Options {
  readonly from?: string
  readonly toVersion?: string
}

export const run: Run<Options> = async ({ args: [given], options, out, sources }) => {
  const { client } = reach(sources)
  const id = await runNamed(client, given)
  const answer = await client.retry(id, {
    ...(options.from === undefined ? {} : { from: options.from }),
    ...(options.toVersion === undefined ? {} : { version: options.toVersion }),
  })
  if (options.json) out.json(answer)
  else out.line(`${answer.run} is the retry of ${answer.retryOf}`)
  return exit.ok
}
