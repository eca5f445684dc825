// `leasehold pause`: at once where nobody holds the run, else at the next end of a step.
import type { Run } from '../call.ts'
import { tellMoved } from '../moved.ts'
import { reach, runNamed } from '../server.ts'

export const run: Run<{ readonly reason?: string }> = async (call) => {
  const { client } = reach(call.sources)
  const id = await runNamed(client, call.args[0])
  const answer = await client.pause(id, call.options.reason)
  const code = tellMoved(call, answer)
  if (answer.status !== 'paused')
    call.out.note(
      'it is held, and pauses at the next end of a step; where the run ends by then, its end stands',
    )
  return code
}
