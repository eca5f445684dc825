// `leasehold resume`: a paused run goes on.
import type { Run } from '../call.ts'
import { tellMoved } from '../moved.ts'
import { reach, runNamed } from '../server.ts'

export const run: Run = async (call) => {
  const { client } = reach(call.sources)
  return tellMoved(call, await client.resume(await runNamed(client, call.args[0])))
}
