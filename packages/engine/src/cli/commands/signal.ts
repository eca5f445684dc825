// `leasehold signal`: a named message to a run, kept until it is taken.
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { readJson } from '../json-argument.ts'
import { reach, runNamed } from '../server.ts'

interface Options {
  readonly payload?: string
  readonly id?: string
}

export const run: Run<Options> = async ({ args: [given, name = ''], options, out, sources }) => {
  const payload = await readJson(options.payload, sources.cwd)
  const { client } = reach(sources)
  const id = await runNamed(client, given)
  const answer = await client.signal(
    id,
    name,
    payload,
    options.id === undefined ? {} : { id: options.id },
  )
  if (options.json) out.json(answer)
  else
    out.line(
      `${answer.run} has the signal ${answer.id}${answer.duplicate ? ', which it had before' : ''}`,
    )
  return exit.ok
}
