// `leasehold cancel`: at once where nobody holds the run, else by its holder within a grace.
import type { Run } from '../call.ts'
import { tellMoved } from '../moved.ts'
import { reach, runNamed } from '../server.ts'

export const run: Run<{ readonly reason?: string }> = async (call) => {
  const { client } = reach(call.sources)
  const id = await runNamed(client, call.args[0])
  return tellMoved(call, await client.cancel(id, call.options.reason))
}
